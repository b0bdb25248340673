// SPDX-License-Identifier: LGPL-2.1-or-later
//
// CPU lists and masks: "A;B", each read both ways, against std::set.
#include "model/cpu_set.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "fuzz.h"

using wq::CpuSet;
using wq::Result;
using wq::fuzz::require;
using Plain = std::set<unsigned>;

static Plain plain(const CpuSet& set) {
    const auto cpus = set.cpus();
    require(std::ranges::is_sorted(cpus), "CPUs ascend");
    return {cpus.begin(), cpus.end()};
}

static void check_one(const CpuSet& set) {
    const Plain cpus = plain(set);
    require(cpus.size() == set.count(), "as many CPUs as counted");
    require(cpus.empty() == set.empty(), "empty is without a CPU");
    require(cpus.empty() || *cpus.begin() == set.first(), "the first is the lowest");
    require(cpus.empty() || *cpus.rbegin() < CpuSet::kMaxCpus, "no CPU beyond the largest");
    const auto again = CpuSet::parse_list(set.list());
    require(again && *again == set, "what parses prints back and parses to the same");
    CpuSet made;
    for (const unsigned cpu : cpus) made.add(cpu);
    require(made == set, "equal sets compare equal, however they were made");
    if (set.empty()) return;
    made.remove(set.first());
    require(!made.has(set.first()) && made.count() == set.count() - 1, "a removed CPU is gone");
}

static void check_two(const CpuSet& a, const CpuSet& b) {
    const Plain pa = plain(a);
    const Plain pb = plain(b);
    Plain both;
    Plain either;
    Plain rest;
    std::ranges::set_intersection(pa, pb, std::inserter(both, both.end()));
    std::ranges::set_union(pa, pb, std::inserter(either, either.end()));
    std::ranges::set_difference(pa, pb, std::inserter(rest, rest.end()));
    require(plain(a & b) == both, "&");
    require(plain(a | b) == either, "|");
    require(plain(a - b) == rest, "-");
    require((a - b) == (a - (a & b)), "- in two ways");
    require(a.intersects(b) == !both.empty(), "intersects()");
    require(a.contains(b) == (both == pb), "contains()");
}

// The set, if TEXT is one.
static std::optional<CpuSet> accepted(const Result<CpuSet>& set) {
    if (set) check_one(*set);
    require(set || (!set.error().text.empty() && set.error().code != 0), "what is refused has a reason");
    return set ? std::optional(*set) : std::nullopt;
}

FUZZ_TARGET(cpu_set) {
    const auto cut = text.find(';');
    const std::string_view one = text.substr(0, cut);
    const std::string_view two = cut == std::string_view::npos ? "" : text.substr(cut + 1);
    for (const auto parse : {CpuSet::parse_list, CpuSet::parse_mask}) {
        const auto a = accepted(parse(one));
        const auto b = accepted(parse(two));
        if (a && b) check_two(*a, *b);
    }
}
