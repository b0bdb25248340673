// SPDX-License-Identifier: LGPL-2.1-or-later
#include "experiment/slot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/file.h"

namespace wq {

constexpr std::array kSteps = {
    SlotStep{SlotAction::put, 1, &SlotTimes::lead},
    SlotStep{SlotAction::put, 0, &SlotTimes::washout},
    SlotStep{SlotAction::open, 0},
    SlotStep{SlotAction::look, 0},
    SlotStep{SlotAction::close, 0},
    SlotStep{SlotAction::put, 1, &SlotTimes::washout},
    SlotStep{SlotAction::open, 1},
    SlotStep{SlotAction::look, 1},
    SlotStep{SlotAction::close, 1, &SlotTimes::drain},
    SlotStep{SlotAction::finish, 1},
};
constexpr std::uint64_t kShare = 100;  // the writes of a window may take 1/100 of it
constexpr StateRules kCoinsRules{.limit = 1U << 20, .may_replace_bytes = true};  // 16 members take 20 KB
constexpr std::int64_t kJump = 500'000'000;                                      // ns
constexpr std::uint64_t kLongWindow = 30'000'000;                                // us
constexpr std::uint64_t kLeastLead = 100'000;  // us, also of the drain; both are at least the washout

SlotTimes times_of_slot(const Judging& judge, std::uint64_t window, bool is_long) {
    SlotTimes out;
    out.window = is_long ? std::max(window, kLongWindow) : window;
    out.washout = us(judge.washout);
    out.lead = out.drain = std::max(out.washout, kLeastLead);
    return out;
}

const SlotStep& SlotClock::next() const {
    return kSteps.at(step_);
}

void SlotClock::done(std::uint64_t now) {
    const SlotStep& step = kSteps.at(step_++);
    due_ = now + (step.wait != nullptr ? times_.*step.wait : 0);
    if (step.action == SlotAction::open) due_ = (opened_ = now) + std::min(times_.look, times_.counted());
    if (step.action == SlotAction::look) due_ = opened_ + times_.counted();
}

SlotSize size_of_slot(const std::vector<std::uint64_t>& writes, std::uint64_t window, std::size_t most) {
    SlotSize out{0, window};
    std::uint64_t sum = 0;
    for (const std::uint64_t one : writes) {
        if (out.targets == most || (out.targets > 0 && (sum + one) * kShare > window)) break;
        sum += one;
        out.targets++;
    }
    if (out.targets == 1) out.window = std::clamp(sum * kShare, window, std::max(window, kLongestWindow));
    return out;
}

static void describe(JsonPlace& at, Coins::Member& member) {
    at("target", member.target);
    at("comparison", member.comparison);
    at("candidate_first", member.candidate_first);
}

void describe(JsonPlace& at, Coins& coins) {
    at("slot", coins.slot);
    at("members", coins.members);
    at("running", coins.running, 0U, 1U);
}

StateFile<Coins> coins_file(const std::string& path) {
    return {path, kCoinsRules};
}

Member member_of(const Taker& taker, const Targets& targets) {
    const Target& target = targets.all().at(taker.name);
    Member out;
    out.taker = taker;
    out.inode = target.now.inode;
    out.cpus = targets.keys().cpus_of(target.now);
    return out;
}

SlotRun::SlotRun(const ExperimentEdges& edges, Counting& counting, std::vector<Member> members,
                 const SlotTimes& times)
    : edges_(edges),
      members_(std::move(members)),
      clock_(times, edges.clock.now()),
      online_(edges.targets.snapshot().online),
      clocks_(edges.clock.clocks()),
      cpu_times_(read_cpu_times(edges.paths)) {
    coins_.slot = edges.clock.now();
    const double seconds = static_cast<double>(times.counted()) / 1e6;
    for (Member& member : members_) {
        const std::string& name = member.taker.name;
        member.candidate_first = (edges_.clock.random() & 1) != 0;
        coins_.members.push_back({name, member.taker.key.text(), member.candidate_first});
        Meters meters = counting.meters_of(name, edges_.book.of(name).load.rate * seconds);
        meters.counters = edges_.targets.keys().measures().counters;
        meters.paths = edges_.paths;
        meters.min_items = edges_.targets.policy().judge.settings.min_items;
        member.pair.emplace(meters);
    }
}

const Member* SlotRun::member(const std::string& name) const {
    for (const Member& member : members_)
        if (!member.left && member.taker.name == name) return &member;
    return nullptr;
}

bool SlotRun::is_over() const {
    return finished_ || std::ranges::all_of(members_, &Member::left);
}

void SlotRun::spoil(const std::string& why) {
    if (spoilt_.empty()) spoilt_ = why;
}

std::vector<SlotRun::Left> SlotRun::act(std::vector<Done>& done) {
    const unsigned window = clock_.next().window;
    const SlotAction action = clock_.next().action;
    if (action == SlotAction::put) put(window);
    if (action == SlotAction::look) look_into(window);
    if (action == SlotAction::finish) finish(done);
    for (Member& member : members_) {
        if (member.left) continue;
        if (action == SlotAction::open) member.pair->open(window, edges_.clock.now());
        if (action == SlotAction::close) member.pair->close(window, edges_.clock.now(), times().counted());
    }
    if (!is_over()) clock_.done(edges_.clock.now());
    return std::exchange(left_, {});
}

// In random order. Before the first write, the coins on disk say which window it is.
void SlotRun::put(unsigned window) {
    std::vector<Member*> order;
    for (Member& member : members_)
        if (!member.left && stays(member)) order.push_back(&member);
    if (order.empty()) return;
    for (std::size_t i = order.size() - 1; i > 0; i--)
        std::swap(order[i], order[edges_.clock.random() % (i + 1)]);
    std::vector<std::pair<std::string, Arm>> switches;
    for (const Member* member : order) switches.emplace_back(member->taker.name, member->arm(window));
    coins_.running = window;
    if (const auto kept = coins_file(edges_.paths.slot()).save(coins_); !kept) {
        for (Member* member : order) leave(*member, kept.error().text);
        return;
    }
    const auto switched = edges_.writer.switch_to(switches, edges_.clock.now);
    for (std::size_t i = 0; i < order.size(); i++) {
        order[i]->in_place = window;
        std::uint64_t& write = edges_.book.of(order[i]->taker.name).load.write;
        write = std::max(switched[i].took, write / 2);
        put_failed(*order[i], switched[i]);
    }
}

// A target that was not written leaves.
void SlotRun::put_failed(Member& member, const Outcome& outcome) {
    using End = Outcome::Kind;
    if (outcome.kind == End::done) return;
    leave(member, outcome.kind == End::gone          ? "the workqueue vanished"
                  : outcome.kind == End::foreign     ? "an external writer wrote " + outcome.found()
                  : outcome.kind == End::unsupported ? "the kernel stored " + outcome.found() + " instead"
                                                     : "not written: " + outcome.text);
}

// Cuts windows whose load starves. The first window is compared with both windows of the previous pair, on
// which this pair's coin has no influence; the second window with the first.
void SlotRun::look_into(unsigned window) {
    for (Member& member : members_) {
        if (member.left) continue;
        const auto seen = member.pair->look(window, edges_.clock.now());
        if (!seen || seen->seconds <= 0) continue;
        const bool has_first = window == 1 && !member.pair->is_cut(0) && member.rate > 0;
        const double expected = has_first ? member.rate : edges_.book.of(member.taker.name).load.expected;
        if (window == 0) member.rate = seen->completed / seen->seconds;
        if (starves(seen->completed, expected * seen->seconds)) cut(member, window);
    }
}

// Ends WINDOW early. Until the next window the target holds the arm that it holds outside of slots.
void SlotRun::cut(Member& member, unsigned window) {
    member.pair->cut(window, edges_.clock.now());
    const Arm& incumbent = member.taker.incumbent();
    if (member.arm(window) == incumbent) return;
    const auto back = edges_.writer.switch_to({{member.taker.name, incumbent}}, edges_.clock.now);
    put_failed(member, back.front());
}

void SlotRun::finish(std::vector<Done>& done) {
    finished_ = true;
    const std::string spoilt = why_spoilt();
    std::vector<std::optional<double>> differences;
    for (Member& member : members_) {
        if (member.left || !stays(member)) continue;
        if (!spoilt.empty()) member.pair->spoil(spoilt);
        done.push_back({&member, member.pair->finish(), {}});
        differences.push_back(
            difference_in_time(done.back().result, edges_.targets.keys().measures().counters));
    }
    for (std::size_t i = 0; i < done.size(); i++)
        for (std::size_t o = 0; o < done.size(); o++)
            if (o != i && differences[o]) done[i].others.push_back(*differences[o]);
}

void SlotRun::leave(Member& member, const std::string& why, bool ours) {
    member.left = true;
    std::erase_if(coins_.members, [&](const Coins::Member& one) { return one.target == member.taker.name; });
    left_.push_back({&member, why, ours});
}

std::vector<SlotRun::Left> SlotRun::leave_all(const std::string& why) {
    for (Member& member : members_)
        if (!member.left) leave(member, why, true);
    return std::exchange(left_, {});
}

std::vector<SlotRun::Left> SlotRun::check() {
    if (edges_.targets.snapshot().online != online_) spoil("CPUs came or went");
    for (Member& member : members_)
        if (const auto no = member.left ? std::nullopt : why_leave(member)) leave(member, no->why, no->ours);
    return std::exchange(left_, {});
}

// Looks at MEMBER again, because a change of a mask or a scope causes no event. Returns whether it stays.
bool SlotRun::stays(Member& member) {
    (void)ask(edges_.targets, member.taker.name, Use::compare);
    const auto no = why_leave(member);
    if (no) leave(member, no->why, no->ours);
    return !no;
}

std::string SlotRun::why_spoilt() const {
    const Clocks now = edges_.clock.clocks();
    if (!spoilt_.empty()) return spoilt_;
    if (std::llabs(now.suspended - clocks_.suspended) > kJump) return "the machine was suspended";
    if (std::llabs(now.wall - clocks_.wall) > kJump) return "the clock jumped";
    if (scheduler_in_force(edges_.paths) != edges_.targets.keys().measures().scheduler)
        return "the scheduler changed";
    if (was_stolen(cpu_times_, read_cpu_times(edges_.paths)))
        return "the hypervisor took more than 2% of the CPU time";
    return "";
}

// If the operator or the policy causes it, it counts against the arm; if others cause it, it does not.
std::optional<No> SlotRun::why_leave(const Member& member) const {
    const Targets& targets = edges_.targets;
    const Taker& taker = member.taker;
    const Target* target = targets.find(taker.name);
    if (target == nullptr || target->now.inode != member.inode) return No{"the workqueue vanished"};
    if (auto no = why_not(targets, *target, Use::compare, &taker.arms)) return no;
    const Planned& plan = target->plan;
    if (plan.finding == Finding::pods_unknown || plan.finding == Finding::followers) return No{plan.reason};
    if (!target->in_slot) return No{"an operator's order", EBUSY, true};
    if (const std::string cpus = targets.keys().cpus_of(target->now); cpus != member.cpus)
        return No{fmt::format("its CPUs changed to {} (before: {})", cpus, member.cpus)};
    if (targets.keys().ledger_key(target->now, taker.arms, taker.from_policy) != taker.key)
        return No{"the policy changed", EPERM, true};
    if (taker.by_hand) return {};
    if (plan.finding == Finding::leave) return No{plan.reason, EPERM, true};
    if (!target->step.next && !target->step.watch) return No{"the plan changed", EPERM, true};
    return {};
}

}  // namespace wq
