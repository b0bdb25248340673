// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/fleet_merge.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/hash.h"

namespace wq {
namespace {

// Values of Row::numbers that no hash has.
constexpr std::uint32_t kCloned = 0;   // there are different lines with this time
constexpr std::uint32_t kCounted = 1;  // in the second round: the line was added
constexpr std::uint32_t kLeastHash = 2;

void append(std::string& out, std::string_view text) {
    out += text;
    out += '\n';
}

void append(std::string& out, const std::optional<std::uint64_t>& count) {
    append(out, count ? std::string_view(std::to_string(*count)) : "?");
}

// Writes KEY to OUT. Strings of a key have no control characters, so a line feed separates them. Returns the
// length of the question at the start of OUT: the fields that rules distinguish (evidence/promote.cpp).
std::size_t set_text(std::string& out, const FleetKey& key) {
    out.clear();
    for (const std::string* text : {&key.machine.arch, &key.machine.vendor, &key.machine.model, &key.kind,
                                    &key.reference, &key.reference_origin, &key.candidate, &key.counter})
        append(out, *text);
    append(out, key.machine.cores);
    append(out, key.machine.llc_cores);
    append(out, series_of(key.kernel));
    out += key.strict ? 's' : '-';
    const std::size_t question = out.size();
    for (const std::string* text : {&key.kernel, &key.topology, &key.scheduler, &key.window})
        append(out, *text);
    append(out, key.machine.packages);
    append(out, std::to_string(key.partitions[0]));
    append(out, std::to_string(key.partitions[1]));
    out += key.guard ? 'g' : '-';
    char tolerance[sizeof key.tolerance];
    std::memcpy(tolerance, &key.tolerance, sizeof tolerance);
    out.append(tolerance, sizeof tolerance);
    return question;
}

// A hash of the values that are equal in two lines of one machine with the same key and time.
std::uint32_t hash_of_numbers(const HostEvidence& e) {
    static_assert(sizeof e == (2 + 2 * kStakes.size() + 2) * sizeof(double), "without padding");
    char bytes[sizeof e];
    std::memcpy(bytes, &e, sizeof bytes);
    return std::max(static_cast<std::uint32_t>(hash_of({bytes, sizeof bytes})), kLeastHash);
}

// Grows with each pair, and with each alarm, after which the pairs restart at 0.
std::uint32_t progress_of(const HostEvidence& e) {
    constexpr std::uint64_t kPairs = 1U << 24U;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(e.alarms, 255) * kPairs +
                                      std::min(e.pairs, kPairs - 1));
}

void merge_into(FleetEntry& sum, const FleetEntry& entry) {
    if (sum.at == 0) sum.key = entry.key;
    sum.pooled.add(entry.pooled);
    sum.at = std::max(sum.at, entry.at);
    for (const Shard& shard : entry.shards.all())
        if (!sum.shards.overlaps(shard)) sum.shards.add(shard);
}

std::uint64_t bucket_of(std::uint64_t host_hash, std::uint64_t buckets) {
    return (host_hash >> 32U) % buckets;  // --shard uses the lower bits
}

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

FleetMerge::FleetMerge(const Options& options)
    : options_(options),
      reader_(options.now),
      buckets_(1 + options.bytes / kLeastHostLine / std::max<std::size_t>(options.most_rows, 1)),
      rows_(1024) {}

// Most lines of other buckets and shards are recognized without parsing them.
bool FleetMerge::skips(std::string_view line) const {
    if (buckets_ == 1 && options_.shard.of == 1) return false;
    const std::string_view host = host_in(line);
    if (host.empty()) return false;
    const std::uint64_t hash = hash_of(host);
    return !options_.shard.has(hash) || bucket_of(hash, buckets_) != bucket_;
}

std::string FleetMerge::take(std::string_view text) {
    note_.clear();
    if (skips(text)) return {};
    const bool reports = bucket_ == 0 && !repeats_;
    if (std::string why = reader_.read(text); !why.empty())
        return reports || (!repeats_ && !host_in(text).empty()) ? why : "";
    const FleetLine& line = reader_.line();
    question_ = set_text(key_, line.key);
    if (line.is_merged() && !reports) return {};
    std::string why = line.is_merged() ? take_merged_line(line) : take_host_line(line);
    if (why.empty() && note_.empty()) note_ = what_is_missing(line);
    return why;
}

// Which keys are missing that a merged line, or any line, should have.
std::string FleetMerge::what_is_missing(const FleetLine& line) {
    std::string out;
    if (line.is_merged() && !line.pooled.by_host && !std::exchange(told_hosts_, true))
        out =
            "it lacks some of hosts_better, hosts_worse, hosts_below, hosts_above, top_better, top_worse and "
            "spread: it counts, but makes no rule (reported once)";
    if (reader_.lacks_guard() && !std::exchange(told_guard_, true))
        out += std::string(out.empty() ? "" : "; ") +
               "there is no \"guard\": it counts against the candidate, but not for a rule (reported once)";
    return out;
}

std::string FleetMerge::take_host_line(const FleetLine& line) {
    const std::uint64_t host = hash_of(line.host);
    if (!options_.shard.has(host) || bucket_of(host, buckets_) != bucket_) return {};
    const std::uint64_t id = std::max<std::uint64_t>(host ^ hash_of(question()) * 0x9e3779b97f4a7c15U, 1);
    const Row seen{id, static_cast<std::uint32_t>(std::min<std::int64_t>(line.at, UINT32_MAX)),
                   static_cast<std::uint32_t>(hash_of(key_)), hash_of_numbers(line.own),
                   progress_of(line.own)};
    if (!repeats_) {
        if (scan(seen)) count(line);
        if (!note_.empty()) note_ = "host " + line.host + note_;
        return {};
    }
    Row& row = row_of(id);
    if (row.at != seen.at || row.key != seen.key) return {};
    if (row.numbers == kCloned)
        return "host " + line.host +
               " has other numbers for the same entry and time elsewhere: two machines " +
               "with one machine id (a cloned image?)";
    if (is_covered(host)) return "host " + line.host + " is in a shard that a merged line covers";
    if (row.numbers == kCounted) return {};
    row.numbers = kCounted;
    count(line);
    return {};
}

// The first round: whether the line counts, as far as is known. The second round corrects what was wrong.
bool FleetMerge::scan(const Row& seen) {
    if (!merged_.empty()) wrong_ = true;
    Row& row = row_of(seen.id);
    if (row.id == 0) {
        row = seen;
        used_++;
        if (used_ > rows_.size() / 4 * 3) grow();
        return true;
    }
    const Row& older = seen.at < row.at ? seen : row;
    const Row& newer = seen.at < row.at ? row : seen;
    if (seen.key == row.key && older.at < newer.at && older.progress > newer.progress)
        note_ =
            ": two lines of one entry; the later one is used although it has fewer pairs: the ledger was "
            "lost or began anew, or there are two machines with one machine id";
    const auto order = std::tie(seen.at, seen.key) <=> std::tie(row.at, row.key);
    if (order < 0 || (order == 0 && seen.numbers == row.numbers)) return false;
    wrong_ = true;
    if (order > 0)
        row = seen;
    else
        row.numbers = kCloned;
    return false;
}

// Whether a merged line of the question may include this host.
bool FleetMerge::is_covered(std::uint64_t host) const {
    const auto found = covered_.find(std::string(question()));
    return found != covered_.end() &&
           std::ranges::any_of(found->second, [&](const Shard& shard) { return shard.has(host); });
}

std::string FleetMerge::take_merged_line(const FleetLine& line) {
    for (const Shard& shard : line.shards.all()) {
        if (!shard.overlaps(options_.shard)) continue;
        if (!shard.is_within(options_.shard))
            return "a merged line cannot be divided: its shard " + shard.text() + " is not within " +
                   options_.shard.text();
    }
    if (!line.shards.overlaps(options_.shard)) return {};
    const auto found = merged_.find(key_);
    for (const Shard& shard : line.shards.all())
        if (found != merged_.end() && found->second.shards.overlaps(shard))
            return "its shard " + shard.text() +
                   " overlaps those of an earlier merged line of the same entry";
    merge_into(merged_[key_], {line.key, line.pooled, line.at, line.shards});
    covered_[std::string(question())].insert(line.shards.all().begin(), line.shards.all().end());
    if (used_ > 0) wrong_ = true;
    return {};
}

void FleetMerge::count(const FleetLine& line) {
    FleetEntry& entry = round_[key_];
    if (entry.at == 0) entry.key = line.key;
    entry.pooled.add(pooled(line.own, line.key.tolerance));
    entry.at = std::max(entry.at, line.at);
}

FleetMerge::Row& FleetMerge::row_of(std::uint64_t id) {
    std::size_t at = id & (rows_.size() - 1);
    while (rows_[at].id != 0 && rows_[at].id != id) at = (at + 1) & (rows_.size() - 1);
    return rows_[at];
}

void FleetMerge::grow() {
    std::vector<Row> old(rows_.size() * 2);
    old.swap(rows_);
    for (const Row& row : old)
        if (row.id != 0) row_of(row.id) = row;
}

void FleetMerge::end_round() {
    for (const auto& [text, entry] : round_) merge_into(hosts_[text], entry);
    round_.clear();
}

bool FleetMerge::again() {
    if (wrong_ && !repeats_) {
        round_.clear();
        repeats_ = true;
        return true;
    }
    end_round();
    repeats_ = wrong_ = false;
    if (++bucket_ >= buckets_) return false;
    std::ranges::fill(rows_, Row{});
    used_ = 0;
    return true;
}

std::vector<FleetEntry> FleetMerge::entries() const {
    std::map<FleetKey, FleetEntry> sorted;
    for (const auto& [text, entry] : hosts_) {
        FleetEntry& out = sorted[entry.key];
        merge_into(out, entry);
        if (out.shards.empty()) out.shards.add(options_.shard);  // all merged lines are within it
    }
    for (const auto& [text, entry] : merged_) merge_into(sorted[entry.key], entry);
    std::vector<FleetEntry> out;
    for (auto& [key, entry] : sorted) out.push_back(std::move(entry));
    return out;
}

}  // namespace wq
