// SPDX-License-Identifier: LGPL-2.1-or-later
// Random walks of a daemon among external writers, with kills at any call on a file. What must hold: a value
// of an external writer is never overwritten, a value of ours is never taken for the kernel's, and the state
// on disk agrees with the state in memory (ownership_world.h). For scopes, strictness and masks.
//
// WQ_TUNED_WALKS=N walks N seeds instead of 60; WQ_TUNED_SEED=S walks only S, and prints each step.
#include <fmt/format.h>

#include <cstdlib>
#include <iostream>

#include "fake_rig.h"
#include "ownership_world.h"

namespace wq {
namespace {

using test::OwnershipWorld;

constexpr std::uint64_t kWalks = 60;
constexpr unsigned kSteps = 80;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

class Walk {
  public:
    explicit Walk(std::uint64_t seed) : world_(seed) {
        world_.reload(random_policy());
        start();
    }

    // Returns the fault with the last steps before it; "" if there was none.
    std::string go() {
        for (unsigned i = 0; i < kSteps && world_.wrong().empty(); i++) step();
        if (world_.wrong().empty()) end();
        if (world_.wrong().empty()) return "";
        std::string out = world_.wrong() + ", after:";
        for (std::size_t i = way_.size() > 12 ? way_.size() - 12 : 0; i < way_.size(); i++)
            out += "\n  " + way_[i];
        return out;
    }
    [[nodiscard]] const std::vector<std::string>& way() const { return way_; }

  private:
    void step();
    void step_running();
    void step_stopped();
    void somebody_else();
    void order();
    void trial();
    void start();
    void stop();
    void end();
    Policy random_policy();
    std::optional<bool> random_strict();
    ScopeWish random_wish();
    MaskWish random_mask();
    const std::string& random_name() {
        return OwnershipWorld::kNames[world_.below(OwnershipWorld::kNames.size())];
    }
    std::string random_word();
    void run(const std::string& what, const std::function<void()>& step, bool looks);
    void died();

    OwnershipWorld world_;
    std::vector<std::string> way_;
    bool observing_ = false;
};

std::string Walk::random_word() {
    constexpr const char* kWords[] = {"cpu", "smt", "cache", "numa", "system", "default"};
    return kWords[world_.below(std::size(kWords))];
}

MaskWish Walk::random_mask() {
    if (world_.chance(50)) return {};
    if (world_.chance(40)) return {MaskWish::Kind::housekeeping, {}};
    return {MaskWish::Kind::fixed, CpuSet::range(0, world_.chance(50) ? 5 : 11)};
}

ScopeWish Walk::random_wish() {
    const auto& scopes = world_.kernel().scopes;
    if (world_.chance(15)) return test::leave();
    if (world_.chance(20)) return {};
    return test::fixed(scopes[world_.below(scopes.size())]);
}

std::optional<bool> Walk::random_strict() {
    if (world_.chance(50)) return {};
    return world_.chance(70);
}

Policy Walk::random_policy() {
    Policy out = test::rule_for_all();
    out.rules = {{{"kcryptd"}, random_wish(), random_strict(), {"rules.toml", 1}},
                 {{"writeback"}, random_wish(), random_strict(), {"rules.toml", 2}}};
    out.default_scope.manage = world_.chance(30);
    out.default_scope.wish = random_wish();
    out.keep_on_exit = world_.chance(50);
    if (world_.chance(15)) out.rules[0].wish = {};
    for (WorkqueueRule& rule : out.rules) rule.mask = random_mask();
    return out;
}

// Runs STEP of the daemon. LOOKS: afterwards the daemon looks at all files and saves what it found.
void Walk::run(const std::string& what, const std::function<void()>& step, bool looks) {
    way_.push_back(what);
    if (world_.run(step, true)) {
        if (looks) world_.look();
        return world_.check(looks);
    }
    way_.back() += " (killed)";
    died();
}

// systemd may run ExecStopPost=, which may be killed too, and may start the daemon again.
void Walk::died() {
    observing_ = false;
    if (world_.chance(70)) {
        way_.push_back("--restore");
        const bool keep = world_.policy().keep_on_exit;
        if (!world_.run([&] { world_.restore(keep); }, true)) way_.back() += " (killed)";
    }
    if (world_.chance(60)) start();
}

void Walk::start() {
    way_.emplace_back("start");
    observing_ = false;
    world_.start();
    if (!world_.run([&] { world_.reconcile(); }, true)) {
        way_.back() += " (killed)";
        return died();
    }
    run(
        "look", [&] {}, true);
}

// Stops as service.cpp does, then runs the unit's ExecStopPost=.
void Walk::stop() {
    const bool keep = world_.policy().keep_on_exit;
    const bool restarting = world_.chance(30);
    const bool in_slot = std::ranges::any_of(OwnershipWorld::kNames,
                                             [&](const auto& name) { return world_.is_on_trial(name); });
    if (restarting && !observing_ && !in_slot) world_.check_quiet(true);
    way_.push_back(restarting ? "restart" : keep ? "stop, keep" : "stop");
    const bool done = world_.run(
        [&] {
            for (const std::string& name : OwnershipWorld::kNames)
                if (world_.is_on_trial(name)) world_.parts()->slots.leave({name});
            if (!restarting) keep ? world_.parts()->engine.keep_all() : world_.parts()->engine.restore_all();
        },
        true);
    if (!done) {
        way_.back() += " (killed)";
        return died();
    }
    world_.lose();
    world_.check(false);
    if (restarting) return start();
    way_.push_back("--restore");
    if (!world_.run([&] { world_.restore(keep); }, true)) way_.back() += " (killed)";
}

void Walk::somebody_else() {
    const std::string name = random_name();
    const auto kind = name == kDefaultTarget ? 0 : world_.below(10);
    if (kind < 6) {
        const std::string word = random_word();
        way_.push_back(fmt::format("others write {} to {}", word, name));
        world_.others_write(name, word);
    } else if (kind < 8) {
        const bool strict = world_.chance(50);
        way_.push_back(fmt::format("others write strict {} to {}", strict ? 1 : 0, name));
        world_.others_write_strict(name, strict);
    } else if (kind < 9) {
        const std::string mask = world_.chance(50) ? "ffffff" : world_.chance(50) ? "000fff" : "00000f";
        way_.push_back(fmt::format("others write {} to the mask of {}", mask, name));
        world_.others_write_mask(name, mask);
    } else {
        way_.push_back(name + " is opened anew");
        world_.recreate(name);
    }
}

void Walk::order() {
    const std::string name = random_name();
    switch (world_.below(5)) {
        case 0:
        case 1: {
            const std::string word = random_word();
            return run(
                fmt::format("pin {} {}", name, word), [&] { (void)world_.parts()->orders.pin(name, word); },
                true);
        }
        case 2:
            return run(
                "unpin " + name, [&] { (void)world_.parts()->orders.unpin(name); }, true);
        case 3:
            return run(
                "revert " + name, [&] { (void)world_.parts()->orders.revert(name); }, true);
        default:
            if (world_.chance(70)) return;
            return run(
                "revert all", [&] { (void)world_.parts()->orders.revert(std::nullopt); }, true);
    }
}

// Makes one call of a trial: its begin, a switch to an arm, or its end.
void Walk::trial() {
    test::TargetParts& parts = *world_.parts();
    const std::string name = random_name();
    const auto found = parts.targets.all().find(name);
    if (found == parts.targets.all().end()) return;
    const Workqueue before = found->second.before_us();
    const auto& scopes = world_.kernel().scopes;
    const Arms arms{baseline_arm(before, found->second.plan),
                    arm_of(found->second.plan, scopes[world_.below(scopes.size())])};
    if (!world_.is_on_trial(name))
        return run(
            fmt::format("trial of {}: {} against {}", name, arms.candidate.name(), arms.reference.name()),
            [&] {
                if (parts.slots.enter({name}).front()) (void)test::switch_to(parts, name, arms.candidate);
            },
            true);
    if (world_.chance(30))
        return run(
            "end of the trial of " + name, [&] { parts.slots.leave({name}); }, true);
    const Arm arm = world_.chance(50) ? arms.reference : arms.candidate;
    run(
        fmt::format("{} goes to {}", name, arm.name()), [&] { (void)test::switch_to(parts, name, arm); },
        true);
}

void Walk::step_running() {
    test::TargetParts& parts = *world_.parts();
    const auto dice = world_.below(100);
    if (dice < 25) {
        run(
            "tick", [&] { world_.reconcile(); }, true);
        return world_.check_quiet(false);
    }
    if (dice < 45) return somebody_else();
    if (dice < 60) return order();
    if (dice < 75) return trial();
    if (dice < 85) {
        const Policy policy = random_policy();
        return run(
            "reload",
            [&] {
                world_.reload(policy);
                world_.reconcile();
            },
            true);
    }
    if (dice < 88) {
        const CpuSet isolated = world_.chance(50) ? CpuSet{} : CpuSet{2, 3};
        world_.isolate(isolated);
        return run(
            "isolated: " + isolated.list(), [&] { world_.reconcile(); }, true);
    }
    if (dice < 92) {
        observing_ = !observing_;
        parts.targets.observe(observing_ ? "switched off" : "");
        return run(
            observing_ ? "switched off" : "switched on", [&] { world_.reconcile(); }, true);
    }
    stop();
}

void Walk::step_stopped() {
    const auto dice = world_.below(100);
    if (dice < 50) return somebody_else();
    if (dice < 60) {
        way_.emplace_back("--restore");
        if (!world_.run([&] { world_.restore(world_.policy().keep_on_exit); }, true))
            way_.back() += " (killed)";
        return;
    }
    if (dice < 70) {
        way_.emplace_back("another policy");
        return world_.reload(random_policy());
    }
    start();
}

void Walk::step() {
    if (world_.parts() == nullptr) return step_stopped();
    step_running();
}

void Walk::end() {
    way_.emplace_back("the end");
    world_.lose();
    world_.restore(false);
    world_.check_end();
}

TEST(Ownership, HoldsOnRandomWalks) {
    if (const std::uint64_t seed = number_from("WQ_TUNED_SEED", 0); seed != 0) {
        Walk walk(seed);
        const std::string wrong = walk.go();
        for (const std::string& step : walk.way()) std::cout << step << '\n';
        EXPECT_EQ(wrong, "");
        return;
    }
    for (std::uint64_t seed = 1; seed <= number_from("WQ_TUNED_WALKS", kWalks); seed++) {
        const std::string wrong = Walk(seed).go();
        if (!wrong.empty()) ADD_FAILURE() << "WQ_TUNED_SEED=" << seed << ": " << wrong;
    }
}

}  // namespace
}  // namespace wq
