// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/publisher.h"

#include <fmt/format.h>
#include <syslog.h>
#include <systemd/sd-daemon.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "policy/policy_text.h"

namespace wq {
namespace {

constexpr std::uint64_t kStatusPeriod = 30'000'000;  // us between two status.json that differ in counts

// What everybody shall see at once in status.json: states, reasons and verdicts (a step's text has them).
std::uint64_t essence_of(const Told& now) {
    const Engine& engine = now.parts.engine;
    std::string out = fmt::format("{}\n{}\n{} {}\n", now.state, now.summary, now.policy.since.value_or(0),
                                  engine.inventory().topology_reads());
    const auto add = [&out](const std::string& name, const Shown& shown, const std::string& more) {
        fmt::format_to(std::back_inserter(out), "{}\n{}\n{}\n{}\n", name, name_of(shown.state), shown.reason,
                       more);
    };
    for (const Origin& rule : engine.policy().expired_rules()) out += rule.text() + "\n";
    for (const auto& [name, target] : engine.targets()) add(name, target, target.step.said);
    // The kernel changes it with the isolated CPUs, in the same state for the same reason.
    for (const auto& [name, mask] : engine.masks().masks()) add(name, mask, mask.now.effective.list());
    return hash_of(out);
}

// What may be late in status.json.
std::string counts_of(const Parts& parts) {
    const ExperimentTotals totals = parts.experiment.totals();
    return fmt::format("{} {} {} {} {} {}", totals.slots, totals.pairs, totals.pairs_dropped,
                       totals.windows_lost, parts.engine.writes(), parts.experiment.why_no_slot());
}

}  // namespace

void Publisher::start() {
    started_ = wall_clock();
    metrics_.recall();
}

void Publisher::use(const Policy& policy, const std::vector<std::string>& files) {
    metrics_.use(policy.metrics.textfile);
    if (metrics_.is_wanted()) policy_ = {policy_hash(policy), sources_hash(files), files.size()};
}

void Publisher::sample(WorkCounters& counters, bool writes) {
    if (metrics_.is_wanted()) health_.look(counters, writes);
}

void Publisher::publish(const Told& now) {
    publish_status(now);
    if (metrics_.is_wanted()) publish_metrics(now);
    if (now.summary != summary_) notify("", now.summary);  // each message wakes systemd
}

void Publisher::publish_status(const Told& now) {
    const Parts& parts = now.parts;
    const std::uint64_t at = monotonic_us();
    const std::uint64_t essence = essence_of(now);
    std::string counts = counts_of(parts);
    const bool is_told = essence == told_ && (counts == told_counts_ && !now.whole);
    if (is_told || (essence == told_ && at < told_at_ + kStatusPeriod)) return;
    nlohmann::json document = status_json(parts.engine, &parts.experiment, now.state, now.policy);
    document["worth"] =
        worth_json(parts.engine, parts.experiment.ledger(), parts.verdicts.records(), wall_clock());
    document["worth"]["lost_today_s"] = parts.experiment.totals().lost_today;
    document["masks"] = masks_json(parts.engine.masks());
    const auto done = publish_file(paths_.status(), status_text(std::move(document)));
    const std::string error = done ? "" : done.error().text;
    if (error != error_ && !done) log_.write({LOG_WARNING, Event::none, error});
    error_ = error;
    if (!done) return;
    told_ = essence;
    told_counts_ = std::move(counts);
    told_at_ = at;
}

void Publisher::publish_metrics(const Told& now) {
    const Engine& engine = now.parts.engine;
    const Topology& topology = engine.inventory().topology();
    policy_.broken = !now.policy.error.empty();
    policy_.expired = engine.policy().expired_rules().size();
    if (!host_) host_ = read_host_facts(paths_, topology);
    metrics_.show(metrics_text({engine, now.parts.experiment, now.parts.verdicts, now.state, policy_,
                                fleet_machine(*host_, topology), started_, health_.health()}));
}

void Publisher::notify(const std::string& text, const std::string& summary) {
    if (!summary.empty()) summary_ = summary;
    const std::string all =
        text + (text.empty() || summary.empty() ? "" : "\n") + (summary.empty() ? "" : "STATUS=" + summary);
    if (paths_.root.empty()) ::sd_notify(0, all.c_str());
}

}  // namespace wq
