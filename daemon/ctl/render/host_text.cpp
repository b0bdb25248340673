// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/render/host_text.h"

#include <fmt/format.h>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "ctl/render/progress.h"
#include "ctl/render/terminal.h"
#include "evidence/comparison.h"
#include "machine/kernel_info.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

constexpr std::size_t kMostWork = 20;  // lines; --json has all

// The scopes whose pods differ from the model: "smt, cache".
std::string differing(const json& kernel) {
    std::string out;
    if (kernel.contains("pods"))
        for (const auto& [scope, pods] : kernel["pods"]["differ"].items())
            out += (out.empty() ? "" : ", ") + scope;
    return out;
}

std::string features_text(const json& kernel) {
    std::string text;
    for (const NamedFeature& feature : kFeatures) {
        const json known = kernel["features"].value(std::string(feature.name), json(nullptr));
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", feature.name,
                            !known.is_boolean() ? "unknown"
                            : known.get<bool>() ? "yes"
                                                : "no");
    }
    text = "\n" +
           wrapped(fmt::format("Kernel {}: {}", text_in(kernel, "release", "of an unknown release"), text));
    if (const std::string differ = differing(kernel); !differ.empty())
        text += wrapped(
            fmt::format("The kernel's pods of {} differ from those computed from the topology. Plans use the "
                        "kernel's pods; `wq-tunectl topology` shows them.",
                        differ));
    return text;
}

std::string work_text(const json& isolation) {
    const double seconds = isolation.value("work_seconds", 0.0);
    if (seconds <= 0)
        return "\n" + wrapped(
                          "Work on these CPUs is counted while pairs are measured; nothing was counted so "
                          "far, or no "
                          "daemon runs. `wq-tunectl status --isolation` counts it now.");
    std::string out =
        "\n" + wrapped(fmt::format(
                   "Work items that started on them, counted during experiments, {:.0f} s in all:", seconds));
    Table table({"ITEMS", "WORKQUEUE", "KIND", "FUNCTION"});
    const json work = isolation.value("work", json::array());
    for (std::size_t i = 0; i < work.size() && i < kMostWork; i++)
        table.add({std::to_string(work[i].value("items", std::uint64_t{0})),
                   text_in(work[i], "workqueue", "(soft interrupt)"), text_in(work[i], "kind", "-"),
                   text_in(work[i], "function", "-")});
    out += table.text();
    if (work.size() > kMostWork)
        out += fmt::format("and {} more; --json has them\n", work.size() - kMostWork);
    if (const auto lost = isolation.value("work_lost", std::uint64_t{0}); lost > 0)
        out += fmt::format("and {} of others, for which there was no room\n", plural(lost, "item"));
    return out;
}

}  // namespace

std::string isolated_cpus_text(const json& isolation) {
    Table table({"ISOLATED BY", "CPUS", "CGROUP"});
    bool any = false;
    const auto add = [&](const std::string& by, const std::string& cpus, const std::string& cgroup) {
        table.add({by, cpus, cgroup});
        any = true;
    };
    for (const char* name : {"isolcpus", "nohz_full"})
        if (const std::string cpus = text_in(isolation, name); !cpus.empty()) add(name, cpus, "-");
    for (const json& partition : isolation["partitions"])
        add(text_in(partition, "type") + " partition", text_in(partition, "cpus"),
            text_in(partition, "cgroup", "(not found)"));
    if (!any) return "";
    std::string out = table.text();
    if (isolation.value("partitions_complete", true)) return out;
    return out + wrapped("There are more cgroups than were looked at.");
}

std::string host_text(const json& status, bool verbose) {
    std::string out;
    if (verbose && status.contains("kernel")) out += features_text(status["kernel"]);
    if (!status.contains("isolation")) return out;
    const std::string cpus = isolated_cpus_text(status["isolation"]);
    return cpus.empty() ? out : out + "\n" + cpus + work_text(status["isolation"]);
}

std::string effect_text_of(const nlohmann::json& about) {
    const auto percent = about.value("effect_percent", nlohmann::json(nullptr));
    if (!percent.is_number()) return "";
    Effect effect{percent.get<double>(), {}};
    const auto interval = about.value("interval_percent", nlohmann::json(nullptr));
    if (interval.is_array()) effect.interval = {interval.at(0).get<double>(), interval.at(1).get<double>()};
    return about.value("counter", "") + " " + effect_text(effect);
}

std::string verdict_text(const nlohmann::json& record) {
    const auto text = [&](const char* key) { return record.value(key, ""); };
    std::string out = fmt::format("{} against {}: {}", text("candidate"), text("reference"), text("verdict"));
    if (const std::string reason = text("reason"); !reason.empty()) out += " (" + reason + ")";
    const std::string effect = effect_text_of(record);
    if (effect.empty()) return out;
    return fmt::format("{}, {} in {}", out, effect, plural(record.value("pairs", 0U), "pair"));
}

}  // namespace wq::ctl
