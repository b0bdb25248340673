// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/known_keys.h"

#include <algorithm>
#include <string>

namespace wq {
namespace {

struct Home {
    std::string_view name;
    std::string_view keys;  // each with a blank before and after it
};

// What each table is asked for is in policy_tables.cpp, judge_table.cpp, load_policy.cpp and host_when.cpp;
// a test compares.
constexpr Home kHomes[] = {
    {"in [daemon]", " mode on_exit apply_unjudged keep "},
    {"in [shard]", " size "},
    {"in [judge]", " alpha tolerance window washout max_pairs min_items counters retry_after jitter hours "},
    {"in [metrics]", " textfile "},
    {"in [default_scope]", " manage scope "},
    {"in [[workqueue]]", " match scope strict "},
    {"in [[host]]", " name when "},
    {"in when of [[host]]",
     " arch cpu_vendor cpu_model llc_cores cores numa_nodes smt kernel hostname virtual canary has "},
    {"at the top level", " daemon shard judge metrics default_scope workqueue host "},
};

}  // namespace

std::vector<std::string_view> homes_of(std::string_view key) {
    std::vector<std::string_view> out;
    const std::string word = " " + std::string(key) + " ";
    if (key.empty() || key.find(' ') != std::string_view::npos) return out;
    for (const Home& home : kHomes)
        if (home.keys.find(word) != std::string_view::npos) out.push_back(home.name);
    return out;
}

}  // namespace wq
