// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wq {

// A share of all hosts: those for which XXH64 (seed 0) of the name, modulo `of`, is index - 1. The hash is
// printed by `printf %s HOST | xxhsum -H64`. 1/1 is all hosts.
struct Shard {
    std::uint32_t index = 1;  // 1..of
    std::uint32_t of = 1;     // at most kMostShards

    [[nodiscard]] bool has(std::uint64_t host_hash) const { return host_hash % of == index - 1; }
    // Whether some host could be in both.
    [[nodiscard]] bool overlaps(const Shard& other) const;
    // Whether each host of this one is in OTHER.
    [[nodiscard]] bool is_within(const Shard& other) const;
    [[nodiscard]] std::string text() const;  // "1/4"
    friend auto operator<=>(const Shard&, const Shard&) = default;
};
inline constexpr std::uint32_t kMostShards = 65'536;

// "I/N", with 1 <= I <= N <= kMostShards.
std::optional<Shard> shard_named(std::string_view text);

// Shards that do not overlap, sorted. All N shards of the same N are stored as 1/1.
class Shards {
  public:
    [[nodiscard]] bool overlaps(const Shard& shard) const;
    [[nodiscard]] bool has(std::uint64_t host_hash) const;
    // SHARD must not overlap any of them.
    void add(const Shard& shard);
    [[nodiscard]] const std::vector<Shard>& all() const { return shards_; }
    [[nodiscard]] bool empty() const { return shards_.empty(); }
    friend bool operator==(const Shards&, const Shards&) = default;

  private:
    std::vector<Shard> shards_;
};

}  // namespace wq
