// SPDX-License-Identifier: LGPL-2.1-or-later
#include "experiment/experiment.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "base/clock.h"
#include "counters/counter_table.h"
#include "machine/isolation.h"

namespace wq {
namespace {

constexpr std::uint64_t kLookTime = 5 * kSecond;  // between two looks at the traffic
constexpr std::uint64_t kLongEvery = 4;

// What COUNTERS need that is counted only when it is asked for.
Wanted wanted_by(const std::vector<ComparedCounter>& counters) {
    Wanted out;
    for (const ComparedCounter& counter : counters)
        if (const CounterKind* kind = find_counter(counter.name); kind != nullptr && kind->needs != nullptr)
            out.*kind->needs = true;
    return out;
}

}  // namespace

Experiment::Experiment(ExperimentEdges edges)
    : edges_(std::move(edges)),
      books_(edges_),
      counting_(edges_.counters),
      host_(edges_.paths, edges_.clock) {}

Scheduler Experiment::scheduler() const {
    const std::uint64_t now = edges_.clock.now();
    return Scheduler({edges_.targets, ledger(), edges_.book, why_no_slot(), edges_.ledger.why_not(now),
                      counting_.works(), now, edges_.clock.wall()});
}

// The counters are part of the keys, so what cannot be counted makes other comparisons.
void Experiment::measure_by(const std::string& lacks) {
    edges_.ledger.lack(lacks);
    edges_.targets.measure_by(measures_of(edges_.targets.policy().judge, counting_.works(), lacks,
                                          scheduler_in_force(edges_.paths)));
    edges_.book.waiting.unjudged = edges_.targets.keys().measures().can_judge()
                                       ? ""
                                       : "no counter can be measured: " + counting_.why_not;
}

void Experiment::policy_changed() {
    counting_.why_not.clear();
    edges_.book.policy_changed();
    const Judging& judge = edges_.targets.policy().judge;
    measure_by(ledger().lacks);
    // Whether work can be counted must be known before the first look, if something else can be measured.
    const auto of_work = std::ranges::count_if(judge.counters, is_work_counter, &JudgedCounter::name);
    if (of_work > 0 && of_work < std::ssize(judge.counters)) (void)look_at_traffic();
    edges_.targets.name_only(read_named_only(edges_.paths));
    // The arm that was kept last for a class under an older kernel is the first candidate under this one.
    const std::string kernel = kernel_key(edges_.targets.kernel());
    std::map<std::string, std::int64_t> latest;
    for (const auto& [text, entry] : ledger().entries()) {
        const LedgerKey& key = entry.key;
        if (entry.judgement != Judgement::improved || key.kernel == kernel) continue;
        if (entry.updated < latest[key.kind]) continue;
        latest[key.kind] = entry.updated;
        edges_.book.before_upgrade[key.kind] = key.candidate;
    }
    host_.look(judge);
    look_at_.reset();
}

std::string Experiment::why_no_slot() const {
    Conditions host = host_.conditions(edges_.targets.policy().judge);
    host.observing = edges_.targets.observing();
    host.pods_unknown = edges_.targets.snapshot().pods_unknown;
    host.ledger_error = edges_.ledger.why_not(edges_.clock.now());
    return wq::why_no_slot(host);
}

// Returns whether rates are known now: a rate needs two looks. Error: nothing can be measured. If work cannot
// be counted, nobody counts it until a reload. The counters that are left make comparisons with other keys.
Result<bool> Experiment::look_at_traffic() {
    bool known = true;
    if (counting_.works()) {
        const std::uint64_t last = counting_.looked_at();
        const std::uint64_t now = edges_.clock.now();
        const auto rates = counting_.rates(now);
        known = rates && *rates;
        if (known) edges_.book.see(**rates, last, now);
        if (!rates && kind_of_error(rates.error().code) == Outcome::Kind::transient)
            return tl::unexpected(rates.error());
        if (!rates) {
            counting_.why_not = rates.error().text;
            edges_.log.write({LOG_NOTICE, Event::none, "work is not counted: " + counting_.why_not});
            measure_by("work is not counted");
        }
    }
    if (!edges_.book.waiting.unjudged.empty()) return fail(edges_.book.waiting.unjudged);
    return known;
}

// No slot begins: detaches the counters.
void Experiment::idle() {
    edges_.book.waiting.compared.clear();
    counting_.detach();
    held_ = false;
}

void Experiment::look() {
    look_at_.reset();
    host_.look(edges_.targets.policy().judge);
    const Measures& measures = edges_.targets.keys().measures();
    if (scheduler_in_force(edges_.paths) != measures.scheduler) {
        measure_by(measures.lacks);  // evidence is used only under the scheduler it is from
        edges_.engine.step_all();
    }
    const std::uint64_t now = edges_.clock.now();
    const Scheduler scheduler = this->scheduler();
    const std::vector<Taker> all = scheduler.takers();
    edges_.book.no_rates.clear();
    if (all.empty()) return idle();
    if (const auto due = std::ranges::min(all, {}, &Taker::due).due; due > now + kLookTime) {
        look_at_ = due - kLookTime;
        return idle();
    }
    const auto known = look_at_traffic();
    if (!known) {
        edges_.book.no_rates = known.error().text;
        check();
        return idle();
    }
    look_at_ = now + kLookTime;
    if (!*known) return;
    edges_.book.waiting.compared.clear();
    std::vector<Taker> ready;
    for (const Taker& taker : all) {
        if (!taker.by_hand && !scheduler.is_busy(taker.name)) continue;
        if (taker.course == Course::dense) edges_.book.waiting.compared.insert(taker.name);
        if (taker.due <= now) ready.push_back(taker);
    }
    // A look is most of what a waiting daemon costs.
    if (edges_.book.waiting.compared.empty()) look_at_ = now + 2 * kLookTime;
    if (!ready.empty()) return begin_slot(scheduler.choose(std::move(ready)));
    if (std::ranges::find(all, Course::dense, &Taker::course) == all.end())
        look_at_ = now + us(edges_.targets.policy().judge.recheck) / 2;
    idle();
}

void Experiment::begin_slot(std::vector<Taker> takers) {
    const Targets& targets = edges_.targets;
    const Judging& judge = targets.policy().judge;
    std::vector<std::uint64_t> writes;
    for (const Taker& taker : takers) writes.push_back(edges_.book.of(taker.name).load.write);
    const SlotSize size = size_of_slot(writes, us(judge.window), judge.concurrent);
    takers.resize(size.targets);
    std::vector<Member> members, able;
    std::vector<Counting::Attached> counted;
    std::vector<std::string> names;
    for (const Taker& taker : takers) {
        members.push_back(member_of(taker, targets));
        counted.push_back({taker.name, members.back().inode});
        names.push_back(taker.name);
    }
    const auto attached = counting_.attach(counted, wanted_by(targets.keys().measures().counters));
    if (!attached) return books_.cannot_begin(members.front(), attached.error());
    if (const std::string limits = counting_.limits();
        counting_.works() && limits != targets.keys().measures().lacks) {
        measure_by(limits);  // work is counted differently than before: these are other comparisons
        return edges_.engine.step_all();
    }
    names.resize(*attached);
    const auto entered = edges_.writer.enter(names);
    for (std::size_t i = 0; i < names.size(); i++)
        if (entered[i])
            able.push_back(std::move(members[i]));
        else
            books_.cannot_begin(members[i], entered[i].error());
    if (able.empty()) return;
    held_ = true;
    const Taker& first = able.front().taker;
    const LedgerEntry* watched = first.course == Course::watched ? ledger().find(first.key) : nullptr;
    const bool is_long = watched != nullptr && pairs_of(*watched) % kLongEvery == kLongEvery - 1;
    slot_ = std::make_unique<SlotRun>(edges_, counting_, std::move(able),
                                      times_of_slot(judge, size.window, is_long));
    books_.begun(slot_->members());
}

// At the end of a slot its targets are returned to what the ledger decides before anything that takes time.
void Experiment::after_act(const std::vector<SlotRun::Left>& left, const std::vector<SlotRun::Done>& done) {
    std::vector<std::string> names;
    for (const SlotRun::Left& one : left) {
        books_.left(one);
        names.push_back(one.member->taker.name);
    }
    for (const SlotRun::Done& one : done) {
        books_.take(one, slot_->times());
        names.push_back(one.member->taker.name);
    }
    if (!names.empty()) edges_.writer.leave(names);
    if (!slot_->is_over()) return;
    if (books_.turned()) edges_.engine.step_all();
    edges_.ledger.keep(slot_->number());
    slot_.reset();
    (void)coins_file(edges_.paths.slot()).remove();
    books_.write();
    edges_.ledger.save_in_time(edges_.clock.now());
    look_at_ = edges_.clock.now();
}

void Experiment::tick(const std::string& system_state) {
    Targets& targets = edges_.targets;
    // What begins to serve swap is left from now on.
    if (auto swap = swap_devices(edges_.paths); swap != targets.named_only().swap) {
        targets.name_only({targets.named_only().host, std::move(swap)});
        edges_.engine.step_all();
    }
    host_.seen.system_state = system_state;
    check();
    const std::uint64_t now = edges_.clock.now();
    if (!slot_) edges_.ledger.save_in_time(now);
    edges_.book.tidy(targets.all(), now, edges_.clock.wall());
    if (!due()) look();
}

void Experiment::on_time() {
    const auto when = due();
    if (!when || edges_.clock.now() < *when) return;
    if (!slot_) return look();
    std::vector<SlotRun::Done> done;
    const auto left = slot_->act(done);
    after_act(left, done);
}

void Experiment::cpus_changed() {
    host_.cpus_changed();
    if (slot_) slot_->spoil("CPUs came or went");
}

void Experiment::check() {
    const Targets& targets = edges_.targets;
    if (slot_) after_act(slot_->check());
    for (const auto& [name, order] : std::map(edges_.book.orders)) {
        const Target* target = targets.find(name);
        if (target == nullptr) {
            edges_.log.write({LOG_NOTICE, Event::none, name + ": its ordered comparison ends: it is gone"});
            edges_.book.orders.erase(name);
        }
        if (target == nullptr || target->unread || (slot_ && slot_->member(name) != nullptr)) continue;
        const auto no = why_not(targets, *target, Use::compare, &order.arms);
        const std::string why = no ? no->why : edges_.book.waiting.unjudged;
        if (why.empty()) continue;
        Taker taker = taker_of(*target, order.arms, Course::dense);
        taker.key = targets.keys().ledger_key(target->now, order.arms, taker.from_policy);
        books_.give_up(member_of(taker, targets), why);
    }
    if (!slot_) books_.write();
}

Status Experiment::order(const std::string& name, const std::string& scope) {
    const Targets& targets = edges_.targets;
    const std::uint64_t now = edges_.clock.now();
    if (edges_.book.orders.contains(name)) return fail(name + ": an order compares it already", EBUSY);
    if (const std::string why = edges_.ledger.why_not(now); !why.empty())
        return fail(fmt::format("{}: the ledger cannot be written: {}", name, why), EIO);
    if (!edges_.book.waiting.unjudged.empty())
        return fail(name + ": " + edges_.book.waiting.unjudged, EOPNOTSUPP);
    edges_.engine.reconcile();
    const Target* target = targets.find(name);
    if (target == nullptr) return fail(name + ": no such target", ENOENT);
    const auto arms = scheduler().arms_of_order(*target, scope);
    if (!arms) return tl::unexpected(arms.error());
    // A suspect stays out of force meanwhile.
    std::erase_if(edges_.book.of(name).aside.rests,
                  [&](const auto& rest) { return rest.first == arms->key() && !rest.second.suspect; });
    edges_.book.orders[name] = {*arms};
    if (!slot_) look_at_ = now;
    return {};
}

void Experiment::cancel_all(const std::string& why) {
    if (slot_) after_act(slot_->leave_all(why));
    edges_.book.orders.clear();
    look_at_.reset();
    idle();
    edges_.ledger.save(edges_.clock.now());
    edges_.verdicts.save(edges_.record, edges_.log);  // what failed before
}

std::optional<ComparisonView> Experiment::view_of(const std::string& name) const {
    const Member* measured = slot_ ? slot_->member(name) : nullptr;
    const auto taker = measured != nullptr ? std::optional(measured->taker) : scheduler().answer(name);
    if (!taker) return {};
    ComparisonView out{*taker};
    out.measuring = measured != nullptr;
    out.by_hand = edges_.book.orders.contains(name);
    out.lost_seconds = edges_.book.lost(name, edges_.clock.wall());
    out.contention = contention_of(edges_.book, ledger(), *taker);
    const LedgerEntry* entry = ledger().find(taker->key);
    if (entry == nullptr) return out;
    out.judgement = entry->judgement;
    const double alpha = edges_.targets.policy().judge.settings.alpha;
    out.standing = standing_of(decision_of(*entry, alpha, taker->candidates), entry->columns);
    return out;
}

}  // namespace wq
