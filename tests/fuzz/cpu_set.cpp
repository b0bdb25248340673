// SPDX-License-Identifier: LGPL-2.1-or-later
//
// CPU lists and masks: "A;B", each parsed both as list and as mask, compared with std::bitset.
#include "base/cpu_set.h"

#include <algorithm>
#include <bitset>
#include <optional>

#include "fuzz.h"

using wq::CpuSet;
using wq::Result;
using wq::fuzz::require;
using Plain = std::bitset<CpuSet::kMaxCpus>;

static Plain plain(const CpuSet& set) {
    const auto cpus = set.cpus();
    require(std::ranges::is_sorted(cpus), "CPUs ascend");
    require(cpus.empty() || cpus.back() < CpuSet::kMaxCpus, "no CPU beyond the largest");
    Plain out;
    for (const unsigned cpu : cpus) out.set(cpu);
    require(out.count() == cpus.size(), "each CPU is there once");
    return out;
}

static void check_one(const CpuSet& set) {
    const Plain cpus = plain(set);
    require(cpus.count() == set.count(), "as many CPUs as counted");
    require(cpus.none() == set.empty(), "empty is without a CPU");
    const auto again = CpuSet::parse_list(set.list());
    require(again && *again == set, "what parses prints back and parses to the same");
    CpuSet made;
    for (const unsigned cpu : set.cpus()) made.add(cpu);
    require(made == set, "equal sets compare equal, however they were made");
    if (set.empty()) return;
    require(set.cpus().front() == set.first(), "the first is the lowest");
    made.remove(set.first());
    require(!made.has(set.first()) && made.count() == set.count() - 1, "a removed CPU is gone");
}

static void check_two(const CpuSet& a, const CpuSet& b) {
    const Plain pa = plain(a);
    const Plain pb = plain(b);
    require(plain(a & b) == (pa & pb), "&");
    require(plain(a | b) == (pa | pb), "|");
    require(plain(a - b) == (pa & ~pb), "-");
    require((a - b) == (a - (a & b)), "- in two ways");
    require(a.intersects(b) == (pa & pb).any(), "intersects()");
    require(a.contains(b) == ((pa & pb) == pb), "contains()");
}

// Returns the set, if it was accepted.
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
