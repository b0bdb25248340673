// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/shard.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace wq {

// hash = i (mod n) and hash = j (mod m) have a common solution if i = j modulo gcd(n, m).
bool Shard::overlaps(const Shard& other) const {
    const std::uint32_t common = std::gcd(of, other.of);
    return (index - 1) % common == (other.index - 1) % common;
}

bool Shard::is_within(const Shard& other) const {
    return of % other.of == 0 && overlaps(other);
}

std::string Shard::text() const {
    return std::to_string(index) + "/" + std::to_string(of);
}

std::optional<Shard> shard_named(std::string_view text) {
    Shard out;
    const char* end = text.data() + text.size();
    const auto index = std::from_chars(text.data(), end, out.index);
    if (index.ec != std::errc{} || index.ptr == end || *index.ptr != '/') return std::nullopt;
    const auto of = std::from_chars(index.ptr + 1, end, out.of);
    if (of.ec != std::errc{} || of.ptr != end) return std::nullopt;
    if (out.index < 1 || out.index > out.of || out.of > kMostShards) return std::nullopt;
    return out;
}

bool Shards::overlaps(const Shard& shard) const {
    return std::ranges::any_of(shards_, [&](const Shard& each) { return each.overlaps(shard); });
}

bool Shards::has(std::uint64_t host_hash) const {
    return std::ranges::any_of(shards_, [&](const Shard& each) { return each.has(host_hash); });
}

void Shards::add(const Shard& shard) {
    shards_.insert(std::ranges::upper_bound(shards_, shard), shard);
    const std::uint32_t of = shards_.front().of;
    const bool alike = std::ranges::all_of(shards_, [&](const Shard& each) { return each.of == of; });
    if (alike && shards_.size() == of) shards_ = {Shard{}};
}

}  // namespace wq
