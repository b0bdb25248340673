// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/publisher.h"

#include <fmt/format.h>
#include <syslog.h>
#include <systemd/sd-daemon.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "policy/policy_text.h"
#include "service/status.h"

namespace wq {
namespace {

constexpr std::uint64_t kStatusPeriod = 30'000'000;  // us between two status.json that differ in counts

class Hash {
  public:
    void mix(std::string_view text) {
        value_ = (value_ ^ std::hash<std::string_view>{}(text)) * 0x9e3779b97f4a7c15U + 1;
    }
    [[nodiscard]] std::size_t value() const { return value_; }

  private:
    std::size_t value_ = 0;
};

// What everybody shall see at once in status.json: states, reasons and verdicts. Also changes with a verdict,
// which is part of a step's text.
std::size_t essence_of(const Told& now) {
    const Engine& engine = now.parts.engine;
    Hash out;
    const auto mix_shown = [&out](const std::string& name, const Shown& shown) {
        out.mix(name);
        out.mix(name_of(shown.state));
        out.mix(shown.reason);
    };
    out.mix(now.state);
    out.mix(now.summary);
    out.mix(std::to_string(now.policy.since.value_or(0)));
    out.mix(std::to_string(engine.inventory().topology_reads()));
    for (const Origin& rule : engine.policy().expired_rules()) out.mix(rule.text());
    for (const auto& [name, target] : engine.targets()) {
        mix_shown(name, target);
        out.mix(target.step.said);
    }
    for (const auto& [name, mask] : now.parts.masks.masks()) {
        mix_shown(name, mask);
        // The kernel changes it with the isolated CPUs, in the same state for the same reason.
        out.mix(mask.now.effective.list());
    }
    return out.value();
}

// What may be late in status.json: counts, and what comparisons wait for.
std::size_t counts_of(const Told& now) {
    const Engine& engine = now.parts.engine;
    const Experiment& experiment = now.parts.experiment;
    const ExperimentTotals totals = experiment.totals();
    Hash out;
    out.mix(fmt::format("{} {} {} {} {}", totals.slots, totals.pairs, totals.pairs_dropped,
                        totals.windows_lost, engine.writes()));
    out.mix(experiment.why_no_slot());
    for (const auto& [name, target] : engine.targets())
        if (const auto view = experiment.view_of(name)) out.mix(view->waits);
    return out.value();
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

void Publisher::sample(WorkCounters& counters) {
    if (!metrics_.is_wanted()) return;
    isolated_.tick(counters);
    health_.tick(counters);
}

void Publisher::before_writes(WorkCounters& counters) {
    if (metrics_.is_wanted()) health_.before_writes(counters);
}

void Publisher::publish(const Told& now) {
    publish_status(now);
    if (metrics_.is_wanted()) publish_metrics(now);
    if (now.summary != summary_) notify("", now.summary);  // each message wakes systemd
}

void Publisher::publish_status(const Told& now) {
    const std::uint64_t at = monotonic_us();
    const std::size_t essence = essence_of(now);
    if (essence == told_ && at < told_at_ + kStatusPeriod) return;
    const std::size_t counts = counts_of(now);
    if (essence == told_ && counts == told_counts_) {
        told_at_ = at;  // counts_of() is not cheap
        return;
    }
    const Parts& parts = now.parts;
    nlohmann::json document = status_json(parts.engine, &parts.experiment, now.state, now.policy);
    document["worth"] =
        worth_json(parts.engine, parts.experiment.ledger(), parts.verdicts.records(), wall_clock());
    document["worth"]["lost_today_s"] = parts.experiment.totals().lost_today;
    document["masks"] = masks_json(parts.masks);
    document["isolation"] = counted_json(parts.counters->watched());
    document["daemon"]["names_cut_short"] = parts.engine.reconciler().counts().names_cut_short;
    const auto done = publish_file(paths_.status(), status_text(std::move(document)));
    const std::string error = done ? "" : done.error().text;
    if (error != error_ && !done) log_.write({LOG_WARNING, Event::none, error});
    error_ = error;
    if (!done) return;
    told_ = essence;
    told_counts_ = counts;
    told_at_ = at;
}

void Publisher::publish_metrics(const Told& now) {
    const Engine& engine = now.parts.engine;
    const Topology& topology = engine.inventory().topology();
    policy_.broken = !now.policy.error.empty();
    policy_.expired = engine.policy().expired_rules().size();
    if (!host_) host_ = read_host_facts(paths_, topology);
    metrics_.show(
        metrics_text({engine, now.parts.experiment, now.parts.verdicts, now.state, policy_,
                      fleet_machine(*host_, topology), started_, isolated_.items(), health_.health()}));
}

void Publisher::notify(const std::string& text, const std::string& summary) {
    if (!summary.empty()) summary_ = summary;
    const std::string all =
        text + (text.empty() || summary.empty() ? "" : "\n") + (summary.empty() ? "" : "STATUS=" + summary);
    if (paths_.root.empty()) ::sd_notify(0, all.c_str());
}

}  // namespace wq
