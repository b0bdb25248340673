// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "ctl/topology_source.h"
#include "temp_tree.h"

namespace wq::test {

inline std::vector<std::string> lists(const std::vector<CpuSet>& sets) {
    std::vector<std::string> out;
    out.reserve(sets.size());
    for (const auto& set : sets) out.push_back(set.list());
    return out;
}

inline std::vector<std::string> llcs(const Topology& topology) {
    std::vector<std::string> out;
    out.reserve(topology.llcs.size());
    for (const auto& llc : topology.llcs) out.push_back(llc.cpus.list());
    return out;
}

inline Topology must_read(const std::string& source) {
    auto topology = read_topology(source);
    if (!topology) throw std::runtime_error(topology.error().text);
    return *topology;
}

inline Topology read(const TempTree& tree) {
    return must_read("fsroot:" + tree.root());
}

// Returns the error of reading SOURCE; expects that hwloc prints nothing to stderr.
inline std::string why_not(const std::string& source) {
    testing::internal::CaptureStderr();
    const auto topology = read_topology(source);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << source;
    EXPECT_FALSE(topology) << source;
    return topology ? "" : topology.error().text;
}

// Makes the CPUs of LIST share FILE ("topology/thread_siblings" or "cache/index2/shared_cpu_map").
inline void share(TempTree& tree, const std::string& list, const std::string& file) {
    const CpuSet set = CpuSet::parse_list(list).value();
    unsigned bits = 0;
    for (const unsigned cpu : set.cpus()) bits |= 1U << cpu;
    for (const unsigned cpu : set.cpus()) {
        const std::string map = fmt::format("sys/devices/system/cpu/cpu{}/{}", cpu, file);
        tree.write(map, fmt::format("{:08x}\n", bits));
        tree.write((map.ends_with("_map") ? map.substr(0, map.size() - 4) : map) + "_list", list + "\n");
    }
}

}  // namespace wq::test
