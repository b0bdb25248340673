// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/mask_keeper.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <set>
#include <utility>

#include "machine/udev.h"
#include "machine/workqueue.h"

namespace wq {
namespace {

using End = Outcome::Kind;

bool is_wished(const MaskWish& wish) {
    return wish.kind != MaskWish::Kind::leave;
}

bool is_workqueue(const std::string& name) {
    return name != kDefaultTarget && name != kDefaultMask;
}

bool names_one(const WorkqueueRule& rule, const std::string& name) {
    return std::ranges::find(rule.match, name) != rule.match.end();
}

// There is nothing to write if the planned mask is the effective one (the kernel itself removes isolated CPUs
// from the mask of all unbound workqueues) or the requested one.
bool is_in_place(const Mask& mask) {
    return mask.now.effective == mask.planned || mask.now.cpus == mask.planned;
}

bool is_ours_to_set(const Mask& mask) {
    return mask.opted_out == false && mask.now.untouchable.empty();
}

std::string left_to(const MaskFile& now, const MaskEntry& entry) {
    const CpuSet before = entry.before();
    const std::string back =
        now.cpus == before ? "" : fmt::format("CPUs {} (the baseline) are back and ", before.list());
    return fmt::format(
        "has CPUs {}, which an external writer wrote; it is left alone until {}the policy is reloaded",
        now.cpus.list(), back);
}

// Why the planned mask is empty.
std::string why_no_cpu(const HostCpus& cpus) {
    if (cpus.possible.empty()) return "the possible or isolated CPUs cannot be read";
    const CpuSet isolated = cpus.possible & cpus.isolated;
    if (isolated.empty()) return "no CPU is left: no CPU of the mask is possible on this host";
    return fmt::format("no CPU is left: all CPUs of the mask are isolated or not possible (isolated: {})",
                       isolated.list());
}

}  // namespace

MaskKeeper::MaskKeeper(Edges edges)
    : edges_(std::move(edges)), writer_(edges_.files, edges_.store), log_(edges_.log) {}

void MaskKeeper::start_over() {
    if (masks_.empty()) return;  // at the start, not at a reload
    masks_.clear();
    log_.start_over();
    for (const std::string& name : edges_.store.names()) {
        MaskEntry& known = *edges_.store.find(name);
        known.external = false;
        known.announce_baseline();  // somebody may have put it back by hand
    }
}

void MaskKeeper::changed() {
    for (auto& [name, mask] : masks_) mask.opted_out.reset();
}

bool MaskKeeper::wants_retry() const {
    return std::ranges::any_of(masks_, [](const auto& item) { return item.second.failures > 0; });
}

// ---- looking

// The wishes by name; `leave` for masks that are only in the store. Masks in the store are included even if
// the workqueues cannot be listed.
std::map<std::string, MaskWish> MaskKeeper::wishes(const Policy& policy) {
    std::map<std::string, MaskWish> out;
    for (const std::string& name : edges_.store.names()) out[name];
    if (!policy.wants_masks()) return out;
    const auto names = edges_.files.names();
    if (!names) log_.write_once(LOG_ERR, Event::none, names.error().text);
    std::set<std::string> seen;
    if (names) seen.insert(names->begin(), names->end());
    if (!names)
        for (const auto& [name, mask] : masks_) seen.insert(name);
    for (const auto& [name, wish] : out) seen.insert(name);
    for (const std::string& name : seen) {
        const WorkqueueRule* rule = is_workqueue(name) ? policy.rule_for(name) : nullptr;
        if (rule == nullptr || !is_wished(rule->mask)) continue;
        if (names_one(*rule, name) || masks_.contains(name) || has_mask(name)) out[name] = rule->mask;
    }
    if (is_wished(policy.default_mask)) out[kDefaultMask] = policy.default_mask;
    return out;
}

// A pattern applies to workqueues that have a mask to set. If the mask cannot be read now, there may be one.
bool MaskKeeper::has_mask(const std::string& name) const {
    const auto now = edges_.files.read_mask(name);
    return !now || now->untouchable.empty();
}

void MaskKeeper::look(const Policy& policy, const std::string& observing) {
    observing_ = observing;
    const auto asked = wishes(policy);
    std::erase_if(masks_, [&](const auto& item) { return !asked.contains(item.first); });
    if (asked.empty()) return;
    cpus_ = edges_.cpus();
    for (const auto& [name, wish] : asked) look_at(name, wish);
}

void MaskKeeper::look_at(const std::string& name, const MaskWish& wish) {
    const auto now = edges_.files.read_mask(name);
    if (!now) return not_read(name, wish, now.error());
    if (const MaskEntry* known = entry(name); known != nullptr && known->inode != now->inode) forget(name);
    if (const auto known = masks_.find(name); known != masks_.end() && known->second.now.inode != now->inode)
        masks_.erase(known);
    if (entry(name) == nullptr && !is_wished(wish)) return;
    Mask& mask = masks_[name];
    mask.now = *now;
    mask.unread = false;
    mask.wish = wish;
    mask.planned = planned(name, wish);
    ask_udev(name, mask);
    notice(name, mask);
    if (entry(name) == nullptr && !is_wished(wish)) return forget(name);
    if (!wants_baseline(name, mask)) mask.stuck = 0;
    mask.show(judge(name, mask));
}

void MaskKeeper::not_read(const std::string& name, const MaskWish& wish, const Error& error) {
    if (kind_of_error(error.code) == End::gone) return forget(name);
    log_.write_once(LOG_WARNING, Event::none, error.text);
    Mask& mask = masks_[name];
    mask.unread = true;
    mask.failures = 0;  // the next tick looks again
    mask.wish = wish;
    mask.show({State::waiting, error.text});
}

void MaskKeeper::forget(const std::string& name) {
    masks_.erase(name);
    edges_.store.remove(name);
}

// udev has no device for the mask of all unbound workqueues.
void MaskKeeper::ask_udev(const std::string& name, Mask& mask) const {
    if (mask.opted_out) return;
    mask.opted_out = name == kDefaultMask ? false : edges_.opted_out(name);
}

// Only our writes change a mask that we manage. Any other value is an external writer's.
void MaskKeeper::notice(const std::string& name, Mask& mask) {
    MaskEntry* known = edges_.store.find(name);
    const auto before = std::exchange(mask.last, mask.now);
    if (known != nullptr) {
        if (known->external || known->settle(mask.now.cpus) != Whose::foreign) return;
        // If no rule asks for a mask any more, an external writer's mask needs no entry.
        is_wished(mask.wish) ? leave_to_writer(name, mask) : edges_.store.remove(name);
    } else if (before && before->cpus != mask.now.cpus && observing_.empty() && is_ours_to_set(mask)) {
        // Nothing was written yet: the baseline is what was there before the external writer wrote.
        edges_.store.put({name, mask.now.inode, before->text});
        leave_to_writer(name, mask);
    }
}

void MaskKeeper::leave_to_writer(const std::string& name, Mask& mask) {
    MaskEntry& known = *edges_.store.find(name);
    known.may_hold.clear();
    known.external = true;
    mask.show({State::external, left_to(mask.now, known)});
    edges_.log.write({LOG_NOTICE,
                      Event::mask_external,
                      fmt::format("{}: cpumask {}", name, mask.reason),
                      {{"WQ_NAME", name}, {"WQ_MASK_NEW", mask.now.cpus.list()}}});
}

// ---- deciding

// If the possible CPUs are not known, the isolated ones may not be known either: the result is empty.
CpuSet MaskKeeper::planned(const std::string& name, const MaskWish& wish) const {
    switch (wish.kind) {
        case MaskWish::Kind::leave:
            return {};
        case MaskWish::Kind::housekeeping:
            return cpus_.possible - cpus_.isolated;
        case MaskWish::Kind::fixed:
            break;
    }
    const CpuSet out = wish.cpus & cpus_.possible;
    return name == kDefaultMask ? out - cpus_.isolated : out;
}

Shown MaskKeeper::judge(const std::string& name, const Mask& mask) const {
    const MaskEntry* known = entry(name);
    if (known != nullptr && known->external) return {State::external, left_to(mask.now, *known)};
    if (!mask.now.untouchable.empty()) return {State::leave, mask.now.untouchable};
    if (mask.stuck > 0) return {State::quarantined, mask.failed};
    if (!mask.opted_out) return {State::waiting, kNotProcessedByUdev};
    if (*mask.opted_out) return {State::leave, kOptedOutByUdev};
    if (!observing_.empty()) {
        const bool ours = known != nullptr && known->whose(mask.now.cpus) == Whose::ours;
        return ours ? Shown{State::set, "left in force"} : Shown{State::waiting, observing_};
    }
    if (!is_wished(mask.wish)) return {State::leave, "no rule sets a mask any more"};
    if (mask.planned.empty()) return {State::waiting, why_no_cpu(cpus_)};
    if (mask.refused == mask.planned) return mask.why_refused;
    const std::string wish = fmt::format("cpumask = \"{}\"", mask.wish.text());
    if (!is_in_place(mask) && mask.failures > 0) return {State::waiting, mask.failed};
    if (!is_in_place(mask)) return {State::waiting, unsaved_.empty() ? wish : unsaved_};
    return {known != nullptr && !known->may_hold.empty() ? State::set : State::as_planned, wish};
}

bool MaskKeeper::is_to_write(const std::string& name, const Mask& mask) const {
    const MaskEntry* known = entry(name);
    if (mask.unread || (known != nullptr && known->external) || !is_ours_to_set(mask)) return false;
    if (!observing_.empty() || mask.planned.empty()) return false;
    return !is_in_place(mask) && mask.refused != mask.planned;
}

// A refused mask was put back at once. But if another mask was written after that, and the refused one is
// planned again, the other mask has to be put back.
bool MaskKeeper::wants_baseline(const std::string& name, const Mask& mask) const {
    const MaskEntry* known = entry(name);
    if (mask.unread || known == nullptr || known->external) return false;
    const bool holds_another = mask.refused && mask.refused == mask.planned && !known->may_hold.empty();
    return !observing_.empty() || !is_wished(mask.wish) || mask.opted_out == true || holds_another;
}

bool MaskKeeper::goes_back(const std::string& name, const Mask& mask) const {
    return wants_baseline(name, mask) && mask.stuck < Target::kTries;
}

// ---- writing

// Announces all writes on disk before the first one, and settles them on disk after the last one.
void MaskKeeper::reconcile(const Policy& policy, const std::string& observing) {
    look(policy, observing);
    announce();
    const auto saved = edges_.store.save();
    if (!saved) log_.write_once(LOG_ERR, Event::baseline_broken, saved.error().in("no new masks").text);
    unsaved_ = saved ? "" : saved.error().in("its baseline cannot be saved").text;
    for (auto& [name, mask] : masks_) {
        if (goes_back(name, mask)) {
            put_back(name, mask);
        } else if (is_to_write(name, mask) && saved) {
            carry_out(name, mask);
        } else if (is_to_write(name, mask)) {
            mask.failures = 0;
            mask.show(judge(name, mask));
        }
    }
    drop_settled();
    if (const auto again = edges_.store.save(); !again)
        log_.write_once(LOG_ERR, Event::none, again.error().text);
}

void MaskKeeper::announce() {
    for (auto& [name, mask] : masks_) {
        MaskEntry* known = edges_.store.find(name);
        if (!mask.unread && !is_to_write(name, mask)) mask.failures = 0;  // nothing is left to retry
        if (is_to_write(name, mask)) {
            if (known == nullptr) known = &edges_.store.put({name, mask.now.inode, mask.now.text});
            known->announce(mask.planned);
            if (mask.now.cpus != known->before()) known->allow(mask.now.cpus);
        } else if (goes_back(name, mask)) {
            known->announce_baseline();
        }
    }
}

void MaskKeeper::carry_out(const std::string& name, Mask& mask) {
    std::uint64_t took = 0;
    const Outcome outcome = timed(took, [&] { return writer_.apply(name, mask.planned); });
    if (outcome.kind != End::done) return take_failure(name, mask, outcome);
    // The last look found another mask, and we did not write: an external writer wrote this one.
    if (outcome.wrote) return wrote(name, mask, took);
    look_again(name, mask);
    leave_to_writer(name, mask);
}

void MaskKeeper::wrote(const std::string& name, Mask& mask, std::uint64_t took) {
    const std::string old = mask.now.cpus.list();
    mask.failures = 0;
    look_again(name, mask);
    mask.show(judge(name, mask));
    edges_.log.write(
        {LOG_INFO,
         Event::mask_set,
         fmt::format("{}: cpumask from CPUs {} to {}: {}", name, old, mask.planned.list(), mask.reason),
         {{"WQ_NAME", name},
          {"WQ_MASK_OLD", old},
          {"WQ_MASK_NEW", mask.planned.list()},
          {"WQ_WRITE_USEC", std::to_string(took)}}});
}

// After a write the file may hold our mask, the baseline, or an external writer's mask.
void MaskKeeper::look_again(const std::string& name, Mask& mask) {
    const auto now = edges_.files.read_mask(name);
    mask.unread = !now;
    if (!now || now->inode != mask.now.inode) return;
    mask.now = *now;
    mask.last = *now;
    if (MaskEntry* known = edges_.store.find(name); known != nullptr) known->settle(now->cpus);
}

void MaskKeeper::take_failure(const std::string& name, Mask& mask, const Outcome& outcome) {
    look_again(name, mask);
    switch (outcome.kind) {
        case End::done:
        case End::gone:  // the next look forgets it
            return mask.show({State::waiting, outcome.text});
        case End::foreign:
            return leave_to_writer(name, mask);
        case End::unsupported:
            return refuse(name, mask, State::unsupported, outcome);
        case End::transient:
            mask.failed = fmt::format("try {} of {}: {}", ++mask.failures, Target::kTries, outcome.text);
            if (mask.failures < Target::kTries) return mask.show({State::waiting, mask.failed});
            [[fallthrough]];
        case End::permanent:
            return refuse(name, mask, State::quarantined, outcome);
    }
}

// Logged once, because the mask is not tried again until a reload.
void MaskKeeper::refuse(const std::string& name, Mask& mask, State as, const Outcome& outcome) {
    const std::string reason = as == State::unsupported
                                   ? fmt::format("the kernel stored CPUs {} for {}; baseline put back",
                                                 outcome.text, mask.planned.list())
                                   : outcome.text;
    mask.refused = mask.planned;
    mask.why_refused = {as, reason};
    mask.failures = 0;
    edges_.log.write(
        {LOG_WARNING,
         as == State::unsupported ? Event::unsupported : Event::quarantined,
         fmt::format("{}: cpumask: {}", name, reason),
         {{"WQ_NAME", name}, {"WQ_MASK_NEW", mask.planned.list()}, {"ERRNO", std::to_string(outcome.code)}}});
    put_back(name, mask);
    if (mask.stuck == 0) mask.show(mask.why_refused);
}

// After kTries failures a baseline is tried again only at the end and after a reload, not at every tick.
void MaskKeeper::put_back(const std::string& name, Mask& mask) {
    const MaskEntry* known = entry(name);
    if (known == nullptr || mask.stuck >= Target::kTries) return;
    const std::string old = mask.now.cpus.list();
    const std::string before = known->before().list();
    std::uint64_t took = 0;
    const Outcome outcome = timed(took, [&] { return writer_.put_back(name); });
    look_again(name, mask);
    if (outcome.kind == End::foreign) return leave_to_writer(name, mask);
    if (outcome.failed()) {
        mask.stuck++;
        mask.failed = fmt::format("not put back to CPUs {}: {}", before, outcome.text);
        mask.show({State::quarantined, mask.failed});
        return log_.write_once(LOG_ERR, Event::quarantined, fmt::format("{}: cpumask {}", name, mask.reason),
                               {{"WQ_NAME", name}, {"ERRNO", std::to_string(outcome.code)}});
    }
    mask.stuck = 0;
    mask.show(judge(name, mask));
    if (outcome.wrote)
        edges_.log.write({LOG_INFO,
                          Event::mask_restored,
                          fmt::format("{}: cpumask restored to CPUs {}", name, outcome.text),
                          {{"WQ_NAME", name},
                           {"WQ_MASK_OLD", old},
                           {"WQ_MASK_NEW", before},
                           {"WQ_WRITE_USEC", std::to_string(took)}}});
}

// Removes the entries of masks that are at their baseline and not left to an external writer.
void MaskKeeper::drop_settled() {
    for (const std::string& name : edges_.store.names()) {
        const MaskEntry& known = *entry(name);
        const auto mask = masks_.find(name);
        const bool unread = mask == masks_.end() || mask->second.unread;
        if (known.may_hold.empty() && !known.external && !unread) edges_.store.remove(name);
    }
    std::erase_if(masks_, [&](const auto& item) {
        return !is_wished(item.second.wish) && entry(item.first) == nullptr;
    });
}

void MaskKeeper::restore_all() {
    restore_masks(edges_.files, edges_.store, edges_.log);
    for (auto& [name, mask] : masks_) mask.last.reset();
}

void MaskKeeper::keep_all() {
    if (const auto saved = edges_.store.save(); !saved)
        edges_.log.write({LOG_ERR, Event::none, saved.error().text});
}

}  // namespace wq
