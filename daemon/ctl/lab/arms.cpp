// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/text.h"
#include "machine/topology.h"
#include "machine/workqueue_fs.h"
#include "owned/owned.h"
#include "owned/writer.h"
#include "plan/pods.h"

namespace wq::lab {
namespace {

constexpr std::string_view kStrict = ":strict";

Arm plain(Scope scope) {
    return {scope, std::string(name_of(scope)), {}};
}

}  // namespace

std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> out;
    for (;;) {
        const auto comma = text.find(',');
        out.emplace_back(text.substr(0, comma));
        if (comma == std::string_view::npos) return out;
        text.remove_prefix(comma + 1);
    }
}

Result<std::vector<Arm>> parse_arms(std::string_view text) {
    std::vector<Arm> arms;
    for (const std::string& word : split(text)) {
        const bool strict = word.ends_with(kStrict);
        const auto scope = scope_named(word.substr(0, word.size() - (strict ? kStrict.size() : 0)));
        if (!scope) return fail(fmt::format("'{}' is not a scope", word), EINVAL);
        Arm arm = plain(*scope);
        if (strict) arm.strict = true;
        if (std::ranges::find(arms, arm) != arms.end())
            return fail(fmt::format("'{}' is named twice", word), EINVAL);
        arms.push_back(std::move(arm));
    }
    if (arms.size() < 2) return fail("at least two arms are needed", EINVAL);
    if (std::ranges::any_of(arms, [](const Arm& a) { return a.strict.has_value(); }))
        for (Arm& arm : arms) arm.strict = arm.strict.has_value();
    return arms;
}

namespace {

PlanLine plan_by_cpus(const ScopesOf& machine, Workqueue target) {
    Policy policy;
    policy.rules = {{{"*"}, {}, {}, {}}};
    KernelInfo without_option = machine.kernel;
    without_option.default_on_cmdline = false;
    KnownCpus known;
    known.see(machine.topology);
    const std::vector<Workqueue> targets{std::move(target)};
    const unsigned size = effective_shard_size(machine.kernel, policy);
    return make_plan({machine.topology, without_option, policy, targets,
                      why_pods_unknown(machine.topology, known.cpus(), machine.kernel, size), size})
        .front();
}

Result<std::vector<Arm>> arms_to_sweep(const PlanLine& line, const KernelInfo& kernel, bool all) {
    const auto now = line.target.scope.effective;
    if (!now || (line.candidates.empty() && !all)) return fail(fmt::format("{}; name --arms", line.reason));
    if (line.candidates.size() == 1) return fail("all scopes make the same pools here; nothing to compare");
    std::vector<Arm> arms{plain(*now)};
    for (const Candidate& c : line.candidates)
        if (!all && &c != candidate_with(line, *now)) arms.push_back(plain(c.scope));
    for (auto scope = kernel.scopes.rbegin(); all && scope != kernel.scopes.rend(); ++scope)
        if (*scope != *now) arms.push_back(plain(*scope));
    return arms;
}

// Why ARMS cannot be compared on LINE's target; "" if they can.
std::string why_not(const PlanLine& line, const std::vector<Arm>& arms, const KernelInfo& kernel) {
    if (!line.target.untouchable.empty()) return line.target.untouchable;
    const bool parameter = line.target.kind == Kind::default_scope;
    if (parameter && !kernel.default_writable) return "the module parameter cannot be written";
    for (const Arm& arm : arms) {
        if (!kernel.has(arm.scope)) return fmt::format("this kernel has no {}", name_of(arm.scope));
        if (arm.strict && parameter) return "the module parameter has no strictness";
    }
    return "";
}

Status check_not_set(const Paths& paths, const std::string& target) {
    OwnedStore store(paths.owned());
    if (auto loaded = store.load(); !loaded) return loaded;
    const Owned* entry = store.find(target);
    if (entry == nullptr || is_back(WorkqueueFs(paths), *entry)) return {};
    return fail("it may hold a setting that wq-tuned left; `wq-tunectl undo` prints the way back");
}

// The files of TARGET.
std::vector<Setting> settings_of(const Paths& paths, const Workqueue& target, const std::vector<Arm>& arms,
                                 const KernelInfo& kernel) {
    const bool parameter = target.kind == Kind::default_scope;
    const std::string folder = paths.workqueues() + "/" + target.name;
    Setting scope{parameter ? paths.parameters() + "/default_affinity_scope" : folder + "/affinity_scope",
                  {},
                  Form::word};
    Setting strict{folder + "/affinity_strict", {}, Form::word};
    for (const Arm& arm : arms) {
        scope.values.push_back(arm.word);
        if (arm.strict) strict.values.emplace_back(*arm.strict ? "1" : "0");
    }
    // The parameter ignores a write of its current word (kernel/workqueue.c, wq_affn_dfl_set()). Scopes that
    // no arm uses come first: with such a scope in between, every switch costs the same two moves.
    for (const bool spare : {true, false})
        for (const Scope each : kernel.scopes)
            if (parameter &&
                std::ranges::none_of(arms, [&](const Arm& a) { return a.scope == each; }) == spare)
                scope.vias.emplace_back(name_of(each));
    std::vector<Setting> out{std::move(scope)};
    if (!strict.values.empty()) out.push_back(std::move(strict));
    return out;
}

}  // namespace

Result<Subject> scope_arms(const Paths& paths, const ScopesOf& machine, Workqueue target,
                           std::vector<Arm> arms, bool all) {
    const std::string name = target.name;
    if (auto free = check_not_set(paths, name); !free) return tl::unexpected(free.error().in(name));
    const PlanLine line = plan_by_cpus(machine, std::move(target));
    if (const auto why = why_not(line, arms, machine.kernel); !why.empty()) return fail(name + ": " + why);
    if (arms.empty()) {
        auto swept = arms_to_sweep(line, machine.kernel, all);
        if (!swept) return tl::unexpected(swept.error().in(name));
        arms = std::move(*swept);
    }
    Subject out{name, {}, settings_of(paths, line.target, arms, machine.kernel)};
    for (const Arm& arm : arms) {
        const Candidate* made = candidate_with(line, arm.scope);
        out.rows.push_back({arm.name(), made != nullptr ? std::optional(made->pools) : std::nullopt});
        const Arm& first = *std::ranges::find_if(arms, [&](const Arm& each) {
            return each == arm ||
                   (made != nullptr && each.strict == arm.strict && candidate_with(line, each.scope) == made);
        });
        if (first != arm) out.rows.back().same = first.name();
    }
    return out;
}

ArmSwitcher::ArmSwitcher(Tools tools, LeftStore store, const Subject& subject)
    : tools_(std::move(tools)), store_(std::move(store)), commands_(subject.commands) {
    for (const Setting& setting : subject.settings) {
        File file{setting, {}, {}, {}};
        file.left.path = setting.path;
        file.left.form = setting.form;
        for (const std::string& value : setting.values)
            file.shown.push_back(setting.form == Form::word ? std::optional(value) : std::nullopt);
        files_.push_back(std::move(file));
    }
}

Status ArmSwitcher::begin() {
    for (File& file : files_)
        if (auto begun = begin(file); !begun) return begun;
    return {};
}

Status ArmSwitcher::begin(File& file) {
    LeftFile& left = file.left;
    const auto found = tools_.files.read(left.path);
    if (!found) return tl::unexpected(found.error());
    left.inode = found->inode;
    left.original = file.in_place = found->text;
    if (left.form == Form::word) left.ours = left.original;
    if (auto saved = store_.put(left); !saved) return saved;
    if (left.form == Form::word) return {};
    if (auto back = put_value_back(tools_.files, left); !back) return back;
    for (std::size_t arm = 0; arm < file.shown.size(); arm++) {
        if (auto learned = write(file, arm); !learned) return learned;
        for (std::size_t other = 0; other < arm; other++)
            if (is_same_value(left.form, *file.shown[other], *file.shown[arm]))
                return fail(fmt::format("{}: '{}' and '{}' are the same setting: it shows '{}' after each",
                                        left.path, file.setting.values[other], file.setting.values[arm],
                                        value_in(left.form, *file.shown[arm])));
    }
    return {};
}

Status ArmSwitcher::check() {
    for (const File& file : files_)
        if (auto ours = check(file); !ours) return ours;
    return {};
}

Status ArmSwitcher::check(const File& file) {
    const auto now = read_left(tools_.files, file.left);
    if (!now) return tl::unexpected(now.error());
    if (is_same_value(file.left.form, *now, file.in_place)) return {};
    const std::string text = fmt::format("{}: an external writer wrote '{}', which is left as it is",
                                         file.left.path, value_in(file.left.form, *now));
    if (const auto dropped = store_.drop(file.left); !dropped)
        return tl::unexpected(dropped.error().in(text));
    return fail(text);
}

Status ArmSwitcher::to(std::size_t arm) {
    if (auto ours = check(); !ours) return ours;
    for (File& file : files_)
        if (auto wrote = write(file, arm); !wrote) return wrote;
    return commands_.empty() ? Status{} : run_command(commands_.at(arm));
}

// Up to three times, because a busy kernel may refuse it now.
Status ArmSwitcher::write_value(const File& file, const std::string& via, const std::string& value) {
    constexpr unsigned kTries = 3;
    Status wrote;
    for (unsigned i = 0; i < kTries; i++) {
        wrote = via.empty() ? Status{} : tools_.files.write(file.left.path, file.left.inode, via);
        if (wrote) wrote = tools_.files.write(file.left.path, file.left.inode, value);
        if (wrote || kind_of_error(wrote.error().code) != Outcome::Kind::transient) break;
    }
    return wrote;
}

// That the file may hold a value of ours is on disk before the write, and which one after it.
Status ArmSwitcher::write(File& file, std::size_t arm) {
    LeftFile& left = file.left;
    const std::string& value = file.setting.values[arm];
    const auto via = std::ranges::find_if(file.setting.vias, [&](const std::string& each) {
        return each != value && !is_same_value(left.form, each, file.in_place);
    });
    left.ours.reset();
    if (auto saved = store_.put(left); !saved) return saved;
    if (auto wrote = write_value(file, via != file.setting.vias.end() ? *via : "", value); !wrote)
        return wrote;
    const auto now = read_left(tools_.files, left);
    if (!now) return tl::unexpected(now.error());
    file.in_place = *now;
    left.ours = *now;
    if (auto saved = store_.put(left); !saved) return saved;
    auto& shown = file.shown.at(arm);
    if (!shown) shown = *now;
    if (is_same_value(left.form, *shown, *now)) return {};
    return fail(fmt::format("{}: after writing '{}', the file showed '{}' earlier and shows '{}' now",
                            left.path, value, value_in(left.form, *shown), value_in(left.form, *now)));
}

Status ArmSwitcher::run_command(const CommandArm& arm) {
    if (const CommandArm* before = std::exchange(in_place_, nullptr); before != nullptr)
        if (auto undone = undo(store_, {before->name, before->undo}, tools_.undo); !undone) return undone;
    if (arm.apply.empty()) return {};
    // A signal may have come during the undo. Then `apply` does not run, and its undo must not run either.
    if (auto go_on = tools_.go_on(); !go_on) return go_on;
    if (auto saved = store_.put(LeftCommand{arm.name, arm.undo}); !saved) return saved;
    in_place_ = &arm;
    return tools_.apply(arm.apply).map_error(
        [&](const Error& e) { return e.code == EINTR ? e : e.in("arm " + printable(arm.name)); });
}

}  // namespace wq::lab
