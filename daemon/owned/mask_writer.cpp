// SPDX-License-Identifier: LGPL-2.1-or-later
#include "owned/mask_writer.h"

#include <fmt/format.h>
#include <syslog.h>

#include <cerrno>

namespace wq {
namespace {

using End = Outcome::Kind;

// Logs the outcome, but not if the mask was at its baseline already.
void report(const MaskEntry& entry, const Outcome& outcome, std::uint64_t took, Log& log) {
    if (outcome.kind == End::done && outcome.wrote)
        log.write({LOG_INFO,
                   Event::mask_restored,
                   fmt::format("{}: cpumask restored to CPUs {}", entry.name, outcome.text),
                   {{"WQ_NAME", entry.name},
                    {"WQ_MASK_NEW", entry.before().list()},
                    {"WQ_WRITE_USEC", std::to_string(took)}}});
    else if (outcome.kind == End::foreign)
        log.write({LOG_NOTICE,
                   Event::mask_external,
                   fmt::format("{}: cpumask has CPUs {}, which an external writer wrote; left as it is",
                               entry.name, outcome.text),
                   {{"WQ_NAME", entry.name}, {"WQ_MASK_NEW", outcome.text}}});
    else if (outcome.failed())
        log.write({LOG_ERR,
                   Event::quarantined,
                   fmt::format("{}: cpumask not put back to CPUs {}: {}", entry.name, entry.before().list(),
                               outcome.text),
                   {{"WQ_NAME", entry.name}, {"ERRNO", std::to_string(outcome.code)}}});
}

}  // namespace

Outcome MaskWriter::set(const MaskEntry& entry, const CpuSet& cpus, const std::string& text) {
    const auto now = files_.read_mask(entry.name);
    if (!now) return error_outcome(now.error(), false);
    if (now->inode != entry.inode)
        return {End::gone, false, "was replaced by another workqueue of the same name", ENODEV};
    if (now->cpus == cpus) return {};
    if (entry.whose(now->cpus) == Whose::foreign) return {End::foreign, false, now->cpus.list(), 0};
    const MaskEntry* stored = store_.find(entry.name);
    const bool announced = stored->on_disk.yes && stored->may_be_ours(cpus);
    if (cpus != stored->before() && !announced) return not_announced(entry.name);
    if (const auto written = files_.write_mask(entry.name, entry.inode, text); !written)
        return error_outcome(written.error(), false);
    const auto back = files_.read_mask(entry.name);
    if (!back) return error_outcome(back.error(), true);
    if (back->cpus == cpus) return {End::done, true, cpus.list(), 0};
    // A kernel stores a part of the mask, or nothing, and then the file is unchanged. Any other mask was
    // written by an external writer since.
    const bool made_of_it = cpus.contains(back->cpus) || entry.whose(back->cpus) != Whose::foreign;
    return {made_of_it ? End::unsupported : End::foreign, true, back->cpus.list(), 0};
}

Outcome MaskWriter::apply(const std::string& name, const CpuSet& cpus) {
    MaskEntry* entry = store_.find(name);
    if (entry == nullptr || !entry->on_disk.yes) return not_announced(name);
    Outcome out = set(*entry, cpus, cpus.mask());
    if (out.kind != End::unsupported) return out;
    entry->allow(CpuSet::parse_list(out.text).value_or(CpuSet{}));
    const Outcome back = put_back(*entry);
    return back.kind == End::done ? out : back;
}

Outcome MaskWriter::put_back(const std::string& name) {
    const MaskEntry* entry = store_.find(name);
    return entry == nullptr ? not_announced(name) : put_back(*entry);
}

Outcome MaskWriter::put_back(const MaskEntry& entry) {
    Outcome out = set(entry, entry.before(), entry.baseline);
    if (out.kind == End::unsupported)
        return {End::permanent, true, fmt::format("the kernel stored CPUs {}", out.text), 0};
    if (out.kind == End::done && out.wrote) out.text += let_in(entry);
    return out;
}

// The kernel removes isolated CPUs from the mask of all unbound workqueues when a partition changes, not when
// the mask is written.
std::string MaskWriter::let_in(const MaskEntry& entry) const {
    const auto now = files_.read_mask(entry.name);
    const CpuSet isolated = now ? now->isolated & entry.before() : CpuSet{};
    if (isolated.empty()) return "";
    return fmt::format("; isolated CPUs {} may get unbound work until a cpuset partition changes",
                       isolated.list());
}

unsigned restore_masks(MaskFiles& files, MaskStore& store, Log& log) {
    MaskWriter writer(files, store);
    const auto names = store.names();
    // From here on the entries on disk allow the baseline. If they cannot be saved, it is put back all the
    // same.
    for (const std::string& name : names) store.find(name)->announce_baseline();
    (void)store.save();
    unsigned stayed = 0;
    for (const std::string& name : names) {
        std::uint64_t took = 0;
        const Outcome outcome = timed(took, [&] { return put_back_with_retries(writer, name); });
        report(*store.find(name), outcome, took, log);
        if (outcome.failed())
            stayed++;
        else
            store.remove(name);
    }
    if (const auto saved = store.save(); !saved) log.write({LOG_ERR, Event::none, saved.error().text});
    return stayed;
}

}  // namespace wq
