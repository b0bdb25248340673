// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/fleet_line.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

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

// hash = i (mod n) and hash = j (mod m) have a common solution if i = j modulo gcd(n, m).
bool Shard::overlaps(const Shard& other) const {
    const std::uint32_t common = std::gcd(of, other.of);
    return (index - 1) % common == (other.index - 1) % common;
}

bool Shard::is_within(const Shard& other) const {
    return of % other.of == 0 && overlaps(other);
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

std::size_t FleetKeyHash::operator()(const FleetKey& key) const {
    std::size_t out = 0;
    const auto mix = [&out](const auto&... parts) {
        ((out = out * 0x9e3779b97f4a7c15U + std::hash<std::decay_t<decltype(parts)>>()(parts)), ...);
    };
    // The fields by which most keys differ.
    mix(key.machine.model, key.machine.cores, key.kind, key.reference, key.candidate, key.counter,
        key.topology);
    return out;
}

// Not an unnamed namespace: FleetLineReader has a member of its types.
namespace fleet_line_keys {

using Json = nlohmann::ordered_json;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr std::uint64_t kLineVersion = 1;
// A host's numbers have narrower bounds than a sum, so that a sum of hosts can always be read again.
constexpr std::uint64_t kMostOfHost = UINT32_MAX;  // pairs, alarms; parts of a machine
constexpr double kMostNumber = 1e24;               // of any number
constexpr double kMostCount = 9007199254740992.0;  // 2^53: each whole number up to here is a double
constexpr double kMostDifference = 20;             // |d|, on average: one arm costs 5e8 times as much
constexpr double kRounding = 1e-6;                 // of a sum, as a fraction

// What a value must be, for people, and the bounds of its number, of each of its numbers, or of its length.
struct Bound {
    std::string_view what;
    double least = 0;
    double most = 0;
    bool (*accepts)(const std::string&) = nullptr;
};
constexpr Bound kText{"a string of at most 255 bytes without control characters", 0, 255};
constexpr Bound kClass{"a string of 1 to 64 bytes without control characters", 1, 64};
constexpr Bound kHost{"1 to 64 hex digits in lower case", 1, 64, [](const std::string& text) {
                          return text.find_first_not_of("0123456789abcdef") == std::string::npos;
                      }};
constexpr Bound kOrigin{"kernel or policy", 6, 6,
                        [](const std::string& text) { return text == "kernel" || text == "policy"; }};
constexpr Bound kName{"a machine", 0, 64};
constexpr Bound kModel{"a machine", 0, 128};
constexpr Bound kParts{"a machine", 0, kMostOfHost};
constexpr Bound kVersion{"a version", kLineVersion, kLineVersion};
constexpr Bound kCount{"a whole number, 0 to 2^53", 0, kMostCount};
constexpr Bound kHosts{"a whole number, 1 to 10^9", 1, 1e9};
constexpr Bound kPools{"two counts", 0, kMostCount};
constexpr Bound kFlag{"true or false"};
constexpr Bound kTolerance{"a number, 0 to 1", 0, 1};
constexpr Bound kNumber{"a finite number within bounds", -kMostNumber, kMostNumber};
constexpr Bound kSquares{"a finite number within bounds", 0, kMostNumber};
constexpr Bound kLogs{"an array of 7 finite numbers within bounds", -kMostNumber, kMostNumber};
constexpr Bound kSpread{"seven sums of hosts", -kMostNumber, kMostNumber};
constexpr Bound kWeight{"seven sums of hosts", 0, kMostNumber};
constexpr Bound kSpreadHosts{"seven sums of hosts", 0, kMostCount};
constexpr Bound kAfter{"an object with sums of pairs", -kMostNumber, kMostNumber};
constexpr Bound kAfterCount{"an object with sums of pairs", 0, kMostCount};
constexpr Bound kAfterSquares{"an object with sums of pairs", 0, kMostNumber};
constexpr Bound kShards{R"(an array of shards like "1/4" that do not overlap)"};

using Counts = std::array<std::uint64_t, 2>;
// Where the value of a key is. The first one stands for an object.
using Slot =
    std::variant<std::monostate, std::string*, std::int64_t*, std::uint64_t*, std::optional<std::uint64_t>*,
                 double*, bool*, StakeLogs*, Counts*, Spread::Host*, Shards*>;
enum class In {
    each,     // line, or each object of its kind
    host,     // each host's line
    merged,   // each merged line
    by_host,  // a merged line: a result of single hosts, which lines of other programs may lack
    some,     // lines; those of other programs may lack it
    known,    // a machine: absent or null if it is not known
};
struct Field {
    std::string_view object;  // "" for a key of the line itself
    std::string_view name;
    In in;
    const Bound& bound;
    Slot slot;
};

// The keys, in the order in which lines are written, which is also the order in which most are read. The
// evidence of a host is in LINE.pooled, too. LINE and VERSION must outlive the result.
auto fields_of(FleetLine& line, std::uint64_t& version) {
    FleetKey& k = line.key;
    Pooled& p = line.pooled;
    Spread& s = p.spread;
    using enum In;
    return std::to_array<Field>({
        {"", "v", each, kVersion, &version},
        {"", "host", host, kHost, &line.host},
        {"", "at", each, kCount, &line.at},
        {"", "hosts", merged, kHosts, &p.hosts},
        {"", "machine", each, kName, {}},
        {"machine", "arch", known, kName, &k.machine.arch},
        {"machine", "vendor", known, kName, &k.machine.vendor},
        {"machine", "model", known, kModel, &k.machine.model},
        {"machine", "packages", known, kParts, &k.machine.packages},
        {"machine", "cores", known, kParts, &k.machine.cores},
        {"machine", "llc_cores", known, kParts, &k.machine.llc_cores},
        {"", "kernel", each, kText, &k.kernel},
        {"", "topology", each, kText, &k.topology},
        {"", "scheduler", each, kText, &k.scheduler},
        {"", "class", each, kClass, &k.kind},
        {"", "reference", each, kText, &k.reference},
        {"", "reference_origin", each, kOrigin, &k.reference_origin},
        {"", "candidate", each, kText, &k.candidate},
        {"", "partitions", each, kPools, &k.partitions},
        {"", "strict", each, kFlag, &k.strict},
        {"", "counter", each, kText, &k.counter},
        {"", "guard", some, kFlag, &k.guard},
        {"", "tolerance", each, kTolerance, &k.tolerance},
        {"", "window", each, kText, &k.window},
        {"", "n", each, kCount, &p.alarms},
        {"", "pairs", each, kCount, &p.pairs},
        {"", "better", each, kLogs, &p.better.sums},
        {"", "worse", each, kLogs, &p.worse.sums},
        {"", "sum", each, kNumber, &p.sum},
        {"", "squares", each, kSquares, &p.squares},
        {"", "after", some, kAfter, {}},
        {"after", "pairs", each, kAfterCount, &p.after.pairs},
        {"after", "sum", each, kAfter, &p.after.sum},
        {"after", "squares", each, kAfterSquares, &p.after.squares},
        {"", "hosts_better", by_host, kCount, &p.better.hosts},
        {"", "hosts_worse", by_host, kCount, &p.worse.hosts},
        {"", "hosts_below", by_host, kCount, &p.better.votes},
        {"", "hosts_above", by_host, kCount, &p.worse.votes},
        {"", "hosts_after", by_host, kCount, &p.hosts_after},
        {"", "top_better", by_host, kLogs, &p.better.top},
        {"", "top_worse", by_host, kLogs, &p.worse.top},
        {"", "spread", by_host, kSpread, {}},
        {"spread", "hosts", each, kSpreadHosts, &s.hosts},
        {"spread", "weight", each, kWeight, &s.weight},
        {"spread", "weight_squares", each, kWeight, &s.weight_squares},
        {"spread", "sum", each, kSpread, &s.sum},
        {"spread", "squares", each, kWeight, &s.squares},
        {"spread", "least", each, kSpread, &s.least},
        {"spread", "most", each, kSpread, &s.most},
        {"", "shards", merged, kShards, &line.shards},
    });
}
using Fields = decltype(fields_of(std::declval<FleetLine&>(), std::declval<std::uint64_t&>()));
using FoundKeys = std::bitset<std::tuple_size_v<Fields>>;  // which of the fields a line has

bool has_control_character(std::string_view utf8) {
    unsigned char before = 0;
    for (const char each : utf8) {
        const auto c = static_cast<unsigned char>(each);
        if (c < 0x20 || c == 0x7f || (before == 0xc2 && c < 0xa0)) return true;  // the last ones are C1
        before = c;
    }
    return false;
}

// Puts VALUE into the slot of FIELD. False if it is not what the field must be.
struct Put {
    const Field& field;
    const element& value;

    [[nodiscard]] bool is_bounded(double number) const {
        return number >= field.bound.least && number <= field.bound.most;
    }
    bool operator()(std::monostate /*object*/) const { return false; }
    bool operator()(std::string* out) const {
        if (value.is_null()) return field.in == In::known;
        std::string_view text;
        if (value.get(text) != simdjson::SUCCESS || !is_bounded(static_cast<double>(text.size())))
            return false;
        *out = text;
        return !has_control_character(text) && (field.bound.accepts == nullptr || field.bound.accepts(*out));
    }
    // Changes -0 to 0, as which it would not be written.
    bool operator()(double* out) const {
        double number = 0;
        if (value.get(number) != simdjson::SUCCESS || !is_bounded(number)) return false;
        *out = number + 0.0;
        return true;
    }
    template <class Int>
    requires std::is_same_v<Int, std::uint64_t> || std::is_same_v<Int, std::int64_t>
    bool operator()(Int* out) const {
        double number = 0;
        if (!(*this)(&number) || number != std::floor(number)) return false;
        *out = static_cast<Int>(number);
        return true;
    }
    bool operator()(std::optional<std::uint64_t>* out) const {
        return value.is_null() || (*this)(&out->emplace());
    }
    bool operator()(bool* out) const { return value.get(*out) == simdjson::SUCCESS; }
    // Puts the values of an array, in their order, where OUTS point.
    template <class... Out>
    bool each_into(Out*... outs) const {
        simdjson::dom::array all;
        if (value.get(all) != simdjson::SUCCESS || all.size() != sizeof...(outs)) return false;
        auto at = all.begin();
        const auto put = [&](auto* out) {
            const element one = *at;
            ++at;
            return Put{field, one}(out);
        };
        return (put(outs) && ...);
    }
    template <class T, std::size_t N>
    bool operator()(std::array<T, N>* out) const {
        return std::apply([&](auto&... each) { return each_into(&each...); }, *out);
    }
    bool operator()(Spread::Host* out) const {
        return each_into(&out->mean, &out->weight) && out->weight >= 0;
    }
    bool operator()(Shards* out) const {
        simdjson::dom::array all;
        if (value.get(all) != simdjson::SUCCESS || all.size() == 0) return false;
        for (const element each : all) {
            std::string_view text;
            const auto shard = each.get(text) == simdjson::SUCCESS ? shard_named(text) : std::nullopt;
            if (!shard || out->overlaps(*shard)) return false;
            out->add(*shard);
        }
        return true;
    }
};

// Puts the members of OBJECT into FIELDS, and those of the objects in it: PARENT is its name. SEEN: which
// fields were found. Returns why the line is refused.
std::string take_members(const object& members, std::string_view parent, const Fields& fields,
                         FoundKeys& seen) {
    std::size_t next = 0;  // mostly it is the field after the previous one
    for (const auto& [name, value] : members) {
        const auto matches = [&, name = name](const Field& f) {
            return f.name == name && f.object == parent;
        };
        if (next == fields.size() || !matches(fields[next]))
            next = static_cast<std::size_t>(std::ranges::find_if(fields, matches) - fields.begin());
        if (next == fields.size()) continue;
        if (seen[next]) return fmt::format("\"{}\" is there twice", name);
        seen.set(next);
        const Field& field = fields[next++];
        if (object inner;
            std::holds_alternative<std::monostate>(field.slot) && value.get(inner) == simdjson::SUCCESS) {
            if (std::string why = take_members(inner, name, fields, seen); !why.empty()) return why;
        } else if (!std::visit(Put{field, value}, field.slot)) {
            return fmt::format("\"{}\" is not {}", parent.empty() ? name : parent, field.bound.what);
        }
    }
    return {};
}

std::string why_incomplete(const Fields& fields, const FoundKeys& seen, bool merged) {
    std::string_view object;  // which the line has
    for (std::size_t i = 0; i < fields.size(); i++) {
        const auto& [parent, name, in, bound, slot] = fields[i];
        if (seen[i] && std::holds_alternative<std::monostate>(slot)) object = name;
        const bool allowed = merged ? in != In::host : in != In::merged && in != In::by_host;
        if (seen[i] && !allowed)
            return fmt::format("\"{}\" is not allowed in a {} line", name, merged ? "merged" : "host's");
        if (seen[i] || !allowed || in == In::by_host || in == In::some || in == In::known) continue;
        if (parent.empty()) return fmt::format("there is no \"{}\"", name);
        if (parent == object) return fmt::format("\"{}\" is not {}", parent, bound.what);
    }
    return {};
}

bool has_results_of_hosts(const Fields& fields, const FoundKeys& seen) {
    for (std::size_t i = 0; i < fields.size(); i++)
        if (fields[i].in == In::by_host && !seen[i]) return false;
    return true;
}

bool has_guard(const Fields& fields, const FoundKeys& seen) {
    return seen[static_cast<std::size_t>(std::ranges::find(fields, std::string_view("guard"), &Field::name) -
                                         fields.begin())];
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

// Whether these sums can be of some of PAIRS pairs.
bool are_among(const DifferenceSums& after, std::uint64_t pairs) {
    return after.pairs <= pairs && are_sums(after.pairs, after.sum, after.squares);
}

bool is_of_hosts(const Pooled& p) {
    const std::uint64_t most = std::max(
        {p.better.hosts, p.worse.hosts, p.better.votes, p.worse.votes, p.spread.hosts, p.hosts_after});
    StakeLogs loudest{};  // the upper bound, if the largest shares are not known
    loudest.fill(share_of(kMostLog));
    return most <= p.hosts && are_shares(p.better.sums, p.by_host ? p.better.top : loudest, p.hosts) &&
           are_shares(p.worse.sums, p.by_host ? p.worse.top : loudest, p.hosts);
}

// Whether the pairs and hosts can give the values that were read.
bool is_possible(const FleetLine& line) {
    const HostEvidence& own = line.own;
    const Pooled& p = line.pooled;
    if (line.is_merged())
        return are_sums(p.pairs, p.sum, p.squares) && are_among(p.after, p.pairs) && is_of_hosts(p);
    return are_among(own.after, own.pairs) && own.pairs <= kMostOfHost && own.alarms <= kMostOfHost &&
           are_sums(own.pairs, own.sum, own.squares) && are_logs(own.better, own.pairs) &&
           are_logs(own.worse, own.pairs);
}

// The value in a slot as JSON.
struct JsonOf {
    In in;

    template <class T>
    Json operator()(T* value) const {
        return *value;
    }
    Json operator()(std::monostate) const { return {}; }
    Json operator()(std::string* text) const {
        return in == In::known && text->empty() ? Json() : Json(*text);
    }
    Json operator()(std::optional<std::uint64_t>* count) const { return *count ? Json(**count) : Json(); }
    Json operator()(Spread::Host* host) const { return {host->mean, host->weight}; }
    Json operator()(Shards* shards) const {
        Json out = Json::array();
        for (const Shard& shard : shards->all()) out.push_back(shard.text());
        return out;
    }
};

}  // namespace fleet_line_keys
using namespace fleet_line_keys;

// The keys are made once for all lines.
struct FleetLineReader::Draft {
    FleetLine line;
    std::uint64_t version = 0;
    const Fields fields = fields_of(line, version);
    simdjson::dom::parser parser;
};

FleetLineReader::FleetLineReader(std::int64_t now) : now_(now), draft_(std::make_unique<Draft>()) {}
FleetLineReader::~FleetLineReader() = default;

const FleetLine& FleetLineReader::line() const {
    return draft_->line;
}

std::string FleetLineReader::read(std::string_view text) {
    if (text.size() > kMostLine) return fmt::format("longer than {} bytes", kMostLine);
    auto& [line, version, fields, parser] = *draft_;
    line = {};
    line.key.guard = true;
    FoundKeys seen;
    object whole;
    if (parser.parse(text.data(), text.size()).get(whole) != simdjson::SUCCESS)
        return "no JSON object, or cut off";
    if (std::uint64_t other = 0; whole["v"].get(other) == simdjson::SUCCESS && other != kLineVersion)
        return fmt::format("version {}; this program reads {}", other, kLineVersion);
    if (std::string why = take_members(whole, "", fields, seen); !why.empty()) return why;
    if (std::string why = why_incomplete(fields, seen, line.is_merged()); !why.empty()) return why;
    if (line.at == 0) return "\"at\" is 0";
    if (line.at > now_ + kClockSlack) return "\"at\" is in the future";
    lacks_guard_ = !has_guard(fields, seen);
    if (!line.is_merged()) {
        const Pooled p = std::exchange(line.pooled, {});
        line.own = {p.alarms, p.pairs, p.better.sums, p.worse.sums, p.sum, p.squares, p.after};
    } else if (!has_results_of_hosts(fields, seen)) {
        line.pooled.forget_hosts();
    }
    if (!is_possible(line)) return "evidence out of bounds: the stated pairs and hosts cannot give it";
    return {};
}

Json to_json(FleetLine line) {
    const bool merged = line.is_merged();
    if (const HostEvidence& own = line.own; !merged)
        line.pooled = {0,  own.alarms, own.pairs, {own.better}, {own.worse}, own.sum, own.squares,
                       {}, false,      0,         own.after};
    std::uint64_t version = kLineVersion;
    Json out;
    for (const auto& [object, name, in, bound, slot] : fields_of(line, version)) {
        if (in == (merged ? In::host : In::merged)) continue;
        if ((in == In::by_host || object == "spread") && !line.pooled.by_host) continue;
        if (object == "after" && merged && line.pooled.after.pairs == 0) continue;
        const Json value = std::visit(JsonOf{in}, slot);
        if (!std::holds_alternative<std::monostate>(slot))
            (object.empty() ? out : out[std::string(object)])[std::string(name)] = value;
    }
    return out;
}

std::string text_of(const FleetLine& line) {
    return to_json(line).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace wq
