// SPDX-License-Identifier: LGPL-2.1-or-later
// `explain NAME`: a target's plan, or what another name is and which targets have to do with it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/cpu_set.h"
#include "base/file.h"
#include "base/text.h"
#include "bpf/bpf_workqueues.h"
#include "ctl/commands/shown.h"
#include "ctl/device_mapper.h"
#include "ctl/kworker.h"
#include "ctl/render/status_text.h"
#include "ctl/render/terminal.h"
#include "evidence/json_values.h"
#include "machine/kernel_info.h"
#include "plan/pods.h"
#include "policy/policy_text.h"
#include "policy/rule_warnings.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

// What a name is that is not a target's.
struct KnownName {
    std::string kind;                  // "kworker", "block device", "mount point", "workqueue"
    std::vector<std::string> text;     // what it is and which workqueues it has to do with, in sentences
    std::vector<std::string> targets;  // those that serve it
};

// Workqueues of file systems that have no folder in sysfs.
constexpr std::pair<std::string_view, const char*> kOfFileSystem[] = {
    {"btrfs", "btrfs-*"},
    {"ceph", "ceph-*"},
    {"erofs", "erofs_*"},
    {"ext4", "ext4-rsv-conversion"},
    {"nfs", "nfsiod, rpciod, xprtiod"},
    {"nfs4", "nfsiod, rpciod, xprtiod"},
    {"xfs", "xfs-cil/*, xfs-blockgc/*"},
};

// Explains kworkers, block devices (/dev/dm-0, /dev/mapper/disk, dm-0), mount points, and workqueues that
// only @default reaches, by /sys and /proc below PATHS. Each function returns whether the name is of its
// kind.
class Names {
  public:
    Names(const Paths& paths, const std::vector<Workqueue>& targets) : paths_(paths), targets_(targets) {}

    // "kworker/u16:3" is a worker of the unbound pool 16; "kworker/3:1H" of CPU 3, with nice -20;
    // "kworker/R-NAME" the rescuer of a workqueue. "+NAME" follows while it runs work of NAME, "-NAME"
    // afterwards.
    bool kworker(std::string_view name) {
        constexpr std::string_view kKworker = "kworker/";
        if (!name.starts_with(kKworker)) return false;
        const std::string_view id = name.substr(kKworker.size());
        const auto colon = id.find(':');
        const auto sign = id.find_first_of("+-");
        std::string work(sign == std::string_view::npos ? "" : id.substr(sign + 1));
        out.kind = "kworker";
        if (id.starts_with("R-")) {
            say("The rescuer of {}: it runs work when memory is short.", work);
        } else if (id.starts_with('u')) {
            say("A worker of the unbound pool {}. It serves every workqueue that has this pool: it has no "
                "scope of its own, the scopes of workqueues say which pool their work goes to.",
                id.substr(1, colon - 1));
            for (const Kworker& each : read_kworkers(paths_))
                if (each.name == name.substr(0, name.find_first_of("+-")))
                    say("It may run on CPUs {}.", cpus_of_task(paths_, each.pid).list());
        } else {
            say("A worker of CPU {}. It serves per-CPU workqueues, which have no affinity scope.",
                id.substr(0, colon));
        }
        if (work.starts_with("flush-")) work = "writeback";  // wb_workfn() names its worker after the disk
        if (!work.empty() && !id.starts_with("R-"))
            say("{} {}.", id[sign] == '+' ? "It runs work of" : "Last it ran work of", work);
        if (is_target(work))
            out.targets.push_back(work);
        else
            (void)only_default(work);
        return true;
    }

    bool workqueue(const std::string& name) {
        constexpr std::string_view kPerCpu[] = {"events",      "events_freezable", "events_highpri",
                                                "events_long", "kblockd",          "mm_percpu_wq"};
        out.kind = "workqueue";
        if (std::ranges::find(kPerCpu, name) != std::end(kPerCpu)) {
            say("{} is a per-CPU workqueue: it has no affinity scope.", name);
            return true;
        }
        if (!only_default(name)) return false;
        if (is_target(kDefaultTarget)) out.targets.emplace_back(kDefaultTarget);
        return true;
    }

    // Finds the mount of PATH in /proc/self/mountinfo, see proc_pid_mountinfo(5). The kernel writes
    // blanks and backslashes there in octal.
    bool mount_point(const std::string& path) {
        std::istringstream mounts(read_file(paths_.proc() + "/self/mountinfo", 1U << 20U).value_or(""));
        std::string type;
        std::string source;
        std::string escaped;
        for (const char c : path)
            escaped += std::strchr(" \t\n\\", c) ? fmt::format("\\{:03o}", c) : std::string(1, c);
        for (std::string line; std::getline(mounts, line);) {
            std::istringstream words(line);
            std::string word;
            for (int i = 0; i < 5; i++) words >> word;  // the fifth is the mount point
            if (word != escaped) continue;
            while (words >> word && word != "-") {
            }
            words >> type >> source;  // the last of several mounts is the one that is seen
        }
        if (type.empty()) return false;
        say("{} is {} on {}.", path, type, source);
        if (source.starts_with("/dev/")) (void)device(source);
        out.kind = "mount point";
        for (const auto& [name, workqueues] : kOfFileSystem)
            if (name == type) say("Only @default reaches the workqueues of {}: {}.", type, workqueues);
        return true;
    }

    bool device(const std::string& name) {
        const std::string device = kernels_name(name);
        if (device.empty()) return false;
        out.kind = "block device";
        std::vector<std::string> below;
        std::vector<std::string> above;
        add_stack(device, "slaves", below);
        add_stack(device, "holders", above);
        below.erase(below.begin());
        above.erase(above.begin());
        const auto named = [this](const std::vector<std::string>& devices, const char* before) {
            std::vector<std::string> names;
            for (const std::string& each : devices) {
                const std::string number = number_of(each);
                take_targets_of(number);
                names.push_back(number.empty() || number[0] == ':' ? each
                                                                   : fmt::format("{} ({})", each, number));
            }
            return names.empty() ? "" : fmt::format("{}{}", before, fmt::join(names, ", "));
        };
        const std::string itself = named({device}, "");
        const std::string on = named(below, ", on ");
        say("{} is the block device {}{}{}.", name, itself, on, named(above, ", below "));
        if (out.targets.empty())
            say("No target has the number of one of these devices in its name.");
        else
            say("These targets serve it: {}.", fmt::join(out.targets, ", "));
        if (is_target("writeback")) say("The target writeback writes the dirty pages of all devices.");
        for (const auto& devices : {std::vector{device}, below, above})
            for (const std::string& each : devices) (void)only_default(each);
        return true;
    }

    KnownName out;

  private:
    template <class... T>
    void say(fmt::format_string<T...> format, T&&... values) {
        out.text.push_back(fmt::format(format, std::forward<T>(values)...));
    }
    [[nodiscard]] std::string blocks() const { return paths_.root + "/sys/class/block/"; }
    [[nodiscard]] bool is_target(const std::string& name) const {
        return std::ranges::find(targets_, name, &Workqueue::name) != targets_.end();
    }
    bool only_default(const std::string& name) {
        const std::string owner = why_only_default(name);
        if (owner.empty()) return false;
        say("{} ({}) has no folder in /sys/devices/virtual/workqueue: only @default reaches it.", name,
            owner);
        return true;
    }

    // The name in /sys/class/block of a path, a link or a name; "" if it is none.
    [[nodiscard]] std::string kernels_name(const std::string& name) const {
        std::error_code none;
        const auto real = std::filesystem::canonical(paths_.of_user("/" + name), none);
        std::string last = none ? name.substr(name.rfind('/') + 1) : real.filename().string();
        if (last.empty() || exists(blocks() + last + "/dev")) return last;
        if (last.starts_with("dm-") && last.find_first_not_of("0123456789", 3) > last.size()) return last;
        for (const std::string& each : names_or_none(blocks()))
            if (read_first_line(blocks() + each + "/dm/name") == last) return each;
        return "";
    }

    // The number of DEVICE; ":3" of dm-3 if /sys does not have it.
    [[nodiscard]] std::string number_of(const std::string& device) const {
        const std::string number = read_first_line(blocks() + device + "/dev");
        return number.empty() && device.starts_with("dm-") ? ":" + device.substr(3) : number;
    }

    // Appends the devices below or above the device NAME ("slaves", "holders") that are not in STACK.
    void add_stack(const std::string& name, const char* direction, std::vector<std::string>& stack) const {
        if (std::ranges::find(stack, name) != stack.end()) return;
        stack.push_back(name);
        for (const std::string& next : names_or_none(blocks() + name + "/" + direction))
            add_stack(next, direction, stack);
    }

    // The targets that have the number of a device in their names: kcryptd-254:0-1.
    void take_targets_of(const std::string& number) {
        const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
        for (const Workqueue& target : targets_) {
            const auto at = number.empty() ? std::string::npos : target.name.find(number);
            if (at == std::string::npos || at == 0) continue;
            const std::size_t end = at + number.size();
            const bool whole = (number[0] == ':' || !is_digit(target.name[at - 1])) &&
                               (end == target.name.size() || !is_digit(target.name[end]));
            if (whole && std::ranges::find(out.targets, target.name) == out.targets.end())
                out.targets.push_back(target.name);
        }
    }

    const Paths& paths_;
    const std::vector<Workqueue>& targets_;
};

std::optional<KnownName> known_name(const Paths& paths, const std::vector<Workqueue>& targets,
                                    const std::string& name) {
    Names names(paths, targets);
    const std::string path = name.size() > 1 && name.ends_with('/') ? name.substr(0, name.size() - 1) : name;
    if (names.kworker(name) || names.workqueue(name) || names.mount_point(path) || names.device(name))
        return std::move(names.out);
    return std::nullopt;
}

std::vector<std::string> pods_of_candidate(const Machine& machine, const PlanLine& line, const Candidate& c) {
    std::vector<std::string> out;
    for (const CpuSet& pod : restrict_to(
             pods_in(machine.kernel, c.scope, machine.topology, machine.shard_size), line.target.effective))
        out.push_back(pod.list());
    return out;
}

void print_candidate(const Machine& machine, const PlanLine& line, const Candidate& c) {
    constexpr std::size_t kMostLines = 4;  // for its pods
    std::vector<std::string_view> names;
    for (const Scope scope : c.same) names.insert(names.begin(), name_of(scope));
    const std::string cores = c.min_cores == c.max_cores
                                  ? plural(c.max_cores, "core")
                                  : fmt::format("{}..{} cores", c.min_cores, c.max_cores);
    print_text(fmt::format("{}: {} of {}", fmt::join(names, " = "), plural(c.pools, "pool"), cores), 2);
    auto lists = wrap(fmt::format("{}", fmt::join(pods_of_candidate(machine, line, c), "  ")),
                      std::max<std::size_t>(terminal_columns(), 20) - 6);
    if (lists.size() > kMostLines) {
        lists.resize(kMostLines);
        lists.back() = "... (all with --json)";
    }
    for (const std::string& list : lists) fmt::print("      {}\n", list);
}

// The daemon's status of TARGET; null if none runs with this kernel and policy.
json status_of(const Machine& machine, const std::string& target) {
    if (machine.status.is_object())
        for (const json& each : machine.status.at("targets"))
            if (each.value("name", "") == target) return each;
    return nullptr;
}

// Returns "cache with smt, then with cpu; at most 64 pairs of 5 s each", or why nothing is compared.
std::string compared_text(const Machine& machine, const ExperimentPlan& plan) {
    const TargetExperiments& target = plan.targets.front();
    if (target.candidates.empty()) return "nothing: " + target.reason;
    return fmt::format("{} with {}; at most {} pairs of {:g} s each", target.reference,
                       fmt::join(target.candidates, ", then with "), machine.policy.judge.settings.max_pairs,
                       plan.slot_seconds);
}

// What the mapping that TARGET belongs to keeps off it: empty for other targets. Error: as for
// read_crypt_bypass().
std::optional<Result<CryptBypass>> bypass_of(const Options& options, const std::string& target) {
    const std::string device = crypt_device_of(target);
    const auto tree = tree_of(options);
    if (device.empty() || !tree) return std::nullopt;
    return read_crypt_bypass(*tree, device);
}

std::string bypass_text(const Result<CryptBypass>& bypass) {
    if (bypass) return bypass->text();
    return bypass.error().code == EACCES || bypass.error().code == EPERM
               ? "not seen whether work bypasses this workqueue: only root may read it"
               : "";
}

// HELD_BACK: what holds the daemon back; "" if nothing does.
void print_explanation(const Machine& machine, const PlanLine& line, const json& target,
                       const std::string& held_back, const std::optional<Result<CryptBypass>>& bypass) {
    const auto row = [](const char* label, const std::string& text) {
        return std::vector{fmt::format("  {:<9}", label), text};
    };
    Table lines(row("kind", std::string(name_of(line.target.kind))));
    const auto add = [&](const char* label, const std::string& text) {
        if (!text.empty()) lines.add(row(label, text));
    };
    add("scope", scope_text(line.target.scope));
    add("CPUs", line.target.effective.list());
    add("rule", line.rule ? line.rule->text() : "none");
    const DefaultScope& table = machine.policy.default_scope;
    const bool is_default = line.target.kind == Kind::default_scope;
    const auto* rule = is_default || !line.rule ? nullptr : machine.policy.rule_for(line.target.name);
    add("until", is_default ? table.expires : rule != nullptr ? rule->expires : "");
    add("because", printable(is_default ? table.evidence : rule != nullptr ? rule->evidence : ""));
    if (bypass) add("mapping", bypass_text(*bypass));
    add("planned", planned_text(line));
    add("action", std::string(name_of(line.action)));
    add("reason", line.reason);
    add("compared", compared_text(machine, experiments_of(machine, {line})));
    add("held back", held_back);
    if (target.is_object()) {
        add("state", text_in(target, "state"));
        if (const auto verdict = target.value("verdict", json(nullptr)); verdict.is_object())
            add("verdict", verdict_text(verdict));
        if (const auto now = target.value("comparison", json(nullptr)); now.is_object())
            add("evidence", progress_text(now, wall_clock()));
        for (const auto& [label, text] : contention_lines(target)) add(label, text);
    }
    const char* label = "hosts";
    for (const std::string& host : host_lines(machine.policy)) add(std::exchange(label, ""), host);
    fmt::print("{}\n{}", printable(line.target.name), lines.text(terminal_columns(), false));
    if (line.candidates.empty()) return;
    print_text("candidates, coarsest first, with their pods:");
    for (const Candidate& c : line.candidates) print_candidate(machine, line, c);
}

// The plan line plus details that `plan` omits: the scopes of each candidate, its pods, and the host tables.
json explanation_json(const Machine& machine, const PlanLine& line, const json& target,
                      const std::string& held_back, const std::optional<Result<CryptBypass>>& bypass) {
    json out = plan_json(machine, line);
    out["held_back"] = word_or_null(held_back);
    const ExperimentPlan experiments = experiments_of(machine, {line});
    out["experiments"] = experiments_json(experiments.targets.front(), experiments.slot_seconds);
    for (const char* key : {"state", "outcome", "comparison", "contention", "verdict"})
        out[key] = target.is_object() ? target.value(key, json(nullptr)) : json(nullptr);
    out["hosts"] = hosts_json(machine.policy);
    out["bypass"] = bypass && *bypass ? json((*bypass)->options()) : json(nullptr);
    for (std::size_t i = 0; i < line.candidates.size(); i++) {
        const Candidate& c = line.candidates[i];
        for (const Scope scope : c.same) out["candidates"][i]["same"].push_back(name_of(scope));
        out["candidates"][i]["pods"] = pods_of_candidate(machine, line, c);
    }
    return out;
}

// Prints the explanations of the targets NAMES, or returns them with --json.
json explain_targets(const Options& options, const Machine& machine, const std::vector<std::string>& names) {
    const std::string held_back = why_held_back(options, machine);
    json out = json::array();
    for (const PlanLine& line : machine.plan()) {
        if (std::ranges::find(names, line.target.name) == names.end()) continue;
        const json target = status_of(machine, line.target.name);
        const auto bypass = bypass_of(options, line.target.name);
        if (options.json)
            out.push_back(explanation_json(machine, line, target, held_back, bypass));
        else
            print_explanation(machine, line, target, held_back, bypass);
    }
    return out;
}

int no_such_target(const Machine& machine, const std::string& name, const std::string& target) {
    std::vector<std::string_view> names;
    for (const Workqueue& each : machine.targets) names.push_back(each.name);
    const std::string nearest = suggestion(target, names);
    return complain(name + ": no such target" +
                    (nearest.empty() ? "; `wq-tunectl plan` lists them" : nearest));
}

}  // namespace

int explain(const Options& options, const std::string& name) {
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    const std::string target = name == "default" ? kDefaultTarget : sysfs_name(name);
    if (std::ranges::find(machine->targets, target, &Workqueue::name) != machine->targets.end()) {
        const json explained = explain_targets(options, *machine, {target});
        if (options.json) fmt::print("{}\n", json_text(explained.front()));
        return kOk;
    }
    if (const std::string lacks = lacks_scopes(machine->kernel); !lacks.empty()) return complain(lacks);
    const auto tree = tree_of(options);
    const auto known = tree ? known_name(*tree, machine->targets, name) : std::nullopt;
    if (!known) return no_such_target(*machine, name, target);
    if (!options.json) {
        for (const std::string& sentence : known->text) print_text(printable(sentence));
        if (!known->targets.empty()) fmt::print("\n");
    }
    json explained = explain_targets(options, *machine, known->targets);
    if (options.json)
        fmt::print("{}\n", json_text(json{{"name", name},
                                          {"kind", known->kind},
                                          {"text", known->text},
                                          {"targets", std::move(explained)}}));
    return kOk;
}

}  // namespace wq::ctl
