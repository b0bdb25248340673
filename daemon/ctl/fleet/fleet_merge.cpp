// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/fleet_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/hash.h"

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

std::string series_of(const std::string& kernel) {
    return kernel.substr(0, kernel.find(' '));
}

void reduce_to_question(FleetKey& key) {
    key.machine.packages.reset();
    key.kernel = series_of(key.kernel);
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
        at->second.key = key;
        at->second.question = &questions_.try_emplace(question, &memory_).first->second;
    }
    return at->second;
}

std::string FleetMerge::take(std::string_view text) {
    note_.clear();
    // Most lines of other buckets and shards are recognized without parsing them.
    const std::string_view host = host_in(text);
    if (!host.empty() && !has(hash_of(host))) return {};
    const bool reports = bucket_ == 0 && !names_;
    if (std::string why = reader_.read(text); !why.empty())
        return reports || (!names_ && !host.empty()) ? why : "";
    const FleetLine& line = reader_.line();
    if (line.is_merged() && !reports) return {};
    std::string why = line.is_merged() ? take_merged_line(line) : take_host_line(line);
    if (why.empty() && note_.empty()) note_ = what_is_missing(line);
    return why;
}

// Which keys are missing that a merged line, or any line, should have.
std::string FleetMerge::what_is_missing(const FleetLine& line) {
    std::string out;
    if (line.is_merged() && !line.pooled.by_host && !std::exchange(told_hosts_, true))
        out = fmt::format("it lacks some of {}: it counts, but makes no rule (reported once)", kByHostKeys);
    if (reader_.lacks_guard() && !std::exchange(told_guard_, true))
        out += std::string(out.empty() ? "" : "; ") +
               "there is no \"guard\": it counts against the candidate, but not for a rule (reported once)";
    return out;
}

std::string FleetMerge::take_host_line(const FleetLine& line) {
    const std::uint64_t host = hash_of(line.host);
    if (!has(host)) return {};
    Known& known = this->known(line.key);
    Row& row = known.question->rows[host];
    const Row seen{&known, line.at, line.own};
    if (!names_) {
        keep_newer(row, seen);
        if (!note_.empty()) note_ = "host " + line.host + note_;
        return {};
    }
    if (row.at != seen.at || row.known != seen.known) return {};
    if (row.cloned)
        return "host " + line.host +
               " has other numbers for the same entry and time elsewhere: two machines " +
               "with one machine id (a cloned image?)";
    if (known.question->covers(host)) return "host " + line.host + " is in a shard that a merged line covers";
    return {};
}

// Keeps the newer of ROW and SEEN in ROW. Of lines with the same time, that with the largest key counts, so
// that the order in which they come does not matter.
void FleetMerge::keep_newer(Row& row, const Row& seen) {
    if (row.known == nullptr) {
        row = seen;
        return;
    }
    const Row& older = seen.at < row.at ? seen : row;
    const Row& newer = seen.at < row.at ? row : seen;
    const auto progress = [](const HostEvidence& own) { return std::tie(own.alarms, own.pairs); };
    if (seen.known == row.known && older.at < newer.at && progress(older.own) > progress(newer.own))
        note_ =
            ": two lines of one entry; the later one is used although it has fewer pairs: the ledger was "
            "lost or began anew, or there are two machines with one machine id";
    if (seen.at == row.at && seen.known == row.known)
        row.cloned = row.cloned || seen.own != row.own;
    else if (seen.at > row.at || (seen.at == row.at && row.known->key < seen.known->key))
        row = seen;
}

bool FleetMerge::Question::covers(std::uint64_t host) const {
    return std::ranges::any_of(covered, [&](const Shard& shard) { return shard.has(host); });
}

std::string FleetMerge::take_merged_line(const FleetLine& line) {
    bool overlaps = false;
    for (const Shard& shard : line.shards.all()) {
        if (!shard.overlaps(options_.shard)) continue;
        overlaps = true;
        if (!shard.is_within(options_.shard))
            return "a merged line cannot be divided: its shard " + shard.text() + " is not within " +
                   options_.shard.text();
    }
    if (!overlaps) return {};
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
    const bool named = std::exchange(names_, false);
    for (auto& [key, question] : questions_)
        for (const auto& [host, row] : question.rows)
            if (row.cloned || question.covers(host)) names_ = true;
    if (!named && names_) return true;
    names_ = false;
    for (auto& [key, question] : questions_) {
        for (const auto& [host, row] : question.rows)
            if (!row.cloned && !question.covers(host))
                row.known->hosts.add({row.known->key, pooled(row.own, row.known->key.tolerance), row.at, {}});
        question.rows.clear();
    }
    return ++bucket_ < buckets_;
}

std::vector<FleetEntry> FleetMerge::entries() const {
    std::vector<FleetEntry> out;
    for (const auto& [key, known] : known_) {
        FleetEntry entry = known.hosts;
        if (entry.at > 0) entry.shards.add(options_.shard);  // all merged lines are within it
        entry.add(known.merged);
        if (entry.at > 0) out.push_back(std::move(entry));
    }
    std::ranges::sort(out, {}, &FleetEntry::key);
    return out;
}

}  // namespace wq
