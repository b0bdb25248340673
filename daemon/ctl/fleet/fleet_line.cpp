// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/fleet_line.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/text.h"

namespace wq {

void FleetEntry::add(const FleetEntry& other) {
    if (other.at == 0) return;
    if (at == 0) key = other.key;
    pooled.add(other.pooled);
    at = std::max(at, other.at);
    for (const Shard& shard : other.shards.all())
        if (!shards.overlaps(shard)) shards.add(shard);
}

std::string Shard::text() const {
    return fmt::format("{}/{}", index, of);
}

std::optional<Shard> shard_named(std::string_view text) {
    const auto slash = std::min(text.find('/'), text.size());
    const auto index = number_of<std::uint32_t>(text.substr(0, slash));
    const auto of = number_of<std::uint32_t>(text.substr(std::min(slash + 1, text.size())));
    if (!index || !of || *index < 1 || *index > *of || *of > kMostShards) return std::nullopt;
    return Shard{*index, *of};
}

bool Shards::overlaps(const Shard& shard) const {
    return std::ranges::any_of(shards_, [&](const Shard& each) { return each.overlaps(shard); });
}

void Shards::add(const Shard& shard) {
    shards_.insert(std::ranges::upper_bound(shards_, shard), shard);
    const std::uint32_t of = shards_.front().of;
    const bool alike = std::ranges::all_of(shards_, [&](const Shard& each) { return each.of == of; });
    if (alike && shards_.size() == of) shards_ = {Shard{}};
}

namespace {

using Json = nlohmann::ordered_json;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr std::uint64_t kLineVersion = 1;
// A host's numbers have narrower bounds than a sum, so that a sum of hosts can always be read again.
constexpr double kMostOfHost = UINT32_MAX;         // pairs, alarms; parts of a machine
constexpr double kMostNumber = 1e24;               // of any number
constexpr double kMostCount = 9007199254740992.0;  // 2^53: each whole number up to here is a double
constexpr double kMostDifference = 20;             // |d|, on average: one arm costs 5e8 times as much
constexpr double kRounding = 1e-6;                 // of a sum, as a fraction

bool has_control_character(std::string_view utf8) {
    unsigned char before = 0;
    for (const char each : utf8) {
        const auto c = static_cast<unsigned char>(each);
        if (c < 0x20 || c == 0x7f || (before == 0xc2 && c < 0xa0)) return true;  // the last ones are C1
        before = c;
    }
    return false;
}

// Of a number, of each number of an array, or of the bytes of a string.
struct Bounds {
    double least = -kMostNumber;
    double most = kMostNumber;
    [[nodiscard]] bool has(double number) const { return number >= least && number <= most; }
};

// VALUE into OUT. False if it is not of this type, or out of BOUNDS.

bool take(const element& value, std::string& out, const Bounds& bounds) {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS || !bounds.has(static_cast<double>(text.size()))) return false;
    out = text;
    return !has_control_character(text);
}
bool take(const element& value, bool& out, const Bounds& /*bounds*/) {
    return value.get(out) == simdjson::SUCCESS;
}
bool take(const element& value, double& out, const Bounds& bounds) {
    return value.get(out) == simdjson::SUCCESS && bounds.has(out);
}
template <class Int>
requires std::is_integral_v<Int>
bool take(const element& value, Int& out, const Bounds& bounds) {
    double number = 0;
    if (!take(value, number, bounds) || number != std::floor(number)) return false;
    out = static_cast<Int>(number);
    return true;
}
bool take(const element& value, std::optional<std::uint64_t>& out, const Bounds& bounds) {
    return take(value, out.emplace(), bounds);
}
template <class T, std::size_t N>
bool take(const element& value, std::array<T, N>& out, const Bounds& bounds) {
    simdjson::dom::array all;
    if (value.get(all) != simdjson::SUCCESS || all.size() != N) return false;
    std::size_t i = 0;
    for (const element each : all)
        if (!take(each, out.at(i++), bounds)) return false;
    return true;
}
bool take(const element& value, Spread::Host& out, const Bounds& bounds) {
    std::array<double, 2> both{};
    if (!take(value, both, bounds) || both[1] < 0) return false;
    out = {both[0], both[1]};
    return true;
}
bool take(const element& value, Shards& out, const Bounds& /*bounds*/) {
    simdjson::dom::array all;
    if (value.get(all) != simdjson::SUCCESS || all.size() == 0) return false;
    for (const element each : all) {
        std::string_view text;
        const auto shard = each.get(text) == simdjson::SUCCESS ? shard_named(text) : std::nullopt;
        if (!shard || out.overlaps(*shard)) return false;
        out.add(*shard);
    }
    return true;
}

class Reader {
  public:
    static constexpr bool kReads = true;
    // The first refusal is in WHY.
    Reader(const object& in, std::string& why) : in_(in), next_(in.begin()), why_(why) {}

    template <class T>
    void operator()(std::string_view name, T& value, const Bounds& bounds = {}) {
        if (!optional(name, value, bounds)) refuse(fmt::format("there is no \"{}\"", name));
    }
    // Returns whether there is such a member.
    template <class T>
    bool optional(std::string_view name, T& value, const Bounds& bounds = {}) {
        element found;
        if (!find(name, found)) return false;
        if (!take(found, value, bounds)) refuse_value(name);
        return true;
    }
    // What may be null, or absent.
    template <class T>
    void known(std::string_view name, T& value, const Bounds& bounds) {
        if (element found; find(name, found) && !found.is_null() && !take(found, value, bounds))
            refuse_value(name);
    }
    template <class Describe>
    bool object_of(std::string_view name, Describe describe, bool required = false) {
        element found;
        if (!find(name, found)) {
            if (required) refuse(fmt::format("there is no \"{}\"", name));
            return false;
        }
        if (object inner; found.get(inner) == simdjson::SUCCESS)
            describe(Reader(inner, why_));
        else
            refuse_value(name);
        return true;
    }
    void refuse(const std::string& why) {
        if (why_.empty()) why_ = why;
    }
    void refuse_value(std::string_view name) { refuse(fmt::format("\"{}\" is not valid", name)); }

  private:
    // Mostly it is the member after the one that was found before.
    bool find(std::string_view name, element& out) {
        if (next_ == in_.end() || next_.key() != name) return in_.at_key(name).get(out) == simdjson::SUCCESS;
        out = next_.value();
        ++next_;
        return true;
    }

    object in_;
    object::iterator next_;
    std::string& why_;
};

class Writer {
  public:
    static constexpr bool kReads = false;
    explicit Writer(Json& out) : out_(out) {}

    template <class T>
    void operator()(std::string_view name, const T& value, const Bounds& /*bounds*/ = {}) {
        out_[std::string(name)] = value;
    }
    void operator()(std::string_view name, const Spread::Host& host) {
        out_[std::string(name)] = {host.mean, host.weight};
    }
    void operator()(std::string_view name, const Shards& shards) {
        for (const Shard& shard : shards.all()) out_[std::string(name)].push_back(shard.text());
    }
    template <class T>
    bool optional(std::string_view name, const T& value, const Bounds& /*bounds*/ = {}) {
        (*this)(name, value);
        return true;
    }
    void known(std::string_view name, const std::string& value, const Bounds& /*bounds*/) {
        out_[std::string(name)] = value.empty() ? Json() : Json(value);
    }
    void known(std::string_view name, const std::optional<std::uint64_t>& value, const Bounds& /*bounds*/) {
        out_[std::string(name)] = value ? Json(*value) : Json();
    }
    template <class Describe>
    bool object_of(std::string_view name, Describe describe, bool /*required*/ = false) {
        describe(Writer(out_[std::string(name)]));
        return true;
    }

  private:
    Json& out_;
};

template <class Members>
void describe(Members at, DifferenceSums& sums) {
    at("pairs", sums.pairs, {0, kMostCount});
    at("sum", sums.sum);
    at("squares", sums.squares, {0, kMostNumber});
}

template <class Members>
void describe(Members at, FleetMachine& machine) {
    constexpr Bounds kName{0, 64};
    constexpr Bounds kParts{0, kMostOfHost};
    at.known("arch", machine.arch, kName);
    at.known("vendor", machine.vendor, kName);
    at.known("model", machine.model, {0, 128});
    at.known("packages", machine.packages, kParts);
    at.known("cores", machine.cores, kParts);
    at.known("llc_cores", machine.llc_cores, kParts);
}

template <class Members>
void describe(Members at, Spread& spread, double hosts) {
    constexpr Bounds kSum{0, kMostNumber};
    at("hosts", spread.hosts, {0, hosts});
    at("weight", spread.weight, kSum);
    at("weight_squares", spread.weight_squares, kSum);
    at("sum", spread.sum);
    at("squares", spread.squares, kSum);
    at("least", spread.least);
    at("most", spread.most);
}

template <class Members>
void describe(Members& at, FleetKey& key) {
    constexpr Bounds kText{0, 255};
    at.object_of(
        "machine", [&](Members inner) { describe(inner, key.machine); }, true);
    at("kernel", key.kernel, kText);
    at("topology", key.topology, kText);
    at("scheduler", key.scheduler, kText);
    at("class", key.kind, {1, 64});
    at("reference", key.reference, kText);
    at("reference_origin", key.reference_origin, kText);
    at("candidate", key.candidate, kText);
    at("partitions", key.partitions, {0, kMostCount});
    at("strict", key.strict);
    at("counter", key.counter, kText);
}

// The results of single hosts. Returns whether all are there.
template <class Members>
bool describe_hosts(Members& at, Pooled& p) {
    const auto hosts = static_cast<double>(p.hosts);
    const Bounds top{0, share_of(kMostLog) + kRounding};
    bool all = true;
    const auto part = [&](std::string_view name, auto& value, const Bounds& bounds) {
        all = at.optional(name, value, bounds) && all;
    };
    part("hosts_better", p.better.hosts, {0, hosts});
    part("hosts_worse", p.worse.hosts, {0, hosts});
    part("hosts_below", p.better.votes, {0, hosts});
    part("hosts_above", p.worse.votes, {0, hosts});
    part("hosts_after", p.hosts_after, {0, hosts});
    part("top_better", p.better.top, top);
    part("top_worse", p.worse.top, top);
    return at.object_of("spread", [&](Members inner) { describe(inner, p.spread, hosts); }) && all;
}

template <class Members>
void describe_evidence(Members& at, auto& sums, StakeLogs& better, StakeLogs& worse, bool merged) {
    const Bounds count{0, merged ? kMostCount : kMostOfHost};
    const double most = merged ? kMostNumber : kMostLog;
    at("n", sums.alarms, count);
    at("pairs", sums.pairs, count);
    at("better", better, {-most, most});
    at("worse", worse, {-most, most});
    at("sum", sums.sum);
    at("squares", sums.squares, {0, kMostNumber});
    if (Members::kReads || !merged || sums.after.pairs > 0)
        at.object_of("after", [&](Members inner) { describe(inner, sums.after); });
}

// The members, in the order in which lines are written, which is also the order in which most are read.
template <class Members>
void describe(Members& at, FleetLine& line) {
    FleetKey& key = line.key;
    Pooled& p = line.pooled;
    std::uint64_t version = kLineVersion;
    at("v", version, {kLineVersion, kLineVersion});
    if (Members::kReads || !line.host.empty()) at.optional("host", line.host, {1, 64});
    const bool merged = line.is_merged();
    at("at", line.at, {1, kMostCount});
    if (merged) at("hosts", p.hosts, {1, 1e9});
    describe(at, key);
    if (!at.optional("guard", key.guard)) key.guard = line.lacks_keys = true;
    at("tolerance", key.tolerance, {0, 1});
    at("window", key.window, {0, 255});
    if (!merged) return describe_evidence(at, line.own, line.own.better, line.own.worse, merged);
    describe_evidence(at, p, p.better.sums, p.worse.sums, merged);
    if ((Members::kReads || p.by_host) && !describe_hosts(at, p)) {
        p.forget_hosts();
        line.lacks_keys = true;
    }
    at("shards", line.shards);
}

// Whether some of PAIRS pairs can have these sums.
bool are_possible(const DifferenceSums& sums, std::uint64_t pairs) {
    const double n = static_cast<double>(sums.pairs) * (1 + kRounding);
    return sums.pairs <= pairs && std::abs(sums.sum) <= n * kMostDifference &&
           sums.squares <= n * kMostDifference * kMostDifference &&
           sums.sum * sums.sum <= n * sums.squares + 1e-12;
}

// Whether this number of HOSTS can have shares with these SUMS.
bool are_shares(const StakeLogs& sums, std::uint64_t hosts) {
    const double n = static_cast<double>(hosts);
    const Bounds possible{n * (share_of(-kMostLog) - kRounding), n * (share_of(kMostLog) + kRounding)};
    return std::ranges::all_of(sums, [&](double sum) { return possible.has(sum); });
}

bool is_possible(const FleetLine& line) {
    const auto sums = [](const auto& e) {
        return are_possible({e.pairs, e.sum, e.squares}, e.pairs) && are_possible(e.after, e.pairs);
    };
    const Pooled& p = line.pooled;
    if (!line.is_merged()) return sums(line.own);
    return sums(p) && are_shares(p.better.sums, p.hosts) && are_shares(p.worse.sums, p.hosts);
}

}  // namespace

std::string FleetLineReader::read(std::string_view text) {
    static simdjson::dom::parser parser;  // with its buffers
    if (text.size() > kMostLine) return fmt::format("longer than {} bytes", kMostLine);
    object whole;
    if (parser.parse(text.data(), text.size()).get(whole) != simdjson::SUCCESS)
        return "no JSON object, or cut off";
    if (std::uint64_t other = 0; whole["v"].get(other) == simdjson::SUCCESS && other != kLineVersion)
        return fmt::format("version {}; this program reads {}", other, kLineVersion);
    line_ = {};
    std::string why;
    Reader at(whole, why);
    describe(at, line_);
    const std::string& origin = line_.key.reference_origin;
    if (line_.host.find_first_not_of("0123456789abcdef") != std::string::npos) at.refuse_value("host");
    if (origin != "kernel" && origin != "policy") at.refuse_value("reference_origin");
    if (line_.at > now_ + kClockSlack) at.refuse("\"at\" is in the future");
    if (!is_possible(line_)) at.refuse("evidence out of bounds: the stated pairs and hosts cannot give it");
    return why;
}

Json to_json(FleetLine line) {
    Json out;
    Writer at(out);
    describe(at, line);
    return out;
}

std::string text_of(const FleetLine& line) {
    return to_json(line).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace wq
