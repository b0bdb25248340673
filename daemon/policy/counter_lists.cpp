// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/counter_lists.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>

#include "base/text.h"
#include "counters/counter_table.h"
#include "policy/quantity.h"

namespace wq {
namespace {

using Json = nlohmann::ordered_json;

// Why NAME is neither a counter nor one of MORE; "" if it is one of them.
std::string unknown(const std::string& name, const std::vector<std::string_view>& more) {
    const CounterKind* found = find_counter(name);
    if ((found != nullptr && !found->guard_only) || std::ranges::find(more, name) != more.end()) return "";
    std::vector<std::string_view> known;
    for (const CounterKind& kind : counter_kinds())
        if (!kind.guard_only) known.push_back(kind.name);
    known.insert(known.end(), more.begin(), more.end());
    if (const auto nearest = suggestion(name, known); !nearest.empty())
        return fmt::format("unknown counter {}{}", in_quotes(name), nearest);
    return fmt::format("unknown counter {}; known counters: {}", in_quotes(name), fmt::join(known, ", "));
}

// A counter's name and its place in the file.
struct Named {
    std::string counter;
    Place place;
};

// `counter` of TABLE, which must have it. Empty after a mistake.
std::optional<Named> read_name(TomlTable& table) {
    const auto name = table.string("counter");
    if (!table.has("counter"))
        table.error(table.place(), "this needs the name of a counter, such as counter = \"latency\"");
    if (!name) return std::nullopt;
    return Named{*name, table.place_of("counter")};
}

// Reports an element whose counter does not exist (MORE: other allowed names) or is already in SEEN. Adds it
// to SEEN.
void check(TomlTable& judge, const Named& named, std::vector<std::string>& seen,
           const std::vector<std::string_view>& more) {
    if (const auto why = unknown(named.counter, more); !why.empty())
        judge.error(named.place, why);
    else if (std::ranges::find(seen, named.counter) != seen.end())
        judge.error(named.place, fmt::format("counter {} is listed twice", in_quotes(named.counter)));
    seen.push_back(named.counter);
}

// The elements of KEY, at least LEAST. Empty if there is no such key, or after a mistake.
std::optional<std::vector<TomlItem>> read_list(TomlTable& judge, const char* key, std::size_t least) {
    auto items = judge.items(key, least);
    if (!items || items->size() <= kMaxCounters) return items;
    judge.error(judge.place_of(key),
                fmt::format("{} must have at most {} elements, not {}", key, kMaxCounters, items->size()));
    return std::nullopt;
}

}  // namespace

std::optional<std::vector<JudgedCounter>> read_counters(TomlTable& judge) {
    auto items = read_list(judge, "counters", 1);
    if (!items) return std::nullopt;
    std::vector<JudgedCounter> counters;
    std::vector<std::string> seen;
    for (TomlItem& item : *items) {
        std::optional<Named> named = Named{item.text, item.place};
        std::optional<std::string> higher;
        if (item.table) {
            named = read_name(*item.table);
            higher = item.table->word("higher", {"better", "worse"});
            item.table->reject_unknown_keys();
        }
        if (!named) continue;
        check(judge, *named, seen, {});
        counters.push_back(
            {named->counter, higher ? *higher == "better" : counter_higher_is_better(named->counter)});
    }
    return counters;
}

std::optional<std::vector<Guard>> read_guards(TomlTable& judge) {
    auto items = read_list(judge, "guards", 0);
    if (!items) return std::nullopt;
    std::vector<Guard> guards;
    std::vector<std::string> seen;
    for (TomlItem& item : *items) {
        if (!item.table) {
            judge.error(
                item.place,
                "an element of guards must be a table, such as { counter = \"cpu\", tolerance = \"5%\" }");
            continue;
        }
        const auto named = read_name(*item.table);
        const auto tolerance = item.table->parsed("tolerance", parse_tolerance);
        if (named && !item.table->has("tolerance"))
            judge.error(item.table->place(), "this needs a tolerance, such as tolerance = \"2%\"");
        item.table->reject_unknown_keys();
        if (!named) continue;
        check(judge, *named, seen, {"throughput", "cpu", kOthers});
        guards.push_back({named->counter, tolerance.value_or(0)});
    }
    return guards;
}

Json counters_json(const std::vector<JudgedCounter>& counters) {
    Json out = Json::array();
    for (const JudgedCounter& counter : counters)
        if (counter.higher_is_better == counter_higher_is_better(counter.name))
            out.push_back(counter.name);
        else
            out.push_back(
                {{"counter", counter.name}, {"higher", counter.higher_is_better ? "better" : "worse"}});
    return out;
}

Json guards_json(const std::vector<Guard>& guards) {
    Json out = Json::array();
    for (const Guard& guard : guards)
        out.push_back({{"counter", guard.counter}, {"tolerance", percentage_text(guard.tolerance)}});
    return out;
}

}  // namespace wq
