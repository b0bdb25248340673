// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/keys.h"

#include <fmt/format.h>

#include "base/text.h"
#include "counters/counter_table.h"
#include "plan/plan.h"
#include "plan/pods.h"

namespace wq {
namespace {

constexpr std::size_t kLongest = 100;  // bytes of a list in a key; a longer one is replaced by its hash

// Counters and guards with their tolerances, and what could not be counted.
std::string text_of(const Measures& measures) {
    std::string out;
    for (const ComparedCounter& c : measures.counters)
        out += fmt::format("{}{}{}{} {}", out.empty() ? "" : ", ", c.guard ? "guard " : "", c.name,
                           c.higher_is_better ? "+" : "", c.tolerance);
    return measures.lacks.empty() ? out : out + "; " + measures.lacks;
}

// LIST in a key, of COUNT things that are WHAT.
std::string or_hash(const std::string& list, std::size_t count, const char* what) {
    return list.size() <= kLongest ? list : fmt::format("{} {} {:016x}", count, what, hash_of(list));
}

std::string text_of(const std::vector<CpuSet>& pods) {
    std::string list;
    for (const CpuSet& pod : pods) list += (list.empty() ? "" : "|") + pod.list();
    return or_hash(list, pods.size(), "pods");
}

}  // namespace

std::string kernel_key(const KernelInfo& kernel) {
    const auto dot = kernel.release.find('.');
    const auto end = kernel.release.find_first_not_of("0123456789", dot + 1);
    std::string out = dot == std::string::npos ? kernel.release : kernel.release.substr(0, end);
    for (const Scope scope : kernel.scopes) out += " " + std::string(name_of(scope));
    return out;
}

void Keys::measure_by(Measures measures) {
    measures_ = std::move(measures);
    counters_ = text_of(measures_);
}

// Pods divide the CPUs in both masks. The fingerprint identifies how.
std::string Keys::cpus_of(const Workqueue& target) const {
    const CpuSet cpus = target.effective & snapshot_.topology().online;
    return or_hash(cpus.list(), cpus.count(), "CPUs");
}

// Returns text, and caches it: many targets have the same CPUs, and keys are made at every look.
const std::string& Keys::partition_of(const CpuSet& effective, Scope scope) const {
    std::string& out = partitions_[{scope, effective.list()}];
    if (out.empty()) {
        const KernelInfo& kernel = snapshot_.kernel;
        const unsigned size = effective_shard_size(kernel, policy_);
        out = text_of(restrict_to(pods_in(kernel, scope, snapshot_.topology(), size), effective));
    }
    return out;
}

LedgerKey Keys::ledger_key(const Workqueue& target, const Arms& arms, bool from_policy) const {
    const CpuSet effective = target.effective & snapshot_.topology().online;
    const Scope reference = arms.reference.scope;
    const bool is_ours = arms.reference.is_default && reference != first_default_.value_or(reference);
    return {kernel_key(snapshot_.kernel),
            snapshot_.fingerprint,
            measures_.scheduler,
            class_of(target.name),
            arms.reference.name(),
            arms.candidate.name(),
            from_policy || is_ours ? "policy" : "kernel",
            {partition_of(effective, arms.reference.scope), partition_of(effective, arms.candidate.scope)},
            counters_,
            fmt::format("{}ms {}ms", policy_.judge.window.count(), policy_.judge.washout.count())};
}

Measures measures_of(const Judging& judging, bool work_counted, const std::string& lacks,
                     const std::string& scheduler) {
    Measures out;
    for (const JudgedCounter& c : judging.counters)
        if (work_counted || !is_work_counter(c.name))
            out.counters.push_back({c.name, c.higher_is_better, judging.settings.tolerance, false});
    for (const Guard& g : judging.guards)
        if (work_counted || !is_work_counter(g.counter))
            out.counters.push_back({g.counter, counter_higher_is_better(g.counter), g.tolerance, true});
    out.lacks = lacks;
    out.scheduler = scheduler;
    return out;
}

}  // namespace wq
