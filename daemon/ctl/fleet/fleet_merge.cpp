// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/fleet.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace wq {
namespace {

// The host's name in the text of a line; "" if a simple search does not find it.
std::string_view host_in(std::string_view line) {
    constexpr std::string_view kKey = R"("host":)";
    const auto key = line.find(kKey);
    const auto quote = key == std::string_view::npos ? key : line.find_first_not_of(' ', key + kKey.size());
    if (quote == std::string_view::npos || line[quote] != '"') return {};
    const auto end = line.find('"', quote + 1);
    return end == std::string_view::npos ? std::string_view{} : line.substr(quote + 1, end - quote - 1);
}

}  // namespace

void reduce_to_question(FleetKey& key) {
    key.machine.packages.reset();
    key.kernel.resize(std::min(key.kernel.find(' '), key.kernel.size()));
    key.topology.clear();
    key.scheduler.clear();
    key.partitions = {};
    key.guard = false;
    key.tolerance = 0;
    key.window.clear();
}

FleetMerge::FleetMerge(const Options& options)
    : options_(options),
      reader_(options.now),
      buckets_(1 + options.bytes / kLeastHostLine / std::max<std::size_t>(options.most_rows, 1)) {}

// Whether this round takes lines of the HOST with this hash. --shard uses the lower bits.
bool FleetMerge::has(std::uint64_t host) const {
    return options_.shard.has(host) && (host >> 32U) % buckets_ == bucket_;
}

FleetMerge::Known& FleetMerge::known(const FleetKey& key) {
    const auto [at, is_new] = known_.try_emplace(key);
    if (is_new) {
        FleetKey question = key;
        reduce_to_question(question);
        at->second.key = &at->first;
        at->second.question = &questions_[question];
    }
    return at->second;
}

std::string FleetMerge::take(std::string_view text) {
    note_.clear();
    // Most lines of other buckets and shards are recognized without parsing them.
    const std::string_view host = host_in(text);
    if (!host.empty() && !has(hash_of(host))) return {};
    if (std::string why = reader_.read(text); !why.empty()) return bucket_ == 0 || !host.empty() ? why : "";
    const FleetLine& line = reader_.line();
    if (line.lacks_keys && !std::exchange(told_, true))
        note_ =
            "it lacks \"guard\", or the results of single hosts: it counts, but makes no rule (reported "
            "once)";
    if (line.is_merged()) return bucket_ == 0 ? take_merged_line(line) : "";
    if (has(hash_of(line.host))) take_host_line(line);
    return {};
}

// Of lines with the same time, that with the largest key and evidence counts, so that the order in which they
// come does not matter.
void FleetMerge::take_host_line(const FleetLine& line) {
    Known& known = this->known(line.key);
    Row& row = known.question->rows[hash_of(line.host)];
    const Row seen{&known, line.at, line.own};
    if (row.known == nullptr) {
        row = seen;
        return;
    }
    const auto rank = [](const Row& each) { return std::tie(each.at, *each.known->key, each.own); };
    const auto progress = [](const Row& each) { return std::tie(each.own.alarms, each.own.pairs); };
    const Row& older = rank(seen) < rank(row) ? seen : row;
    const Row& newer = rank(seen) < rank(row) ? row : seen;
    const bool anew = older.at == newer.at ? older.own != newer.own : progress(older) > progress(newer);
    if (row.known == seen.known && anew)
        note_ = "host " + line.host +
                ": two lines of one entry, and the later one does not go on from the other: the ledger was "
                "lost or began anew, or there are two machines with one machine id (a cloned image?)";
    row = Row(newer);
}

std::string FleetMerge::take_merged_line(const FleetLine& line) {
    if (options_.shard != Shard{}) return "a merged line cannot be divided into shards";
    Known& known = this->known(line.key);
    for (const Shard& shard : line.shards.all())
        if (known.merged.shards.overlaps(shard))
            return "its shard " + shard.text() +
                   " overlaps those of an earlier merged line of the same entry";
    known.merged.add(line);
    known.question->covered.insert(line.shards.all().begin(), line.shards.all().end());
    return {};
}

bool FleetMerge::again() {
    for (auto& [key, question] : questions_) {
        for (const auto& [host, row] : question.rows) {
            const auto has_host = [&, host = host](const Shard& shard) { return shard.has(host); };
            if (std::ranges::any_of(question.covered, has_host))
                covered_++;
            else
                row.known->hosts.add(
                    {*row.known->key, pooled(row.own, row.known->key->tolerance), row.at, {}});
        }
        question.rows.clear();
    }
    return ++bucket_ < buckets_;
}

std::vector<FleetEntry> FleetMerge::entries() const {
    std::vector<FleetEntry> out;
    for (const auto& [key, known] : known_) {
        FleetEntry entry = known.hosts;
        if (entry.at > 0) entry.shards.add(options_.shard);
        entry.add(known.merged);
        if (entry.at > 0) out.push_back(std::move(entry));
    }
    return out;
}

}  // namespace wq
