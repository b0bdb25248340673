// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/mask_places.h"

#include <fmt/format.h>

#include <algorithm>

namespace wq {
namespace {

std::string named(const CpuSet& cpus) {
    return fmt::format("CPU{} {}", cpus.count() == 1 ? "" : "s", cpus.list());
}

std::string why_refused(const CpuSet& mask, const HostCpus& cpus) {
    if (const CpuSet missing = mask - cpus.possible; !missing.empty())
        return fmt::format("cpumask has {}, which this host does not have ({})", named(missing),
                           cpus.possible.list());
    if (const CpuSet isolated = mask & cpus.isolated; !isolated.empty())
        return fmt::format("cpumask has isolated {} (isolcpus=, nohz_full=)", named(isolated));
    return "";
}

}  // namespace

void add_masks(std::vector<PlacedMask>& masks, const std::vector<PlacedMask>& later) {
    if (std::ranges::any_of(later, &PlacedMask::of_default))
        std::erase_if(masks, [](const PlacedMask& mask) { return mask.of_default; });
    masks.insert(masks.end(), later.begin(), later.end());
}

bool names_cpus(const std::vector<PlacedMask>& masks) {
    return std::ranges::any_of(masks, [](const PlacedMask& mask) { return !mask.cpus.empty(); });
}

PolicyErrors errors_about(const std::vector<PlacedMask>& masks, const HostCpus& cpus) {
    PolicyErrors out;
    if (cpus.possible.empty()) return out;
    for (const PlacedMask& mask : masks)
        if (const std::string why = why_refused(mask.cpus, cpus); !why.empty())
            out.push_back(mask.text->error(mask.place, why));
    return out;
}

}  // namespace wq
