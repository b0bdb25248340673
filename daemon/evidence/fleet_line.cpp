// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/fleet_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/text.h"
#include "evidence/json_scan.h"

namespace wq {
namespace {

constexpr std::uint64_t kLineVersion = 1;
// A host's numbers have narrower bounds than a sum, so that a sum of hosts can always be read again.
constexpr std::uint64_t kMostOfHost = UINT32_MAX;  // pairs, alarms; parts of a machine
constexpr std::uint64_t kMostHosts = 1'000'000'000;
constexpr double kMostNumber = 1e24;     // of any number
constexpr double kMostDifference = 20;   // |d|, on average: one arm costs 5e8 times as much
constexpr double kRounding = 1e-6;       // of a sum, as a fraction
constexpr std::size_t kMostText = 255;   // bytes
constexpr std::size_t kMostModel = 128;  // bytes, of a machine's model
constexpr std::size_t kMostName = 64;    // bytes, of a class, and of a machine's arch and vendor

// The values of a line while it is read.
struct Draft {
    FleetLine& line;
    StakeLogs better{};
    StakeLogs worse{};
    std::uint64_t version = 0;
    std::uint64_t at = 0;
    std::uint64_t hosts = 0;
    std::uint64_t alarms = 0;
    std::uint64_t pairs = 0;
    double sum = 0;
    double squares = 0;
    bool has_guard = false;
};

bool bounded(JsonScan& in, double& out, double least = -kMostNumber) {
    return in.number(out) && out >= least && out <= kMostNumber;
}

bool stakes(JsonScan& in, StakeLogs& out) {
    std::size_t count = 0;
    const bool read = in.array([&](std::size_t i) {
        count = i + 1;
        return i < out.size() && bounded(in, out[i]);
    });
    return read && count == out.size();
}

bool text_or_null(JsonScan& in, std::string& out, std::size_t most) {
    if (!in.null()) return in.string(out) && out.size() <= most;
    out.clear();
    return true;
}

bool count_or_null(JsonScan& in, std::optional<std::uint64_t>& out) {
    out.reset();
    return in.null() || (in.count(out.emplace()) && *out <= kMostOfHost);
}

bool read_machine(JsonScan& in, FleetMachine& m) {
    m = {};
    return in.object([&](std::string_view key) {
        if (key == "arch") return text_or_null(in, m.arch, kMostName);
        if (key == "vendor") return text_or_null(in, m.vendor, kMostName);
        if (key == "model") return text_or_null(in, m.model, kMostModel);
        if (key == "packages") return count_or_null(in, m.packages);
        if (key == "cores") return count_or_null(in, m.cores);
        if (key == "llc_cores") return count_or_null(in, m.llc_cores);
        return in.skip();
    });
}

bool read_partitions(JsonScan& in, FleetKey& key) {
    std::size_t count = 0;
    const bool read = in.array([&](std::size_t i) {
        count = i + 1;
        return i < 2 && in.count(key.partitions[i]);
    });
    return read && count == 2;
}

bool read_host(JsonScan& in, std::string& out) {
    return in.string(out) && !out.empty() && out.size() <= kMostHostDigits &&
           out.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool read_shards(JsonScan& in, Shards& out) {
    out = {};
    std::string word;
    return in.array([&](std::size_t) {
        if (!in.string(word)) return false;
        const auto shard = shard_named(word);
        if (!shard || out.overlaps(*shard)) return false;
        out.add(*shard);
        return true;
    }) && !out.empty();
}

bool read_spread_host(JsonScan& in, Spread::Host& out) {
    std::size_t count = 0;
    const bool read = in.array([&](std::size_t i) {
        count = i + 1;
        return i < 2 && (i == 0 ? bounded(in, out.mean) : bounded(in, out.weight, 0));
    });
    return read && count == 2;
}

bool read_spread(JsonScan& in, Spread& out) {
    Spread::State s;
    unsigned found = 0;
    const bool read = in.object([&](std::string_view key) {
        found++;
        if (key == "hosts") return in.count(s.hosts);
        if (key == "weight") return bounded(in, s.weight, 0);
        if (key == "weight_squares") return bounded(in, s.weight_squares, 0);
        if (key == "sum") return bounded(in, s.sum);
        if (key == "squares") return bounded(in, s.squares, 0);
        if (key == "least") return read_spread_host(in, s.least);
        if (key == "most") return read_spread_host(in, s.most);
        found--;
        return in.skip();
    });
    out = Spread(s);
    return read && found == 7;
}

enum class In { both, host, merged };

// A key of a line: which lines may have it, a description of its value, and how to read it. The optional keys
// of merged lines are the results of single hosts.
struct Field {
    std::string_view name;
    In where;
    std::string_view value;
    bool (*read)(JsonScan& in, Draft& draft);
    bool required = true;
};
constexpr bool kOptional = false;

template <std::string FleetKey::*text>
bool read_text(JsonScan& in, Draft& d) {
    return in.string(d.line.key.*text) && (d.line.key.*text).size() <= kMostText;
}

bool read_class(JsonScan& in, std::string& out) {
    return in.string(out) && !out.empty() && out.size() <= kMostName;
}

// Changes -0 to 0: a FleetKey with -0 would compare as equal but have another text in FleetMerge.
bool read_tolerance(JsonScan& in, double& out) {
    if (!in.number(out) || out < 0 || out > 1) return false;
    out += 0.0;
    return true;
}

// In the order in which lines are written, which is also the order in which most of them are read.
constexpr std::string_view kText = "a string of at most 255 bytes without control characters";
constexpr std::string_view kCount = "a whole number, 0 to 2^53";
constexpr std::string_view kStakeText = "an array of 7 finite numbers within bounds";
constexpr std::string_view kNumberText = "a finite number within bounds";
const Field kFields[] = {
    {"v", In::both, "a version", [](auto& in, auto& d) { return in.count(d.version); }},
    {"host", In::host, "1 to 64 hex digits in lower case",
     [](auto& in, auto& d) { return read_host(in, d.line.host); }},
    {"at", In::both, kCount, [](auto& in, auto& d) { return in.count(d.at); }},
    {"hosts", In::merged, "a whole number, 1 to 10^9",
     [](auto& in, auto& d) { return in.count(d.hosts) && d.hosts > 0 && d.hosts <= kMostHosts; }},
    {"machine", In::both, "a machine",
     [](auto& in, auto& d) { return read_machine(in, d.line.key.machine); }},
    {"kernel", In::both, kText, read_text<&FleetKey::kernel>},
    {"topology", In::both, kText, read_text<&FleetKey::topology>},
    {"scheduler", In::both, kText, read_text<&FleetKey::scheduler>},
    {"class", In::both, "a string of 1 to 64 bytes without control characters",
     [](auto& in, auto& d) { return read_class(in, d.line.key.kind); }},
    {"reference", In::both, kText, read_text<&FleetKey::reference>},
    {"reference_origin", In::both, "kernel or policy",
     [](auto& in, auto& d) {
         std::string& origin = d.line.key.reference_origin;
         return in.string(origin) && (origin == "kernel" || origin == "policy");
     }},
    {"candidate", In::both, kText, read_text<&FleetKey::candidate>},
    {"partitions", In::both, "two counts", [](auto& in, auto& d) { return read_partitions(in, d.line.key); }},
    {"strict", In::both, "true or false", [](auto& in, auto& d) { return in.boolean(d.line.key.strict); }},
    {"counter", In::both, kText, read_text<&FleetKey::counter>},
    {"guard", In::both, "true or false",
     [](auto& in, auto& d) { return d.has_guard = in.boolean(d.line.key.guard); }, kOptional},
    {"tolerance", In::both, "a number, 0 to 1",
     [](auto& in, auto& d) { return read_tolerance(in, d.line.key.tolerance); }},
    {"window", In::both, kText, read_text<&FleetKey::window>},
    {"n", In::both, kCount, [](auto& in, auto& d) { return in.count(d.alarms); }},
    {"pairs", In::both, kCount, [](auto& in, auto& d) { return in.count(d.pairs); }},
    {"better", In::both, kStakeText, [](auto& in, auto& d) { return stakes(in, d.better); }},
    {"worse", In::both, kStakeText, [](auto& in, auto& d) { return stakes(in, d.worse); }},
    {"sum", In::both, kNumberText, [](auto& in, auto& d) { return bounded(in, d.sum); }},
    {"squares", In::both, kNumberText, [](auto& in, auto& d) { return bounded(in, d.squares, 0); }},
    {"hosts_better", In::merged, kCount,
     [](auto& in, auto& d) { return in.count(d.line.pooled.hosts_better); }, kOptional},
    {"hosts_worse", In::merged, kCount, [](auto& in, auto& d) { return in.count(d.line.pooled.hosts_worse); },
     kOptional},
    {"hosts_below", In::merged, kCount, [](auto& in, auto& d) { return in.count(d.line.pooled.hosts_below); },
     kOptional},
    {"hosts_above", In::merged, kCount, [](auto& in, auto& d) { return in.count(d.line.pooled.hosts_above); },
     kOptional},
    {"top_better", In::merged, kStakeText,
     [](auto& in, auto& d) { return stakes(in, d.line.pooled.top_better); }, kOptional},
    {"top_worse", In::merged, kStakeText,
     [](auto& in, auto& d) { return stakes(in, d.line.pooled.top_worse); }, kOptional},
    {"spread", In::merged, "seven sums of hosts",
     [](auto& in, auto& d) { return read_spread(in, d.line.pooled.spread); }, kOptional},
    {"shards", In::merged, R"(an array of shards like "1/4" that do not overlap)",
     [](auto& in, auto& d) { return read_shards(in, d.line.shards); }},
};
constexpr std::size_t kNone = std::size(kFields);

// Tries GUESS first: the field after the previous one.
std::size_t find_field(std::string_view name, std::size_t guess) {
    if (guess < kNone && kFields[guess].name == name) return guess;
    for (std::size_t i = 0; i < kNone; i++)
        if (kFields[i].name == name) return i;
    return kNone;
}

std::string quoted(std::string_view key) {
    return "\"" + std::string(key) + "\"";
}

// Why the value of FIELD could not be read. If no brace closes after it, the line was cut off.
std::string why_not_read(const Field& field, std::string_view text, std::size_t offset) {
    if (text.find('}', offset) == std::string_view::npos)
        return fmt::format("cut off after byte {}", text.size());
    return quoted(field.name) + " is not " + std::string(field.value);
}

// SEEN: a bit for each field.
bool has(std::uint64_t seen, std::size_t field) {
    return (seen >> field & 1U) != 0;
}

bool says_what_hosts_found(std::uint64_t seen) {
    for (std::size_t i = 0; i < kNone; i++)
        if (kFields[i].where == In::merged && !kFields[i].required && !has(seen, i)) return false;
    return true;
}

std::string why_incomplete(std::uint64_t seen, bool merged) {
    for (std::size_t i = 0; i < kNone; i++) {
        const Field& field = kFields[i];
        const bool wanted = field.where == In::both || (field.where == In::merged) == merged;
        if (wanted && !has(seen, i) && field.required) return "there is no " + quoted(field.name);
        if (!wanted && has(seen, i))
            return fmt::format("{} is not allowed in a {} line", quoted(field.name),
                               merged ? "merged" : "host's");
    }
    return {};
}

// Whether this number of PAIRS can have these sums.
bool are_sums(std::uint64_t pairs, double sum, double squares) {
    const double n = static_cast<double>(pairs) * (1 + kRounding);
    return std::abs(sum) <= n * kMostDifference && squares <= n * kMostDifference * kMostDifference &&
           sum * sum <= n * squares + 1e-12;
}

// Whether this number of PAIRS can give these e-values. The factor of a pair is at most 2. Among n pairs, a
// difference is at most sqrt(n) times the scale, so its factor is at least exp(-8 sqrt(n)).
bool are_logs(const StakeLogs& logs, std::uint64_t pairs) {
    const auto n = static_cast<double>(pairs);
    const double most = std::min(n * std::numbers::ln2, kMostLog) + kRounding;
    const double least = std::max(-kStakes.back() * n * std::sqrt(n), -kMostLog) - kRounding;
    return std::ranges::all_of(logs, [&](double log) { return log >= least && log <= most; });
}

// Whether this number of HOSTS can have shares with these SUMS, the largest of which are TOPS.
bool are_shares(const StakeLogs& sums, const StakeLogs& tops, std::uint64_t hosts) {
    static const double kLeastShare = share_of(-kMostLog);
    static const double kMostShare = share_of(kMostLog);
    const auto n = static_cast<double>(hosts);
    const double rounding = n * kRounding;
    for (std::size_t i = 0; i < sums.size(); i++) {
        if (sums[i] < n * kLeastShare - rounding || sums[i] > n * kMostShare + rounding) return false;
        if (tops[i] < 0 || tops[i] > kMostShare + kRounding) return false;
        if (sums[i] - tops[i] > (n - 1) * kMostShare + rounding) return false;
    }
    return true;
}

bool is_of_hosts(const Pooled& p) {
    const std::uint64_t most =
        std::max({p.hosts_better, p.hosts_worse, p.hosts_below, p.hosts_above, p.spread.state().hosts});
    StakeLogs loudest{};  // the upper bound, if the largest shares are not known
    loudest.fill(share_of(kMostLog));
    return most <= p.hosts && are_shares(p.better, p.by_host ? p.top_better : loudest, p.hosts) &&
           are_shares(p.worse, p.by_host ? p.top_worse : loudest, p.hosts);
}

// Whether the pairs and hosts can give the values that were read.
bool is_possible(const FleetLine& line) {
    const HostEvidence& own = line.own;
    const Pooled& p = line.pooled;
    if (line.is_merged()) return are_sums(p.pairs, p.sum, p.squares) && is_of_hosts(p);
    return own.pairs <= kMostOfHost && own.alarms <= kMostOfHost &&
           are_sums(own.pairs, own.sum, own.squares) && are_logs(own.better, own.pairs) &&
           are_logs(own.worse, own.pairs);
}

void put_together(const Draft& d) {
    FleetLine& line = d.line;
    line.at = static_cast<std::int64_t>(d.at);
    if (!line.is_merged()) {
        line.own = {d.alarms, d.pairs, d.better, d.worse, d.sum, d.squares};
        return;
    }
    Pooled& p = line.pooled;
    p.hosts = d.hosts;
    p.alarms = d.alarms;
    p.pairs = d.pairs;
    p.better = d.better;
    p.worse = d.worse;
    p.sum = d.sum;
    p.squares = d.squares;
}

}  // namespace

std::string FleetLineReader::read(std::string_view text) {
    if (text.size() > kMostLine) return fmt::format("longer than {} bytes", kMostLine);
    JsonScan in(text);
    Draft draft{line_};
    line_.host.clear();
    line_.key.guard = true;
    line_.pooled = {};
    std::uint64_t seen = 0;
    std::size_t guess = 0;
    std::string why;
    const bool read = in.object([&](std::string_view key) {
        const std::size_t i = find_field(key, guess);
        if (i == kNone) return in.skip();
        guess = i + 1;
        seen |= std::uint64_t{1} << i;
        if (!kFields[i].read(in, draft)) why = why_not_read(kFields[i], text, in.offset());
        if (i == 0 && why.empty() && draft.version != kLineVersion)
            why = fmt::format("version {}; this program reads {}", draft.version, kLineVersion);
        return why.empty();
    });
    if (!why.empty()) return why;
    if (!read || !in.at_end()) return fmt::format("no JSON object, or cut off, at byte {}", in.offset() + 1);
    const bool merged = line_.host.empty();
    why = why_incomplete(seen, merged);
    if (!why.empty()) return why;
    if (draft.at == 0) return "\"at\" is 0";
    if (static_cast<std::int64_t>(draft.at) > now_ + kClockSlack) return "\"at\" is in the future";
    put_together(draft);
    lacks_guard_ = !draft.has_guard;
    if (merged && !says_what_hosts_found(seen)) line_.pooled.forget_hosts();
    if (!is_possible(line_)) return "evidence out of bounds: the stated pairs and hosts cannot give it";
    return {};
}

namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

Json count_or_null(const std::optional<std::uint64_t>& count) {
    return count ? Json(*count) : Json();
}

Json to_json(const Spread::State& s) {
    return {{"hosts", s.hosts},
            {"weight", s.weight},
            {"weight_squares", s.weight_squares},
            {"sum", s.sum},
            {"squares", s.squares},
            {"least", {s.least.mean, s.least.weight}},
            {"most", {s.most.mean, s.most.weight}}};
}

}  // namespace

Json to_json(const FleetMachine& m) {
    return {{"arch", text_or_null(m.arch)},    {"vendor", text_or_null(m.vendor)},
            {"model", text_or_null(m.model)},  {"packages", count_or_null(m.packages)},
            {"cores", count_or_null(m.cores)}, {"llc_cores", count_or_null(m.llc_cores)}};
}

FleetMachine fleet_machine(HostFacts facts, const Topology& topology) {
    const auto count = [](const std::optional<unsigned>& n) {
        return n ? std::optional<std::uint64_t>(*n) : std::nullopt;
    };
    take_counts(topology, facts);
    FleetMachine out;
    out.arch = facts.arch;
    out.vendor = facts.cpu_vendor;
    if (!facts.cpu_models.empty()) out.model = facts.cpu_models.front();
    if (!topology.packages.empty()) out.packages = topology.packages.size();
    out.cores = count(facts.cores);
    out.llc_cores = count(facts.llc_cores);
    return out;
}

std::string series_of(const std::string& kernel) {
    return kernel.substr(0, kernel.find(' '));
}

std::string text_of(const FleetLine& line) {
    const FleetKey& key = line.key;
    const Pooled& p = line.pooled;
    const bool merged = line.is_merged();
    Json out{{"v", kLineVersion}};
    if (!merged) out["host"] = line.host;
    out["at"] = line.at;
    if (merged) out["hosts"] = p.hosts;
    out.update(Json{{"machine", to_json(key.machine)},
                    {"kernel", key.kernel},
                    {"topology", key.topology},
                    {"scheduler", key.scheduler},
                    {"class", key.kind},
                    {"reference", key.reference},
                    {"reference_origin", key.reference_origin},
                    {"candidate", key.candidate},
                    {"partitions", key.partitions},
                    {"strict", key.strict},
                    {"counter", key.counter},
                    {"guard", key.guard},
                    {"tolerance", key.tolerance},
                    {"window", key.window},
                    {"n", merged ? p.alarms : line.own.alarms},
                    {"pairs", merged ? p.pairs : line.own.pairs},
                    {"better", merged ? p.better : line.own.better},
                    {"worse", merged ? p.worse : line.own.worse},
                    {"sum", merged ? p.sum : line.own.sum},
                    {"squares", merged ? p.squares : line.own.squares}});
    if (merged && p.by_host) {
        out["hosts_better"] = p.hosts_better;
        out["hosts_worse"] = p.hosts_worse;
        out["hosts_below"] = p.hosts_below;
        out["hosts_above"] = p.hosts_above;
        out["top_better"] = p.top_better;
        out["top_worse"] = p.top_worse;
        out["spread"] = to_json(p.spread.state());
    }
    if (merged) {
        out["shards"] = Json::array();
        for (const Shard& shard : line.shards.all()) out["shards"].push_back(shard.text());
    }
    return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace wq
