// SPDX-License-Identifier: LGPL-2.1-or-later
// The running slot: its coins, its writes, its windows, and which targets leave it before its end.
#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "counters/counter_table.h"
#include "experiment/experiment.h"
#include "machine/isolation.h"
#include "targets/candidates.h"

namespace wq {
namespace {

constexpr std::int64_t kJump = 500'000'000;        // ns
constexpr std::uint64_t kLongWindow = 30'000'000;  // us, of every fourth pair of the watch
constexpr std::uint64_t kLongEvery = 4;
constexpr std::uint64_t kLeastLead = 100'000;  // us, also of the drain; both are at least the washout

}  // namespace

Experiment::Member Experiment::member_of(const Taker& taker) const {
    const Target& target = edges_.engine.targets().at(taker.name);
    Member out;
    out.taker = taker;
    out.inode = target.now.inode;
    out.before = edges_.engine.ownership().as_before_us(target).scope.word;
    out.key = edges_.engine.keys().ledger_key(target.now, taker.arms, taker.from_policy);
    out.record_key = edges_.engine.keys().verdict_key(target.now, taker.arms);
    return out;
}

Experiment::Member Experiment::member_of(const std::string& name, const Order& order) const {
    Taker taker{.name = name, .arms = order.arms, .course = Course::dense, .by_hand = true};
    const Target& target = edges_.engine.targets().at(name);
    taker.candidates = target.step.candidates;
    taker.candidate_holds = target.step.holds(order.arms.candidate);
    taker.from_policy = target.step.holds(order.arms.reference);
    return member_of(taker);
}

unsigned Experiment::index_of(const std::string& name) const {
    return static_cast<unsigned>(std::ranges::find(attached_, name, &Attached::name) - attached_.begin());
}

// The programs stay attached as long as slots follow each other and their targets are attached already.
Status Experiment::attach(const std::vector<Member>& members) {
    if (!no_counters_.empty()) return {};
    const auto is_attached = [&](const Member& m) {
        return std::ranges::find(attached_, Attached{m.taker.name, m.inode}) != attached_.end();
    };
    if (!attached_.empty() && std::ranges::all_of(members, is_attached)) return {};
    attached_.clear();
    std::vector<std::string> names;
    for (const Member& member : members) names.push_back(member.taker.name);
    const bool tails = std::ranges::any_of(edges_.engine.keys().measures().counters,
                                           [](const ComparedCounter& c) { return c.name == "tail"; });
    edges_.counters.watch(read_isolation(edges_.paths).cpus());
    if (auto attached = edges_.counters.attach(names, tails); !attached) return attached;
    for (const Member& member : members) attached_.push_back({member.taker.name, member.inode});
    return {};
}

// Every fourth pair of the watch is long: effects such as dirty throttling take longer than two seconds.
SlotTimes Experiment::times_of(const std::vector<Taker>& takers, std::uint64_t window) const {
    const Judging& judge = edges_.engine.policy().judge;
    SlotTimes out;
    out.window = window;
    out.washout = us(judge.washout);
    out.lead = out.drain = std::max(out.washout, kLeastLead);
    const Taker& first = takers.front();
    if (first.course != Course::watched) return out;
    const LedgerEntry* entry = ledger_.ledger().find(
        edges_.engine.keys().ledger_key(edges_.engine.targets().at(first.name).now, first.arms, false));
    if (entry != nullptr && pairs_of(*entry) % kLongEvery == kLongEvery - 1)
        out.window = std::max(window, kLongWindow);
    return out;
}

// Begins the pairs of TAKERS, and returns those that take part. If the counters cannot be attached to
// all of them, tries only the first one, because the error does not say which target caused it.
std::vector<Experiment::Member> Experiment::able_of(const std::vector<Taker>& takers) {
    std::vector<Member> members;
    for (const Taker& taker : takers) members.push_back(member_of(taker));
    if (auto attached = attach(members); !attached) {
        if (takers.size() > 1) return able_of({takers.front()});
        could_not_begin(members.front(), attached.error());
        return {};
    }
    if (const std::string limits = edges_.counters.limits();
        no_counters_.empty() && limits != edges_.engine.keys().measures().lacks) {
        measure_by(limits);  // work is counted differently than before: these are other comparisons
        edges_.engine.step_all();
        return {};
    }
    std::vector<std::string> names;
    for (const Member& member : members) names.push_back(member.taker.name);
    const auto begun = edges_.engine.enter_slot(names);
    std::vector<Member> able;
    for (std::size_t i = 0; i < members.size(); i++) {
        if (begun[i])
            able.push_back(std::move(members[i]));
        else
            could_not_begin(members[i], begun[i].error());
    }
    return able;
}

void Experiment::begin_slot(std::vector<Taker> takers) {
    const Judging& judge = edges_.engine.policy().judge;
    std::vector<std::uint64_t> writes;
    for (const Taker& taker : takers) writes.push_back(notes_[taker.name].write);
    const SlotSize size = size_of_slot(writes, us(judge.window), judge.concurrent);
    takers.resize(size.targets);
    auto able = able_of(takers);
    if (able.empty()) return;
    if (edges_.hold_memory && !std::exchange(held_, true)) edges_.hold_memory(true);
    slot_.reset(new Slot{{},
                         SlotClock(times_of(takers, size.window), edges_.now()),
                         {},
                         edges_.engine.inventory().online(),
                         edges_.clocks(),
                         read_cpu_times(edges_.paths),
                         ""});
    totals_.slots++;
    const double seconds = static_cast<double>(slot_->clock.times().counted()) / 1e6;
    const std::uint64_t now =
        edges_.now();  // the same for all: targets that are served together wait for the same time
    for (Member& member : able) {
        member.candidate_first = (edges_.random() & 1) != 0;
        slot_->coins.members.push_back({member.taker.name, member.key.text(), member.candidate_first});
        notes_[member.taker.name].served = now;
        sample(member, seconds);
        say_begun(member);
        slot_->members.push_back(std::move(member));
    }
    const auto kept = keep_coins(edges_.paths.slot(), slot_->coins);
    if (kept) return;
    std::vector<std::string> back;
    for (const Member& member : slot_->members) {
        could_not_begin(member, kept.error().in("the coins of the slot cannot be saved"));
        back.push_back(member.taker.name);
    }
    end_slot(back);
}

// Logs the begin of each comparison of a target once.
void Experiment::say_begun(const Member& member) {
    const auto& [name, arms] = std::tie(member.taker.name, member.taker.arms);
    if (!begun_.insert(name + "\n" + member.key.text()).second) return;
    say(LOG_INFO, Event::comparison_begun,
        fmt::format("{}: {} is compared with {}", name, arms.candidate.name(), arms.reference.name()), name,
        arms);
}

// Logs TEXT, which is about ARMS of target NAME, with WHY if given.
void Experiment::say(int priority, Event event, const std::string& text, const std::string& name,
                     const Arms& arms, const std::optional<std::string>& why) {
    LogLine line{priority,
                 event,
                 text,
                 {{"WQ_NAME", name},
                  {"WQ_ARM_REFERENCE", arms.reference.name()},
                  {"WQ_ARM_CANDIDATE", arms.candidate.name()}}};
    if (why) line.fields.emplace_back("WQ_REASON", *why);
    edges_.log.write(line);
}

// N (every N-th item is timed) is the same in both windows of a pair: it comes from the rate before the pair.
void Experiment::sample(Member& member, double seconds) {
    Meters meters{edges_.engine.keys().measures().counters, nullptr, 0, edges_.paths,
                  edges_.engine.policy().judge.settings.min_items};
    if (no_counters_.empty()) {
        meters.work = &edges_.counters;
        meters.index = index_of(member.taker.name);
        const double items = notes_[member.taker.name].rate * seconds;
        edges_.counters.sample(meters.index, sampled_every(items));
    }
    member.pair.emplace(meters);
}

void Experiment::act() {
    SlotClock& clock = slot_->clock;
    const unsigned window = clock.window();
    switch (clock.action()) {
        case SlotAction::put:
            put(window);
            break;
        case SlotAction::open:
            for (Member& member : slot_->members)
                if (!member.left) member.pair->open(window, edges_.now());
            break;
        case SlotAction::look:
            look_into(window);
            break;
        case SlotAction::close:
            for (Member& member : slot_->members)
                if (!member.left) member.pair->close(window, edges_.now(), clock.times().counted());
            break;
        case SlotAction::finish:
            return finish_slot();
    }
    if (std::ranges::all_of(slot_->members, &Member::left)) return end_slot({});
    clock.done(edges_.now());
}

// Writes all arms of a window, in random order. Before the first write, the coins on disk say which window it
// is.
void Experiment::put(unsigned window) {
    std::vector<Switch> switches;
    std::vector<Member*> order;
    for (Member& member : slot_->members) {
        if (member.left) continue;
        if (const std::string why = why_moved(member); !why.empty())
            leave(member, why, false);
        else
            order.push_back(&member);
    }
    if (order.empty()) return;
    for (std::size_t i = order.size() - 1; i > 0; i--) std::swap(order[i], order[edges_.random() % (i + 1)]);
    for (const Member* member : order) switches.push_back({member->taker.name, member->arm(window)});
    slot_->coins.running = window;
    if (const auto kept = keep_coins(edges_.paths.slot(), slot_->coins); !kept) {
        for (Member* member : order) leave(*member, kept.error().text, false);
        return;
    }
    const auto switched = edges_.engine.switch_to(switches, edges_.now);
    for (std::size_t i = 0; i < order.size(); i++) {
        order[i]->in_place = window;
        Notes& notes = notes_[order[i]->taker.name];
        notes.write = std::max(switched[i].took, notes.write / 2);
        if (switched[i].outcome.kind != Outcome::Kind::done) put_failed(*order[i], switched[i].outcome);
    }
}

void Experiment::put_failed(Member& member, const Outcome& outcome) {
    using Kind = Outcome::Kind;
    if (outcome.kind == Kind::gone) return leave(member, "the workqueue vanished", false);
    if (outcome.kind == Kind::foreign)
        return leave(member, fmt::format("an external writer wrote '{}'", outcome.text), false);
    if (outcome.kind == Kind::unsupported)
        return leave(member, fmt::format("the kernel stored '{}' instead", outcome.text), false);
    leave(member, "not written: " + outcome.text, false);
}

// Cuts windows whose load starves. The first window is compared with both windows of the previous pair, on
// which this pair's coin has no influence; the second window with the first.
void Experiment::look_into(unsigned window) {
    for (Member& member : slot_->members) {
        if (member.left) continue;
        const auto seen = member.pair->look(window, edges_.now());
        if (!seen || seen->seconds <= 0) continue;
        const bool has_first = window == 1 && !member.pair->is_cut(0) && member.rate > 0;
        const double expected = has_first ? member.rate : notes_[member.taker.name].expected;
        if (window == 0) member.rate = seen->completed / seen->seconds;
        if (starves(seen->completed, expected * seen->seconds)) cut(member, window);
    }
}

// Ends WINDOW early. Until the next window the target holds the arm that it holds outside of slots.
void Experiment::cut(Member& member, unsigned window) {
    member.pair->cut(window, edges_.now());
    if (member.arm(window) == member.incumbent()) return;
    const auto back = edges_.engine.switch_to({{member.taker.name, member.incumbent()}}, edges_.now);
    if (back.front().outcome.kind != Outcome::Kind::done) put_failed(member, back.front().outcome);
}

// COUNTS: the daemon causes this, so the window that is cut off counts against its arm.
void Experiment::leave(Member& member, const std::string& why, bool counts) {
    member.left = true;
    totals_.cut_off++;
    // In the first pair of a comparison it does not count: there is no largest difference yet.
    if (const LedgerEntry* known = ledger_.ledger().find(member.key); counts && member.in_place && known) {
        totals_.windows_lost++;
        LedgerEntry entry = *known;
        add_lost_window(entry, member.side(*member.in_place));
        entry.updated = edges_.wall();
        ledger_.change().put(std::move(entry));
    }
    const std::string& name = member.taker.name;
    std::erase_if(slot_->coins.members, [&](const Coins::Member& one) { return one.target == name; });
    if (member.taker.by_hand)
        give_up(member, why);
    else
        put_off(name, why);
    const Arms& arms = member.taker.arms;
    say(LOG_INFO, Event::comparison_cut_off,
        fmt::format("{}: {} against {}: cut off: {}", name, arms.candidate.name(), arms.reference.name(),
                    why),
        name, arms, why);
    edges_.engine.leave_slot_of(name);
}

// A change of a mask or a scope causes no event. Both are checked before each window, and before a pair
// counts.
std::string Experiment::why_moved(const Member& member) {
    const auto seen = edges_.engine.glance(member.taker.name);
    if (!seen) return "";
    if (member.in_place && seen->foreign) return fmt::format("an external writer wrote '{}'", seen->word);
    if (seen->cpus == member.record_key.cpus) return "";
    return fmt::format("its CPUs changed to {} (before: {})", seen->cpus, member.record_key.cpus);
}

// If the operator or the policy causes it, it counts against the arm; if others cause it, it does not.
Experiment::Leaving Experiment::why_leave(const Member& member) const {
    const auto found = edges_.engine.targets().find(member.taker.name);
    if (found == edges_.engine.targets().end() || found->second.now.inode != member.inode)
        return {"the workqueue vanished"};
    const Target& target = found->second;
    if (const std::string why = edges_.engine.observing(); !why.empty())
        return {"the daemon only observes now: " + why, true};
    if (target.external) return {fmt::format("an external writer wrote '{}'", *target.external)};
    if (const std::string now = edges_.engine.ownership().as_before_us(target).scope.word;
        now != member.before)
        return {fmt::format("an external writer wrote '{}'", now)};
    if (!target.now.untouchable.empty()) return {target.now.untouchable};
    if (const std::string& why = edges_.engine.inventory().pods_unknown(); !why.empty())
        return {"pods unknown: " + why};
    if (target.plan.finding == Finding::pods_unknown) return {target.plan.reason};
    if (edges_.engine.ownership().holder_of(target) != Holder::slot) return {"an operator's order", true};
    const VerdictKey key = edges_.engine.keys().verdict_key(target.now, member.taker.arms);
    if (key.cpus != member.record_key.cpus)
        return {fmt::format("its CPUs changed to {} (before: {})", key.cpus, member.record_key.cpus)};
    if (edges_.engine.keys().ledger_key(target.now, member.taker.arms, member.taker.from_policy) !=
        member.key)
        return {"the policy changed", true};
    if (target.plan.finding == Finding::followers) return {target.plan.reason};
    if (member.taker.by_hand) return {why_no_order(target, member.taker.arms)};
    if (target.plan.finding == Finding::leave) return {target.plan.reason, true};
    return target.step.next || target.step.watch ? Leaving{} : Leaving{"the plan changed", true};
}

void Experiment::check() {
    if (slot_) check_slot();
    check_orders();
}

void Experiment::check_slot() {
    if (edges_.engine.inventory().online() != slot_->online && slot_->spoilt.empty())
        slot_->spoilt = "CPUs came or went";
    for (Member& member : slot_->members) {
        if (member.left) continue;
        if (const auto [why, ours] = why_leave(member); !why.empty()) leave(member, why, ours);
    }
    if (std::ranges::all_of(slot_->members, &Member::left)) end_slot({});
}

// Ends orders whose slot cannot begin any more. For targets in the running slot there is why_leave().
void Experiment::check_orders() {
    const auto is_measured = [&](const std::string& name) {
        return slot_ && std::ranges::any_of(slot_->members,
                                            [&](const Member& m) { return !m.left && m.taker.name == name; });
    };
    for (const auto& [name, order] : std::map(orders_)) {
        const auto found = edges_.engine.targets().find(name);
        if (found == edges_.engine.targets().end() || is_measured(name)) continue;
        std::string why = why_unjudged();
        if (why.empty()) why = why_no_order(found->second, order.arms);
        if (is_order(edges_.engine.ownership().holder_of(found->second))) why = "an operator's order";
        if (!why.empty()) give_up(member_of(name, order), why);
    }
    if (!slot_) write_verdicts();
}

void Experiment::cancel_all(const std::string& why) {
    if (slot_) {
        for (Member& member : slot_->members)
            if (!member.left) leave(member, why, true);
        end_slot({});
    }
    orders_.clear();
    look_at_.reset();
    idle();
    ledger_.save(edges_.now());
}

std::string Experiment::why_spoilt() const {
    const Clocks now = edges_.clocks();
    if (!slot_->spoilt.empty()) return slot_->spoilt;
    if (std::llabs(now.suspended - slot_->clocks.suspended) > kJump) return "the machine was suspended";
    if (std::llabs(now.wall - slot_->clocks.wall) > kJump) return "the clock jumped";
    if (scheduler_in_force(edges_.paths) != edges_.engine.keys().measures().scheduler)
        return "the scheduler changed";
    if (was_stolen(slot_->cpu_times, read_cpu_times(edges_.paths)))
        return "the hypervisor took more than 2% of the CPU time";
    return "";
}

void Experiment::finish_slot() {
    const std::string spoilt = why_spoilt();
    std::vector<Member*> members;
    for (Member& member : slot_->members) {
        if (member.left) continue;
        if (const std::string why = why_moved(member); !why.empty())
            leave(member, why, false);
        else
            members.push_back(&member);
    }
    std::vector<PairResult> results;
    std::vector<std::optional<double>> differences;
    for (Member* member : members) {
        if (!spoilt.empty()) member->pair->spoil(spoilt);
        results.push_back(member->pair->finish());
        differences.push_back(difference_in_time(results.back(), edges_.engine.keys().measures().counters));
    }
    turned_ = false;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < members.size(); i++) {
        std::vector<double> others;
        for (std::size_t o = 0; o < members.size(); o++)
            if (o != i && differences[o]) others.push_back(*differences[o]);
        take_pair(*members[i], results[i], others);
        names.push_back(members[i]->taker.name);
    }
    end_slot(names);
}

// First returns the targets to what the ledger decides. Nothing that takes time comes before that.
void Experiment::end_slot(const std::vector<std::string>& still_in_slot) {
    if (!still_in_slot.empty()) edges_.engine.leave_slot(still_in_slot);
    if (std::exchange(turned_, false)) edges_.engine.step_all();
    slot_.reset();
    forget_coins(edges_.paths.slot());
    write_verdicts();
    ledger_.save_in_time(edges_.now());
    look_at_ = edges_.now();
}

}  // namespace wq
