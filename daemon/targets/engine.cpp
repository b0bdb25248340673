// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/engine.h"

#include <syslog.h>
#include <algorithm>
#include <vector>

#include "owned/writer.h"

namespace wq {

Engine::Engine(Targets& targets)
    : targets_(targets),
      reconciler_(targets.edges().files, targets.edges().store, targets.log()),
      masks_(targets.edges().files, targets.edges().store, targets.log(), reconciler_) {}

Circumstances Engine::circumstances() const {
    const OrderBook* book = targets_.edges().book;
    return {targets_.observing(), targets_.snapshot().pods_unknown,
            book == nullptr ? Waiting() : book->waiting};
}

bool Engine::wants_retry() const {
    const auto retries = [](const auto& item) { return item.second.wants_retry(); };
    return std::ranges::any_of(targets_.all(), retries) || std::ranges::any_of(masks_.masks(), retries);
}

void Engine::set_policy(Policy policy) {
    targets_.set_policy(std::move(policy));
    masks_.start_over();
}

void Engine::changed(Udev::Change change) {
    targets_.changed(change);
    if (change == Udev::Change::workqueue || change == Udev::Change::lost) masks_.changed();
}

// The masks first, because plans are made for the CPUs that masks leave.
void Engine::reconcile() {
    const Targets::Edges& edges = targets_.edges();
    masks_.look(targets_.policy(), targets_.observing(), edges.cpus, edges.opted_out);
    masks_.reconcile();
    targets_.look();
    write();
}

void Engine::tick(bool whole) {
    if (whole || !reconciler_.unsaved().empty() || !targets_.is_as_seen() ||
        !masks_.is_as_seen(targets_.observing(), targets_.edges().cpus))
        return reconcile();
    if (circumstances() != decided_) write();
}

void Engine::look() {
    const Targets::Edges& edges = targets_.edges();
    masks_.look(targets_.policy(), targets_.observing(), edges.cpus, edges.opted_out);
    targets_.look();
    const Circumstances now = circumstances();
    for (auto& [name, target] : targets_.all())
        target.show(as_found(target, decide(target, now), reconciler_.unsaved()));
}

void Engine::step_all() {
    targets_.plan();  // the plans of followers depend on what @default holds
    write();
}

// @default is put back before its followers, and moved after those that have a setting of their own.
void Engine::write() {
    decided_ = circumstances();
    std::vector<Job> jobs;
    for (auto& [name, target] : targets_.all()) jobs.push_back({&target, decide(target, decided_)});
    std::ranges::stable_sort(jobs, {}, [](const Job& job) {
        return job.item->name() != kDefaultTarget ? 1 : job.wish.word ? 2 : 0;
    });
    reconciler_.run(jobs, decided_.observing);
    std::erase_if(targets_.all(), [](const auto& item) { return item.second.gone; });
}

void Engine::restore_all() {
    const Targets::Edges& edges = targets_.edges();
    wq::restore_all(edges.files, edges.store, edges.log);
    for (auto& [name, target] : targets_.all()) target.last = {};
}

void Engine::keep_all() {
    if (const auto saved = targets_.edges().store.keep(); !saved)
        targets_.edges().log.write({LOG_ERR, Event::none, saved.error().text});
}

}  // namespace wq
