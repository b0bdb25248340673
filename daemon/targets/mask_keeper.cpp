// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/mask_keeper.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <set>
#include <vector>

#include "machine/udev.h"
#include "machine/workqueue.h"

namespace wq {
namespace {

bool is_wished(const MaskWish& wish) {
    return wish.kind != MaskWish::Kind::leave;
}

// If the possible CPUs are not known, the isolated ones may not be known either: the result is empty.
CpuSet planned(const std::string& name, const MaskWish& wish, const HostCpus& cpus) {
    if (!is_wished(wish)) return {};
    if (wish.kind == MaskWish::Kind::housekeeping) return cpus.possible - cpus.isolated;
    const CpuSet out = wish.cpus & cpus.possible;
    return name == kDefaultMask ? out - cpus.isolated : out;
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

void Mask::see(const Look& look) {
    last = {look.mask ? look.mask->text : "", {}};
    if (look.mask) now = *look.mask;
}

void MaskKeeper::start_over() {
    if (masks_.empty()) return;  // at the start, not at a reload
    masks_.clear();
    store_.start_over(Knob::mask);
}

void MaskKeeper::changed() {
    for (auto& [name, mask] : masks_) mask.opted_out.reset();
}

// ---- looking

// By name; `leave` for masks that are only in the store, also if the workqueues cannot be listed.
std::map<std::string, MaskWish> MaskKeeper::wishes(const Policy& policy) {
    std::map<std::string, MaskWish> out;
    for (const auto& [name, entry] : store_.entries(Knob::mask)) out[name];
    if (!policy.wants_masks()) return out;
    std::set<std::string> seen;
    for (const auto& [name, wish] : out) seen.insert(name);
    if (const auto names = files_.names()) {
        seen.insert(names->begin(), names->end());
    } else {
        log_.write_once(LOG_ERR, Event::none, names.error().text);
        for (const auto& [name, mask] : masks_) seen.insert(name);
    }
    // A pattern applies to workqueues that have a mask to set. If it cannot be read now, there may be one.
    const auto has_mask = [&](const std::string& name) {
        const auto now = files_.read_mask(name);
        return !now || now->untouchable.empty();
    };
    for (const std::string& name : seen) {
        if (name == kDefaultTarget || name == kDefaultMask) continue;
        const WorkqueueRule* rule = policy.rule_for(name);
        if (rule == nullptr || !is_wished(rule->mask)) continue;
        const bool named = std::ranges::find(rule->match, name) != rule->match.end();
        if (named || masks_.contains(name) || has_mask(name)) out[name] = rule->mask;
    }
    if (is_wished(policy.default_mask)) out[kDefaultMask] = policy.default_mask;
    return out;
}

void MaskKeeper::look(const Policy& policy, const std::string& observing,
                      const std::function<HostCpus()>& cpus, const OptedOut& opted_out) {
    observing_ = observing;
    const auto asked = wishes(policy);
    std::erase_if(masks_, [&](const auto& item) { return !asked.contains(item.first); });
    if (asked.empty()) return;
    cpus_ = cpus ? cpus() : HostCpus();
    for (const auto& [name, wish] : asked) look_at(name, wish, opted_out);
    for (auto& [name, mask] : masks_) mask.show(as_found(mask, decide(mask), reconciler_.unsaved()));
}

void MaskKeeper::look_at(const std::string& name, const MaskWish& wish, const OptedOut& opted_out) {
    const auto now = files_.read_mask(name);
    if (!now && kind_of_error(now.error().code) == Outcome::Kind::gone) return forget(name);
    if (now) {
        const Owned* entry = store_.find(name, Knob::mask);
        if (entry != nullptr && entry->inode != now->inode) {
            forget(name);
            entry = nullptr;
        }
        if (entry == nullptr && !is_wished(wish)) return forget(name);
        if (const auto known = masks_.find(name);
            known != masks_.end() && known->second.now.inode != now->inode)
            masks_.erase(known);
    }
    Mask& mask = masks_[name];
    mask.store = &store_;
    mask.target = name;
    mask.wish = wish;
    mask.unread = now ? "" : now.error().text;
    if (!now) return log_.write_once(LOG_WARNING, Event::none, mask.unread);
    mask.now = *now;
    mask.planned = planned(name, wish, cpus_);
    mask.observed = !observing_.empty();
    // udev has no device for the mask of all unbound workqueues.
    if (!mask.opted_out) mask.opted_out = name == kDefaultMask ? false : opted_out(name);
    const auto news = mask.notice({});
    if (!news) return;
    // If no rule asks for a mask any more, an external writer's mask needs no entry.
    is_wished(wish) ? leave_to_writer(mask, *news, log_) : forget(name);
}

bool MaskKeeper::is_as_seen(const std::string& observing, const std::function<HostCpus()>& cpus) const {
    if (masks_.empty()) return true;
    if (observing != observing_ || !reconciler_.unsaved().empty()) return false;
    return cpus() == cpus_ && std::ranges::all_of(masks_, [this](const auto& item) {
               const Mask& mask = item.second;
               if (!mask.unread.empty() || !mask.opted_out || mask.tries_to_go_back()) return false;
               const auto now = files_.read_mask(item.first);
               return now && now->text == mask.now.text && now->effective == mask.now.effective;
           });
}

void MaskKeeper::forget(const std::string& name) {
    masks_.erase(name);
    store_.remove(name, Knob::mask);
}

// ---- deciding

// Also if the mask must not be set, what is ours is put back: while observing, or if no rule asks for it.
Wish MaskKeeper::decide(const Mask& mask) const {
    if (!mask.unread.empty()) return hands_off({State::waiting, mask.unread});
    if (mask.external) return hands_off(left_to_writer(mask));
    const bool goes_back = mask.observed || !is_wished(mask.wish) || mask.opted_out == true;
    const auto left = [&](State state, const std::string& why) {
        return goes_back ? baseline(state, why) : hands_off({state, why});
    };
    if (!mask.now.untouchable.empty()) return left(State::leave, mask.now.untouchable);
    if (!mask.opted_out) return left(State::waiting, kNotProcessedByUdev);
    if (*mask.opted_out) return left(State::leave, kOptedOutByUdev);
    if (mask.observed) return left(State::waiting, observing_);
    if (!is_wished(mask.wish)) return left(State::leave, "no rule sets a mask any more");
    if (mask.planned.empty()) return left(State::waiting, why_no_cpu(cpus_));
    const std::string text = mask.planned.mask();
    // A refused mask was put back at once; another one may have been written since.
    if (const Refusal* why = mask.refusal_of(text)) return baseline(why->as, why->reason);
    // There is nothing to write if the planned mask is the effective one (the kernel itself removes isolated
    // CPUs from the mask of all unbound workqueues) or the requested one.
    const bool in_place = mask.now.effective == mask.planned || mask.now.cpus == mask.planned;
    const Owned* entry = mask.entry();
    const bool ours = in_place ? entry != nullptr && entry->has_claim()
                               : entry == nullptr || !entry->main.same(text, entry->main.baseline);
    Wish out{{ours ? State::set : State::as_planned, fmt::format("cpumask = \"{}\"", mask.wish.text())}};
    out.word = in_place ? mask.now.text : text;
    return out;
}

// ---- writing

void MaskKeeper::reconcile() {
    std::vector<Job> jobs;
    for (auto& [name, mask] : masks_) jobs.push_back({&mask, decide(mask)});
    reconciler_.run(jobs, observing_);
    std::erase_if(masks_, [](const auto& item) {
        return item.second.gone || (!is_wished(item.second.wish) && item.second.entry() == nullptr);
    });
}

}  // namespace wq
