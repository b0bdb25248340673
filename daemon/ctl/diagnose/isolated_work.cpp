// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/diagnose/isolated_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "ctl/json_values.h"
#include "ctl/render/terminal.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostFindings = 12;
constexpr std::size_t kMostOrigins = 3;

IsolatedFinding finding_of(const IsolatedWork& one,
                           const std::map<std::uint64_t, KernelWorkqueue>& workqueues) {
    IsolatedFinding out{"", "", one.function, one.items, one.origins};
    const auto at = workqueues.find(one.workqueue);
    if (one.workqueue != 0 && at != workqueues.end()) {
        out.workqueue = at->second.name;
        out.kind = at->second.unbound ? "unbound" : "per-cpu";
    } else if (one.workqueue != 0) {
        out.workqueue = "an unknown workqueue";
    }
    return out;
}

std::string head_of(const IsolatedFinding& one, const CpuSet& isolated) {
    std::string of = " in a soft interrupt";
    if (!one.workqueue.empty()) of = " of " + printable(one.workqueue);
    if (!one.kind.empty()) of += fmt::format(" ({})", one.kind == "per-cpu" ? "per-CPU" : one.kind);
    return fmt::format("{} of {}{} on isolated CPUs {}", plural(one.items, "item"),
                       one.function.empty() ? "an unknown function" : printable(one.function), of,
                       isolated.list());
}

std::string text_of(const WorkOrigin& origin) {
    return origin.timer ? fmt::format("{} queued by a timer on CPU {}", origin.items, origin.cpu)
                        : fmt::format("{} queued on CPU {}, where {} ran", origin.items, origin.cpu,
                                      printable(origin.task));
}

}  // namespace

std::vector<IsolatedFinding> isolated_findings(const std::vector<IsolatedWork>& work,
                                               const std::map<std::uint64_t, KernelWorkqueue>& workqueues) {
    std::vector<IsolatedFinding> out;
    for (const auto& one : work)
        if (one.items > 0) out.push_back(finding_of(one, workqueues));
    std::ranges::stable_sort(out, std::ranges::greater{}, &IsolatedFinding::items);
    return out;
}

void tell_isolated(Paragraphs& out, const std::vector<IsolatedFinding>& findings, const CpuSet& isolated) {
    for (std::size_t i = 0; i < std::min(findings.size(), kMostFindings); i++) {
        const IsolatedFinding& one = findings[i];
        out.begin(head_of(one, isolated));
        for (std::size_t k = 0; k < std::min(one.origins.size(), kMostOrigins); k++)
            out.say(text_of(one.origins[k]));
        if (one.origins.size() > kMostOrigins)
            out.say(fmt::format("and from {} more", plural(one.origins.size() - kMostOrigins, "place")));
        if (one.kind == "unbound")
            out.say(
                "The cpumask of this workqueue and the mask of all unbound workqueues decide where it runs.");
    }
    if (findings.size() > kMostFindings)
        out.say(fmt::format("and {} more", plural(findings.size() - kMostFindings, "function")));
}

Json isolated_json(const std::vector<IsolatedFinding>& findings) {
    Json out = Json::array();
    for (const auto& one : findings) {
        Json origins = Json::array();
        for (const auto& origin : one.origins)
            origins.push_back({{"timer", origin.timer},
                               {"cpu", origin.cpu},
                               {"task", word_or_null(origin.task)},
                               {"items", origin.items}});
        out.push_back({{"workqueue", word_or_null(one.workqueue)},
                       {"kind", word_or_null(one.kind)},
                       {"function", one.function},
                       {"items", one.items},
                       {"origins", std::move(origins)}});
    }
    return out;
}

}  // namespace wq::ctl
