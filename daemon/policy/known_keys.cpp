// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/known_keys.h"

#include "policy/settings.h"

namespace wq {
namespace {

struct Home {
    std::string_view name;
    std::string_view keys;  // each with a space before and after it
};

// The keys of the tables that are not in settings(). policy_tables.cpp, load_policy.cpp and host_when.cpp
// read them; a test compares the lists.
constexpr Home kHomes[] = {
    {"in [[workqueue]]", " match scope candidates hold strict cpumask expires evidence "},
    {"in [[host]]", " name when "},
    {"in when of [[host]]",
     " arch cpu_vendor cpu_model llc_cores cores numa_nodes smt kernel hostname virtual canary has "},
    {"at the top level", " daemon shard judge metrics default_scope default_mask workqueue host "},
};

}  // namespace

std::vector<std::string> homes_of(std::string_view key) {
    std::vector<std::string> out;
    const std::string word = " " + std::string(key) + " ";
    if (key.empty() || key.find(' ') != std::string_view::npos) return out;
    for (const Setting& setting : settings())
        if (key == setting.key) out.push_back("in [" + std::string(setting.table) + "]");
    for (const Home& home : kHomes)
        if (home.keys.find(word) != std::string_view::npos) out.emplace_back(home.name);
    return out;
}

}  // namespace wq
