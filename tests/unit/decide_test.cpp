// SPDX-License-Identifier: LGPL-2.1-or-later
// decide() turns the facts about one target into its state, its reason and the word to write. Uses no files.
#include "targets/target.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "machine/udev.h"

namespace wq {
namespace {

const Arm kSmt = {Scope::smt, false, {}};
const Arm kNuma = {Scope::numa, false, {}};
const Arm kDefault = {Scope::cache, true, {}};

// A target whose file holds `default (cache)`, and whose plan is smt, set first.
struct Case {
    OwnedStore store{""};
    Target target;
    std::string unsaved;
    Circumstances all;

    Case() {
        target.store = &store;
        target.now.name = "kcryptd";
        target.now.inode = 1;
        target.now.scope = {"default", Scope::cache};
        target.now.strict = false;
        target.opted_out = false;
        target.last.main = "default";
        target.plan.now = Scope::cache;
        target.plan.planned = Scope::smt;
        plan(Finding::change, "plan");
    }
    void plan(Finding finding, const std::string& reason) {
        target.plan.finding = finding;
        target.plan.reason = reason;
        target.step = {};
        if (finding == Finding::change) step(Step::Kind::set, kSmt, reason);
    }
    void step(Step::Kind kind, std::optional<Arm> hold, const std::string& said) {
        target.step = {};
        target.step.kind = kind;
        target.step.hold = std::move(hold);
        target.step.said = said;
    }
    void next(Arm reference, Arm candidate, Course course = Course::dense) {
        target.step.next = Arms{std::move(reference), std::move(candidate)};
        target.step.course = course;
    }
    void compared() { all.waiting.compared = {"kcryptd"}; }
    // The file holds WORD, which we wrote, and the entry is settled.
    void hold(const std::string& word, std::optional<bool> strict = {}) {
        entry().announce({word, strict});
        if (strict) target.now.strict = strict;
        entry().settle({word, target.now.strict});
        target.now.scope = {word, scope_named(word)};
        target.last.main = word;
    }
    Owned& entry() { return target.make_entry(); }
    void refuse(const std::string& word) { target.refused = {{word, State::quarantined, "EPERM"}}; }
    // "set: plan -> smt strict=1 (about to be applied: plan)": the wish, and what is shown before it is done
    // if that differs.
    [[nodiscard]] std::string text() const {
        const Wish wish = decide(target, all);
        const Shown found = as_found(target, wish, unsaved);
        std::string out = fmt::format("{}: {} -> ", name_of(wish.state), wish.reason);
        out += wish.hands_off ? "hands off" : wish.word.value_or("baseline");
        if (wish.strict) out += fmt::format(" strict={:d}", *wish.strict);
        if (found.state != wish.state || found.reason != wish.reason)
            out += fmt::format(" ({}: {})", name_of(found.state), found.reason);
        return out;
    }
};

struct Row {
    const char* wish;
    std::function<void(Case&)> given;
};

void check(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
        Case c;
        row.given(c);
        EXPECT_EQ(c.text(), row.wish) << "row " << &row - rows.data();
    }
}

TEST(Decide, ByPlan) {
    check({
        {"set: plan -> smt (waiting: about to be applied: plan)", [](Case&) {}},
        {"set: plan -> smt (waiting: about to be tried again: plan)", [](Case& c) { c.target.failures = 1; }},
        {"set: plan -> smt (waiting: no space)", [](Case& c) { c.unsaved = "no space"; }},
        {"set: plan -> smt (quarantined: not put back)",
         [](Case& c) { c.target.stuck = Target::kTries, c.target.stuck_why = "not put back"; }},
        {"set: plan -> smt", [](Case& c) { c.hold("smt"); }},
        {"unmanaged: why -> baseline", [](Case& c) { c.plan(Finding::untouchable, "why"); }},
        {"unmanaged: why -> baseline", [](Case& c) { c.plan(Finding::unmanaged, "why"); }},
        {"leave: why -> baseline", [](Case& c) { c.plan(Finding::leave, "why"); }},
        {"leave: why -> baseline", [](Case& c) { c.plan(Finding::followers, "why"); }},
        {"unsupported: why -> baseline", [](Case& c) { c.plan(Finding::unsupported, "why"); }},
        {"as-planned: why -> baseline", [](Case& c) { c.plan(Finding::in_place, "why"); }},
        {"leave: why -> baseline (set: left in force)",
         [](Case& c) { c.hold("smt"), c.plan(Finding::leave, "why"); }},
        {"set: plan -> smt strict=1 (waiting: about to be applied: plan)",
         [](Case& c) { c.hold("smt"), c.target.plan.strict = c.target.step.hold->strict = true; }},
        // A strictness that we wrote goes back if no rule asks for it any more.
        {"set: plan -> smt strict=0 (waiting: about to be applied: plan)",
         [](Case& c) { c.hold("smt", true); }},
        {"quarantined: EPERM -> baseline", [](Case& c) { c.refuse("smt"); }},
        {"set: plan -> smt (waiting: about to be applied: plan)", [](Case& c) { c.refuse("cpu"); }},
    });
}

TEST(Decide, WhatOthersHoldIsLeft) {
    for (const Holder holder : {Holder::policy, Holder::pin, Holder::revert, Holder::slot})
        for (const char* observing : {"", "off"}) {
            Case c;
            c.target.external = "numa";
            c.entry().hold(holder, "cpu");
            c.all.observing = observing;
            EXPECT_EQ(c.text(), "external: an external writer wrote 'numa' -> hands off");
            EXPECT_EQ(c.target.holder(), Holder::external);
        }
    const auto unprocessed = [](Case& c) {
        c.target.now.untouchable = kNotProcessedByUdev;
        c.hold("smt");
        c.entry().hold(Holder::pin, "smt");
    };
    check({
        {"waiting: udev has not processed it yet -> hands off", unprocessed},
        {"waiting: observing: off; plan: plan -> baseline (set: left in force)",
         [&](Case& c) { unprocessed(c), c.all.observing = "off"; }},
        {"comparing: plan -> hands off", [](Case& c) { c.entry(), c.target.in_slot = true; }},
        // An entry that says `slot` is an earlier daemon's.
        {"set: plan -> smt (waiting: about to be applied: plan)",
         [](Case& c) { c.entry().hold(Holder::slot); }},
        {"waiting: observing: off; plan: plan -> baseline", [](Case& c) { c.all.observing = "off"; }},
        {"waiting: observing: off; plan: plan -> baseline",
         [](Case& c) { c.all.observing = "off", c.entry().hold(Holder::pin, "cpu"); }},
        {"waiting: observing: off; plan: plan -> baseline",
         [](Case& c) { c.all.observing = "off", c.entry(), c.target.in_slot = true; }},
        {"leave: a rule -> baseline",
         [](Case& c) { c.all.observing = "off", c.plan(Finding::leave, "a rule"); }},
        {"leave: unknown -> hands off", [](Case& c) { c.plan(Finding::pods_unknown, "unknown"); }},
        {"set: unknown -> hands off",
         [](Case& c) { c.hold("smt"), c.plan(Finding::pods_unknown, "unknown"); }},
        // An arm of a slot is no decision: what was in force before it comes back.
        {"leave: unknown -> baseline (set: left in force)",
         [](Case& c) {
             c.hold("smt"), c.plan(Finding::pods_unknown, "unknown"), c.entry().hold(Holder::slot);
         }},
        {"set: unknown -> smt",
         [](Case& c) {
             c.hold("smt"), c.plan(Finding::pods_unknown, "unknown"), c.entry().hold(Holder::slot);
             c.target.held = "smt";
         }},
    });
}

TEST(Decide, WithOrders) {
    check({
        {"pinned: by an operator's order -> cpu (waiting: about to be applied: by an operator's order)",
         [](Case& c) { c.entry().hold(Holder::pin, "cpu"); }},
        {"pinned: by an operator's order -> smt strict=0 (waiting: about to be applied: by an operator's "
         "order)",
         [](Case& c) { c.hold("smt", true), c.entry().hold(Holder::pin, "smt"); }},
        {"quarantined: EPERM -> baseline",
         [](Case& c) { c.entry().hold(Holder::pin, "cpu"), c.refuse("cpu"); }},
        {"pinned: by an operator's order -> hands off",
         [](Case& c) { c.entry().hold(Holder::pin, "cpu"), c.all.pods_unknown = "CPU 3"; }},
        {"reverted: by an operator's order -> baseline (set: left in force)",
         [](Case& c) { c.hold("smt"), c.entry().hold(Holder::revert); }},
        {"reverted: `writeback` must stay -> baseline",
         [](Case& c) { c.entry().hold(Holder::revert, "`writeback` must stay"); }},
    });
}

TEST(Decide, ByLedger) {
    const auto waiting = [](Case& c) { c.step(Step::Kind::waiting, {}, ""); };
    const auto kept = [](Case& c) { c.hold("numa"), c.step(Step::Kind::kept, kNuma, "won"); };
    const auto lost = [](Case& c) { c.step(Step::Kind::reverted, {}, "lost"); };
    check({
        {"waiting: plan: plan -> baseline", waiting},
        {"waiting: plan: plan -> baseline", [&](Case& c) { waiting(c), c.next(kDefault, kSmt); }},
        {"comparing: plan: plan -> baseline",
         [&](Case& c) { waiting(c), c.next(kDefault, kSmt), c.compared(); }},
        {"waiting: plan: plan -> baseline",
         [&](Case& c) { waiting(c), c.next(kDefault, kSmt, Course::sparse), c.compared(); }},
        {"quarantined: EPERM -> baseline", [&](Case& c) { waiting(c), c.refuse("smt"); }},
        {"waiting: plan: plan; 'smt' was refused: EPERM -> baseline",
         [&](Case& c) { waiting(c), c.refuse("smt"), c.next(kDefault, kNuma); }},
        {"waiting: plan: in place -> baseline",
         [](Case& c) { c.plan(Finding::in_place, "in place"), c.next(kDefault, kNuma); }},
        {"quarantined: EPERM -> baseline",
         [](Case& c) { c.plan(Finding::in_place, "in place"), c.next(kDefault, kNuma), c.refuse("numa"); }},
        {"set: plan -> smt", [](Case& c) { c.hold("smt"), c.next(kDefault, kSmt); }},
        {"comparing: plan -> smt", [](Case& c) { c.hold("smt"), c.next(kDefault, kSmt), c.compared(); }},
        {"kept: won -> numa", kept},
        {"kept: won -> numa", [&](Case& c) { kept(c), c.next(kNuma, kSmt); }},
        {"comparing: won -> numa", [&](Case& c) { kept(c), c.next(kNuma, kSmt), c.compared(); }},
        {"quarantined: EPERM -> baseline (set: left in force)", [&](Case& c) { kept(c), c.refuse("numa"); }},
        {"reverted: lost -> baseline", [&](Case& c) { lost(c), c.target.step.course = Course::resting; }},
        {"waiting: lost -> baseline", [&](Case& c) { lost(c), c.target.step.course = Course::sparse; }},
        {"comparing: lost -> baseline",
         [&](Case& c) { lost(c), c.target.step.course = Course::dense, c.compared(); }},
        {"reverted: lost -> numa",
         [](Case& c) { c.hold("numa"), c.step(Step::Kind::reverted, kNuma, "lost"); }},
    });
}

}  // namespace
}  // namespace wq
