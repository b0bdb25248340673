// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/service.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <syslog.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "base/version.h"
#include "machine/host_facts.h"
#include "machine/isolation.h"
#include "machine/kernel_info.h"
#include "machine/topology.h"
#include "owned/writer.h"
#include "policy/load_policy.h"
#include "policy/policy_text.h"
#include "service/restorer.h"

namespace wq {
namespace {

constexpr std::size_t kMostErrors = 10;  // of a policy, in the journal
constexpr unsigned kWhole = 40;  // at every so many ticks all targets are looked at: steps depend on the time
// How long the daemon waits for a disk when it ends; below TimeoutStopSec= and WatchdogSec= of the unit.
constexpr std::chrono::seconds kLastWrites{5};

tl::expected<Policy, PolicyErrors> load_host_policy(const ServiceOptions& options) {
    return load_installed_policy(options.root, options.config, [&options] {
        const Paths paths{options.root};
        HostFacts facts = read_host_facts(paths, read_cpu_files(paths));
        facts.features = [paths] { return read_features(paths, probe_kernel(paths)); };
        facts.cpus = [paths] { return read_boot_cpus(paths); };
        return facts;
    });
}

void log_policy_errors(Log& log, const PolicyErrors& errors) {
    for (std::size_t i = 0; i < std::min(errors.size(), kMostErrors); i++)
        log.write({LOG_ERR, Event::policy_broken, errors[i].text(), {{"WQ_POLICY_FILE", errors[i].file}}});
}

constexpr std::uint64_t kStatusPeriod = 30'000'000;  // us between two status.json that differ in counts

// What everybody shall see at once in status.json: states, reasons and verdicts (a step's text has them).
std::uint64_t essence_of(const Told& now) {
    const Targets& targets = now.parts.targets;
    std::string out = fmt::format("{}\n{}\n{} {}\n{}\n{}\n", now.state, now.summary,
                                  now.policy.since.value_or(0), targets.snapshot().topology_reads,
                                  now.parts.book.no_rates, now.parts.experiment.why_no_slot());
    const auto add = [&out](const std::string& name, const Shown& shown, const std::string& more) {
        fmt::format_to(std::back_inserter(out), "{}\n{}\n{}\n{}\n", name, name_of(shown.state), shown.reason,
                       more);
    };
    for (const auto& [name, order] : now.parts.book.orders) out += name + " is compared by an order\n";
    for (const Origin& rule : targets.policy().expired_rules()) out += rule.text() + "\n";
    for (const auto& [name, target] : targets.all()) add(name, target, target.step.said);
    // The kernel changes it with the isolated CPUs, in the same state for the same reason.
    for (const auto& [name, mask] : now.parts.engine.masks().masks())
        add(name, mask, mask.now.effective.list());
    return hash_of(out);
}

// What may be late in status.json.
std::string counts_of(const Parts& parts) {
    const ExperimentTotals totals = parts.experiment.totals();
    return fmt::format("{} {} {} {} {} {} {}", totals.slots, totals.pairs, totals.pairs_dropped,
                       totals.windows_lost, totals.rests, totals.cut_off, parts.files.writes());
}

}  // namespace

Service::Service(ServiceOptions options)
    : options_(std::move(options)),
      paths_{options_.root},
      publisher_(paths_, log_, writer_),
      hostname_(read_hostname(paths_)) {}

Status Service::run() {
    if (auto started = start(); !started) return started;
    if (bus_) bus_->connect();  // callers shall find the daemon on the bus after READY=1
    const Targets& targets = parts_->targets;
    // If there is nothing to do, start() has logged that.
    if (lacks_scopes(targets.kernel()).empty())
        log_.write(
            {LOG_INFO, Event::none,
             fmt::format("wq-tuned {}: {}; policy {}", version(), summary(), policy_hash(targets.policy()))});
    publisher_.notify("READY=1");
    return loop_.run();
}

Status Service::start() {
    auto lock = take_lock(paths_);
    if (!lock) return tl::unexpected(lock.error());
    lock_ = std::move(*lock);
    // A setting that they left must not be taken for the kernel's.
    if (exists(paths_.lab()))
        return fail(
            paths_.lab() +
                ": what `wq-tunectl ab` or `bench` left is in force: `wq-tunectl ab --restore` puts it back",
            EWOULDBLOCK);
    remark(set_mark(paths_, Mark::restart, false));
    publisher_.start();
    publisher_.notify("", "reading the baseline, the topology and the policy");
    if (auto made = loop_.start([this](Cause cause) { on(cause); }); !made) return made;
    if (auto writes = writer_.start(loop_.event(), [this] { arm(); }); !writes) return writes;
    parts_ = std::make_unique<Parts>(paths_, log_, writer_, [this](const std::string& name) {
        return udev_ ? udev_->opted_out(name) : paths_.root.empty() ? udev_opted_out(name) : false;
    });
    parts_->files.about_to_write = [this] { publisher_.sample(*parts_->counters, true); };
    if (const std::string lacks = lacks_scopes(parts_->targets.kernel()); !lacks.empty())
        log_.write({LOG_NOTICE, Event::none, lacks + "; nothing to do"});
    // From here on, events are queued, so changes during the first look cause another one.
    start_udev();
    if (!use_policy()) {
        remark(set_mark(paths_, Mark::keep, false));
        parts_->engine.set_policy(no_policy());
    }
    if (paths_.root.empty())
        bus_ = std::make_unique<BusServer>(
            loop_.event(), log_,
            [this](const auto& method, const auto& arguments) { return order(method, arguments); });
    take(Cause::start);
    return {};
}

// Without udev, ticks still detect changes, but later.
void Service::start_udev() {
    const auto on_change = [this](Udev::Change change) { changed(change); };
    if (options_.events) options_.events(loop_.event(), on_change);
    if (!paths_.root.empty()) return;
    auto udev = Udev::start(loop_.event(), on_change);
    if (udev)
        udev_ = std::move(*udev);
    else
        log_.write({LOG_WARNING, Event::none, udev.error().in("no hotplug events").text});
}

void Service::on(Cause cause) {
    if (cause == Cause::end) return stop();
    if (cause == Cause::reload) return (void)reload();  // the result is in the journal and in STATUS=
    take(cause);
}

// What follows from CAUSE: may anything be written, what is written, when to wake up again, what others are
// told. Between two windows of a slot nobody is told anything, because writing would disturb them.
void Service::take(Cause cause) {
    Experiment& experiment = parts_->experiment;
    const bool measured = experiment.is_measuring();
    const bool looks = cause != Cause::order && cause != Cause::slot;
    const bool whole = cause == Cause::tick ? tick() : looks;
    check_switches();
    react(cause, whole, bus_ && cause == Cause::tick ? bus_->system_state() : "", parts_->engine, experiment);
    if (looks) looked(whole);
    arm();
    const bool measures = experiment.is_measuring();
    if (cause != Cause::slot || (measured && !measures))
        publisher_.publish({*parts_, policy_, state(), summary(), whole});
    if (cause == Cause::tick && !measures) ::malloc_trim(0);  // gives free heap back before waiting
}

// Whether all targets are to be looked at. Without udev, each tick does.
bool Service::tick() {
    publisher_.notify("WATCHDOG=1");
    parts_->poll();
    look_at_hostname();
    const bool expired = look_at_dates();
    if (!parts_->experiment.is_measuring()) {
        if (bus_) bus_->connect();
        publisher_.sample(*parts_->counters, false);
    }
    return expired || !udev_ || !exists("/run/udev/control") || ++ticks_ >= kWhole;
}

void Service::looked(bool whole) {
    if (std::exchange(events_lost_, false))
        log_.write({LOG_NOTICE, Event::none,
                    "udev's queue overflowed: events were lost, and everything was looked at again"});
    if (whole) ticks_ = 0;
    log_.write({LOG_DEBUG, Event::none, "looked: " + summary()});
    // A look at a part leaves it to the next one to see what an event announced.
    const bool retry = parts_->engine.wants_retry();
    if (whole || (retry && !agenda_.due())) agenda_.looked(retry, monotonic_us());
}

// Reasons to write nothing, apart from mode observe. Logs a change; at the start the summary shows it.
void Service::check_switches() {
    Targets& targets = parts_->targets;
    std::string why = why_switched_off(targets.kernel(), paths_);
    switched_off_ = !why.empty();
    if (why.empty() && !parts_->baseline_error.empty())
        why = "the baseline file is broken: " + parts_->baseline_error;
    if (why.empty() && policy_.nothing_to_plan_by()) why = "the policy is broken: " + policy_.error;
    targets.observe(why);
    const std::string observing = targets.observing();
    if (observed_ && *observed_ != observing)
        log_.write({LOG_NOTICE, Event::none,
                    observing.empty() ? "no longer observing"
                                      : "observing: " + observing + "; settings are restored"});
    observed_ = observing;
}

void Service::arm() {
    parts_->hold_memory();  // before the first write of a slot
    loop_.set(Cause::look, agenda_.due());
    loop_.set(Cause::slot, parts_->experiment.due());
}

void Service::changed(Udev::Change change) {
    parts_->changed(change);
    if (change != Udev::Change::workqueue) publisher_.cpus_changed();
    events_lost_ = events_lost_ || change == Udev::Change::lost;
    agenda_.event(monotonic_us());
    arm();
}

Result<std::string> Service::order(const std::string& method, const std::vector<std::string>& arguments) {
    const std::string target = arguments.empty() ? "" : arguments.front();
    const std::string scope = arguments.size() < 2 ? "" : arguments.back();
    Orders& orders = parts_->orders;
    if (method == "Reload") return reload().map([] { return std::string(); });
    check_switches();  // a kill switch may have been set since the last check
    Status done;
    if (method == "Pin") done = orders.pin(target, scope);
    if (method == "Unpin") done = orders.unpin(target);
    if (method == "Revert") done = orders.revert(target.empty() ? std::nullopt : std::optional(target));
    if (method == "Compare") done = parts_->experiment.order(target, scope);
    if (method == "Pause" || method == "Resume") parts_->pause(method == "Pause");
    take(Cause::order);  // an order may have ended or begun a comparison
    return done.map([&] { return method == "Revert" ? orders.note() : ""; });
}

// Other host tables may match the new name. If not, a reload would only end reverts and forget external
// writers.
void Service::look_at_hostname() {
    const std::string now = read_hostname(paths_);
    const Policy& used = parts_->targets.policy();
    if (now == std::exchange(hostname_, now) || used.hosts.empty()) return;
    const auto policy = load_host_policy(options_);
    if (policy && hosts_in_force(*policy) == hosts_in_force(used)) return;
    log_.write({LOG_NOTICE, Event::none, fmt::format("the hostname is now '{}'", now)});
    (void)reload();
}

// Of the policy in use, whatever is on disk: a reload would end reverts and forget external writers.
bool Service::look_at_dates() {
    if (!parts_->targets.expire(wall_clock())) return false;
    const auto expired = parts_->targets.policy().expired_rules();
    const std::string said = expired.empty() ? "no rule is expired now"
                                             : fmt::format("expired rules: {}, the first at {}",
                                                           expired.size(), expired.front().text());
    log_.write({LOG_NOTICE, Event::policy_loaded, said});
    return true;
}

// If the new policy is broken, keeps the old one.
Status Service::reload() {
    publisher_.notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", monotonic_us()), "reloading the policy");
    const Status used = use_policy();
    const auto hosts = hosts_in_force(parts_->targets.policy());
    if (used)
        log_.write({LOG_INFO, Event::policy_loaded,
                    hosts.empty()
                        ? "policy reloaded"
                        : fmt::format("policy reloaded; host tables in force: {}", fmt::join(hosts, ", "))});
    take(Cause::reload);
    publisher_.notify("READY=1");
    return used ? used : fail("reload failed, keeping the current policy: " + used.error().text, EINVAL);
}

// Reads the policy and puts it into use. Error: it is broken, and nothing changes.
Status Service::use_policy() {
    auto policy = load_host_policy(options_);
    if (!policy) {
        log_policy_errors(log_, policy.error());
        policy_.broken(policy.error(), wall_clock());
        return fail(policy_.error);
    }
    remark(set_mark(paths_, Mark::keep, policy->keep_on_exit));
    publisher_.use(*policy, options_.config ? std::vector{*options_.config} : policy_files(options_.root));
    parts_->use(std::move(*policy));
    policy_.loaded(wall_clock());
    return {};
}

// Logs a mark that could not be written. Without a mark, the restorer restores the settings.
void Service::remark(const Status& marked) {
    if (!marked) log_.write({LOG_WARNING, Event::none, marked.error().text});
}

void Service::stop() {
    publisher_.notify("STOPPING=1", "restoring");
    check_switches();
    parts_->experiment.cancel_all("wq-tuned stopped");
    const bool restarting = bus_ && bus_->is_restarting();
    if (restarting) {
        remark(set_mark(paths_, Mark::restart, true));
    } else {
        leave();
        publisher_.end();
    }
    // A thread that is stuck in a write keeps the process alive. By then the process holds nothing that
    // others need, and systemd stops waiting for it after its timeout.
    for (const std::string& name : writer_.finish(kLastWrites))
        log_.write({LOG_WARNING, Event::none, name + ": not written: the disk does not respond"});
    // Meanwhile a stop may have replaced the restart. The restorer then removes the metrics.
    if (restarting && !bus_->is_restarting()) {
        remark(set_mark(paths_, Mark::restart, false));
        leave();
    }
    loop_.end();
}

void Service::leave() {
    Engine& engine = parts_->engine;
    parts_->targets.policy().keep_on_exit && !switched_off_ ? engine.keep_all() : engine.restore_all();
}

std::string Service::state() const {
    if (switched_off_) return "paused";
    if (!parts_->targets.observing().empty()) return "observing";
    return parts_->experiment.is_paused() ? "paused" : "running";
}

std::string Service::summary() const {
    std::string out = summary_of(parts_->targets);
    if (!policy_.error.empty() && policy_.in_force) out += "; the policy on disk is broken: " + policy_.error;
    return out;
}

// ---- what it tells others

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
        worth_json(parts.targets, parts.experiment.ledger(), parts.verdicts.records(), wall_clock());
    document["worth"]["lost_today_s"] = parts.experiment.totals().lost_today;
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
    const Targets& targets = now.parts.targets;
    const Topology& topology = targets.snapshot().topology();
    policy_.broken = !now.policy.error.empty();
    policy_.expired = targets.policy().expired_rules().size();
    if (!host_) host_ = read_host_facts(paths_, topology);
    metrics_.show(
        metrics_text({now.parts.engine, now.parts.orders, now.parts.experiment, now.parts.verdicts, now.state,
                      policy_, fleet_machine(*host_, topology), started_, health_.health()}));
}

void Publisher::notify(const std::string& text, const std::string& summary) {
    if (!summary.empty()) summary_ = summary;
    const std::string all =
        text + (text.empty() || summary.empty() ? "" : "\n") + (summary.empty() ? "" : "STATUS=" + summary);
    if (paths_.root.empty()) ::sd_notify(0, all.c_str());
}

}  // namespace wq
