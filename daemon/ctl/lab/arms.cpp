// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/text.h"
#include "ctl/lab/lab.h"
#include "plan/pods.h"

namespace wq::lab {

Result<std::vector<Arm>> parse_arms(std::string_view text) {
    constexpr std::string_view kStrict = ":strict";
    std::vector<Arm> arms;
    for (const std::string& word : split_at_commas(text)) {
        const bool strict = word.ends_with(kStrict);
        const auto scope = scope_named(word.substr(0, word.size() - (strict ? kStrict.size() : 0)));
        if (!scope) return fail(fmt::format("'{}' is not a scope", word), EINVAL);
        Arm arm = arm_of({}, *scope);
        if (strict) arm.strict = true;
        if (std::ranges::find(arms, arm) != arms.end())
            return fail(fmt::format("'{}' is named twice", word), EINVAL);
        arms.push_back(arm);
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
    std::vector<Arm> arms{arm_of({}, *now)};
    for (const Candidate& c : line.candidates)
        if (!all && &c != candidate_with(line, *now)) arms.push_back(arm_of({}, c.scope));
    for (auto scope = kernel.scopes.rbegin(); all && scope != kernel.scopes.rend(); ++scope)
        if (*scope != *now) arms.push_back(arm_of({}, *scope));
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
    Owned* entry = store.find(target);
    if (entry == nullptr || !look_at(WorkqueueFs(paths), *entry).found.is_ours()) return {};
    return fail("it may hold a setting that wq-tuned left; `wq-tunectl undo` prints the way back");
}

// The module parameter ignores a write of its current word (kernel/workqueue.c, wq_affn_dfl_set()). Scopes
// that no arm uses come first: with such a scope in between, every switch costs the same two moves.
std::vector<std::string> vias_of(const std::vector<Arm>& arms, const KernelInfo& kernel) {
    std::vector<std::string> out;
    for (const bool spare : {true, false})
        for (const Scope each : kernel.scopes)
            if (std::ranges::none_of(arms, [&](const Arm& a) { return a.scope == each; }) == spare)
                out.emplace_back(name_of(each));
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
    Subject out{name, {}, entry_of(line.target)};
    if (line.target.kind == Kind::default_scope) out.vias = vias_of(arms, machine.kernel);
    for (const Arm& arm : arms) {
        out.values.push_back({arm.word(), arm.strict});
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

Status ArmSwitcher::begin() {
    if (!subject_.owned) return {};
    const Owned& entry = store_.put(*subject_.owned);
    in_place_ = {entry.main.baseline, {}};
    if (subject_.values.front().strict && entry.strict) in_place_.strict = entry.strict->baseline == "1";
    if (auto saved = store_.save(); !saved) return saved;
    if (auto ours = check(); !ours) return ours;
    if (entry.main.file != Knob::value) return {};
    if (auto back = write(in_place_); !back) return back;
    for (std::size_t arm = 0; arm < subject_.values.size(); arm++)
        if (auto taken = to(arm); !taken) return taken;
    return {};
}

Status ArmSwitcher::check() {
    if (!subject_.owned) return {};
    const Owned& entry = *store_.find(subject_.owned->name);
    const auto word = writer_.read(entry, entry.main.file);
    if (!word) return tl::unexpected(word.error());
    if (!entry.main.same(*word, in_place_.main)) return foreign(entry.main.file, *word);
    if (!in_place_.strict) return {};
    const auto strict = writer_.read(entry, Knob::strict);
    if (!strict) return tl::unexpected(strict.error());
    return *strict == text_of_strict(*in_place_.strict) ? Status{} : foreign(Knob::strict, *strict);
}

// Nothing of ours is in FILE any more.
Status ArmSwitcher::foreign(Knob file, const std::string& text) {
    Owned& entry = *store_.find(subject_.owned->name);
    entry.of(file).claim.clear();
    const std::string what = fmt::format("{}: an external writer wrote '{}', which is left as it is",
                                         entry.name, plain(file, text));
    const auto saved = store_.save();
    return saved ? Status(fail(what)) : tl::unexpected(saved.error().in(what));
}

Status ArmSwitcher::to(std::size_t arm) {
    if (!subject_.commands.empty()) return run_command(subject_.commands.at(arm));
    if (auto ours = check(); !ours) return ours;
    const Values& wanted = subject_.values.at(arm);
    const auto via = std::ranges::find_if(subject_.vias, [&](const std::string& each) {
        return each != wanted.main && each != in_place_.main;
    });
    if (via != subject_.vias.end())
        if (auto moved = write({*via, {}}); !moved) return moved;
    return write(wanted);
}

// Up to three times, because a busy kernel may refuse it now.
Status ArmSwitcher::write(const Values& values) {
    constexpr unsigned kTries = 3;
    Owned& entry = *store_.find(subject_.owned->name);
    entry.announce(values);
    if (auto saved = store_.save(); !saved) return saved;
    Outcome out;
    for (unsigned i = 0; i < kTries && (i == 0 || (out.kind == Outcome::Kind::transient && !out.wrote)); i++)
        out = writer_.rewrite(entry.name, values, in_place_);
    if (out.kind == Outcome::Kind::foreign) return foreign(out.file, out.text);
    if (out.kind == Outcome::Kind::unsupported)
        return fail(
            fmt::format("{}: after writing '{}', the file shows '{}'", entry.name, values.main, out.text));
    if (out.kind != Outcome::Kind::done)
        return fail(out.text.starts_with(entry.name) ? out.text : entry.name + ": " + out.text, out.code);
    in_place_ = values;
    if (!out.stored.empty()) in_place_.main = out.stored;
    entry.settle(in_place_);
    return store_.save();
}

// A signal may have come during the undo. Then the command does not run, and its undo must not run either.
Status ArmSwitcher::run_command(const CommandArm& arm) {
    if (const std::string name = std::exchange(to_undo_, ""); !name.empty()) {
        if (const Outcome undone = writer_.put_back(name); undone.kind != Outcome::Kind::done)
            return fail(name + ": " + undone.text);
        store_.remove(name);
        if (auto saved = store_.save(); !saved) return saved;
    }
    if (arm.apply.empty()) return {};
    if (auto go_on = processes_.interrupts.check(); !go_on) return go_on;
    Owned entry{kArmPrefix + printable(arm.name), 0, {Knob::command, arm.undo}};
    entry.announce({arm.apply, {}});
    to_undo_ = store_.put(std::move(entry)).name;
    if (auto saved = store_.save(); !saved) return saved;
    return processes_.shell(arm.apply).map_error(
        [&](const Error& e) { return e.code == EINTR ? e : e.in(to_undo_); });
}

}  // namespace wq::lab
