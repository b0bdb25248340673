// SPDX-License-Identifier: LGPL-2.1-or-later
#include "experiment/slot.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "machine/isolation.h"

namespace wq {
namespace {

struct Row {
    SlotAction action;
    unsigned window;
    std::uint64_t SlotTimes::*wait = nullptr;  // until the next action; nullptr: none, or see done()
};

constexpr std::array kRows = {
    Row{SlotAction::put, 1, &SlotTimes::lead},
    Row{SlotAction::put, 0, &SlotTimes::washout},
    Row{SlotAction::open, 0},
    Row{SlotAction::look, 0},
    Row{SlotAction::close, 0},
    Row{SlotAction::put, 1, &SlotTimes::washout},
    Row{SlotAction::open, 1},
    Row{SlotAction::look, 1},
    Row{SlotAction::close, 1, &SlotTimes::drain},
    Row{SlotAction::finish, 1},
};
constexpr std::uint64_t kShare = 100;  // the writes of a window may take 1/100 of it
constexpr StateRules kCoinsRules{.limit = 1U << 20, .may_replace_bytes = true};  // 16 members take 20 KB
constexpr std::int64_t kJump = 500'000'000;                                      // ns
constexpr std::uint64_t kLongWindow = 30'000'000;                                // us
constexpr std::uint64_t kLeastLead = 100'000;  // us, also of the drain; both are at least the washout

}  // namespace

SlotTimes times_of_slot(const Judging& judge, std::uint64_t window, bool is_long) {
    SlotTimes out;
    out.window = is_long ? std::max(window, kLongWindow) : window;
    out.washout = us(judge.washout);
    out.lead = out.drain = std::max(out.washout, kLeastLead);
    return out;
}

SlotClock::SlotClock(const SlotTimes& times, std::uint64_t now) : times_(times), due_(now) {}

SlotAction SlotClock::action() const {
    return kRows.at(step_).action;
}

unsigned SlotClock::window() const {
    return kRows.at(step_).window;
}

void SlotClock::done(std::uint64_t now) {
    const Row& row = kRows.at(step_++);
    due_ = now + (row.wait != nullptr ? times_.*row.wait : 0);
    if (row.action == SlotAction::open) due_ = (opened_ = now) + std::min(times_.look, times_.counted());
    if (row.action == SlotAction::look) due_ = opened_ + times_.counted();
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

static void describe(JsonPlace& at, Coins& coins) {
    at("slot", coins.slot);
    at("members", coins.members);
    at("running", coins.running, 0U, 1U);
}

Side Coins::side_of(const Member& member) const {
    return member.candidate_first == (running == 0U) ? Side::candidate : Side::reference;
}

Status keep_coins(const std::string& path, const Coins& coins) {
    return StateFile<Coins>(path, kCoinsRules).save(coins);
}

Result<std::optional<Coins>> read_coins(const std::string& path) {
    auto coins = StateFile<Coins>(path, kCoinsRules).read();
    if (!coins) forget_coins(path);
    return coins;
}

void forget_coins(const std::string& path) {
    (void)::unlink(path.c_str());
}

Member member_of(const Taker& taker, const Engine& engine) {
    const Target& target = engine.targets().at(taker.name);
    Member out;
    out.taker = taker;
    out.inode = target.now.inode;
    out.before = target.before_us().scope.word;
    out.cpus = engine.keys().cpus_of(target.now);
    return out;
}

SlotRun::SlotRun(const ExperimentEdges& edges, Counting& counting, OrderBook& book,
                 std::vector<Member> members, const SlotTimes& times)
    : edges_(edges),
      book_(book),
      members_(std::move(members)),
      clock_(times, edges.clock.now()),
      online_(edges.engine.inventory().online()),
      clocks_(edges.clock.clocks()),
      cpu_times_(read_cpu_times(edges.paths)) {
    coins_.slot = edges.clock.now();
    const double seconds = static_cast<double>(times.counted()) / 1e6;
    for (Member& member : members_) {
        const std::string& name = member.taker.name;
        member.candidate_first = (edges_.clock.random() & 1) != 0;
        coins_.members.push_back({name, member.taker.key.text(), member.candidate_first});
        Meters meters = counting.meters_of(name, book_.of(name).load.rate * seconds);
        meters.counters = edges_.engine.keys().measures().counters;
        meters.paths = edges_.paths;
        meters.min_items = edges_.engine.policy().judge.settings.min_items;
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
    const unsigned window = clock_.window();
    const SlotAction action = clock_.action();
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
    std::vector<Switch> switches;
    std::vector<Member*> order;
    for (Member& member : members_) {
        if (member.left) continue;
        if (const std::string why = why_moved(member); !why.empty())
            leave(member, why);
        else
            order.push_back(&member);
    }
    if (order.empty()) return;
    for (std::size_t i = order.size() - 1; i > 0; i--)
        std::swap(order[i], order[edges_.clock.random() % (i + 1)]);
    for (const Member* member : order) switches.push_back({member->taker.name, member->arm(window)});
    coins_.running = window;
    if (const auto kept = keep_coins(edges_.paths.slot(), coins_); !kept) {
        for (Member* member : order) leave(*member, kept.error().text);
        return;
    }
    const auto switched = edges_.engine.switch_to(switches, edges_.clock.now);
    for (std::size_t i = 0; i < order.size(); i++) {
        order[i]->in_place = window;
        std::uint64_t& write = book_.of(order[i]->taker.name).load.write;
        write = std::max(switched[i].took, write / 2);
        put_failed(*order[i], switched[i].outcome);
    }
}

// A target that was not written leaves.
void SlotRun::put_failed(Member& member, const Outcome& outcome) {
    switch (outcome.kind) {
        case Outcome::Kind::done:
            return;
        case Outcome::Kind::gone:
            return leave(member, "the workqueue vanished");
        case Outcome::Kind::foreign:
            return leave(member, fmt::format("an external writer wrote '{}'", outcome.text));
        case Outcome::Kind::unsupported:
            return leave(member, fmt::format("the kernel stored '{}' instead", outcome.text));
        default:
            leave(member, "not written: " + outcome.text);
    }
}

// Cuts windows whose load starves. The first window is compared with both windows of the previous pair, on
// which this pair's coin has no influence; the second window with the first.
void SlotRun::look_into(unsigned window) {
    for (Member& member : members_) {
        if (member.left) continue;
        const auto seen = member.pair->look(window, edges_.clock.now());
        if (!seen || seen->seconds <= 0) continue;
        const bool has_first = window == 1 && !member.pair->is_cut(0) && member.rate > 0;
        const double expected = has_first ? member.rate : book_.of(member.taker.name).load.expected;
        if (window == 0) member.rate = seen->completed / seen->seconds;
        if (starves(seen->completed, expected * seen->seconds)) cut(member, window);
    }
}

// Ends WINDOW early. Until the next window the target holds the arm that it holds outside of slots.
void SlotRun::cut(Member& member, unsigned window) {
    member.pair->cut(window, edges_.clock.now());
    const Arm& incumbent = member.taker.incumbent();
    if (member.arm(window) == incumbent) return;
    const auto back = edges_.engine.switch_to({{member.taker.name, incumbent}}, edges_.clock.now);
    put_failed(member, back.front().outcome);
}

void SlotRun::finish(std::vector<Done>& done) {
    finished_ = true;
    const std::string spoilt = why_spoilt();
    std::vector<std::optional<double>> differences;
    for (Member& member : members_) {
        if (member.left) continue;
        if (const std::string why = why_moved(member); !why.empty()) {
            leave(member, why);
            continue;
        }
        if (!spoilt.empty()) member.pair->spoil(spoilt);
        done.push_back({&member, member.pair->finish(), {}});
        differences.push_back(
            difference_in_time(done.back().result, edges_.engine.keys().measures().counters));
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

std::vector<SlotRun::Left> SlotRun::check(const Scheduler& scheduler) {
    if (edges_.engine.inventory().online() != online_) spoil("CPUs came or went");
    for (Member& member : members_) {
        if (member.left) continue;
        const Left leaving = why_leave(member, scheduler);
        if (!leaving.why.empty()) leave(member, leaving.why, leaving.ours);
    }
    return std::exchange(left_, {});
}

std::string SlotRun::why_spoilt() const {
    const Clocks now = edges_.clock.clocks();
    if (!spoilt_.empty()) return spoilt_;
    if (std::llabs(now.suspended - clocks_.suspended) > kJump) return "the machine was suspended";
    if (std::llabs(now.wall - clocks_.wall) > kJump) return "the clock jumped";
    if (scheduler_in_force(edges_.paths) != edges_.engine.keys().measures().scheduler)
        return "the scheduler changed";
    if (was_stolen(cpu_times_, read_cpu_times(edges_.paths)))
        return "the hypervisor took more than 2% of the CPU time";
    return "";
}

// A change of a mask or a scope causes no event.
std::string SlotRun::why_moved(const Member& member) const {
    const auto seen = edges_.engine.glance(member.taker.name);
    if (!seen) return "";
    if (member.in_place && seen->foreign) return fmt::format("an external writer wrote '{}'", seen->word);
    if (seen->cpus == member.cpus) return "";
    return fmt::format("its CPUs changed to {} (before: {})", seen->cpus, member.cpus);
}

// If the operator or the policy causes it, it counts against the arm; if others cause it, it does not.
SlotRun::Left SlotRun::why_leave(const Member& member, const Scheduler& scheduler) const {
    const auto leaves = [&](const std::string& why, bool ours = false) { return Left{&member, why, ours}; };
    const Engine& engine = edges_.engine;
    const auto found = engine.targets().find(member.taker.name);
    if (found == engine.targets().end() || found->second.now.inode != member.inode)
        return leaves("the workqueue vanished");
    const Target& target = found->second;
    if (const std::string why = engine.observing(); !why.empty())
        return leaves("the daemon only observes now: " + why, true);
    if (target.external) return leaves(fmt::format("an external writer wrote '{}'", *target.external));
    if (const std::string now = target.before_us().scope.word; now != member.before)
        return leaves(fmt::format("an external writer wrote '{}'", now));
    if (!target.now.untouchable.empty()) return leaves(target.now.untouchable);
    if (const std::string& why = engine.inventory().pods_unknown(); !why.empty())
        return leaves("pods unknown: " + why);
    if (target.plan.finding == Finding::pods_unknown) return leaves(target.plan.reason);
    if (target.holder() != Holder::slot) return leaves("an operator's order", true);
    if (const std::string cpus = engine.keys().cpus_of(target.now); cpus != member.cpus)
        return leaves(fmt::format("its CPUs changed to {} (before: {})", cpus, member.cpus));
    const Taker& taker = member.taker;
    if (engine.keys().ledger_key(target.now, taker.arms, taker.from_policy) != taker.key)
        return leaves("the policy changed", true);
    if (target.plan.finding == Finding::followers) return leaves(target.plan.reason);
    if (taker.by_hand) return leaves(scheduler.why_no_order(target, taker.arms));
    if (target.plan.finding == Finding::leave) return leaves(target.plan.reason, true);
    return target.step.next || target.step.watch ? leaves("") : leaves("the plan changed", true);
}

}  // namespace wq
