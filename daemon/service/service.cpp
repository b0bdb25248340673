// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/service.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/signalfd.h>
#include <syslog.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/version.h"
#include "bpf/bpf_dump.h"
#include "bpf/work_counters.h"
#include "machine/host_facts.h"
#include "machine/hwloc_topology.h"
#include "machine/isolation.h"
#include "machine/kernel_info.h"
#include "machine/pods_file.h"
#include "owned/restore.h"
#include "policy/load_policy.h"
#include "policy/policy_text.h"
#include "service/restorer.h"
#include "service/status.h"
#include "service/watches.h"

namespace wq {
namespace {

constexpr std::uint64_t kDefaultTick = 15'000'000;   // us, if no watchdog is set
constexpr std::uint64_t kAccuracy = 10'000;          // us
constexpr std::uint64_t kStatusPeriod = 30'000'000;  // us between two status.json that differ in counts
constexpr std::uint64_t kFirstRetry = 250'000;       // us, doubled each time
// How long the daemon waits for a disk when it ends; below TimeoutStopSec= and WatchdogSec= of the unit.
constexpr std::chrono::seconds kLastWrites{5};

std::uint64_t now_us(sd_event* event) {
    std::uint64_t now = 0;
    ::sd_event_now(event, CLOCK_MONOTONIC, &now);
    return now;
}

void mix_in(std::size_t& hash, std::string_view text) {
    hash = (hash ^ std::hash<std::string_view>{}(text)) * 0x9e3779b97f4a7c15U + 1;
}

}  // namespace

Service::Service(ServiceOptions options)
    : options_(std::move(options)),
      paths_{options_.root},
      metrics_(paths_, log_, writer_),
      pause_(paths_.paused(), writer_, log_),
      hostname_(paths_),
      cpu_watch_(paths_),
      isolated_(paths_, log_),
      files_(paths_),
      store_(paths_.owned()),
      verdicts_(paths_.verdicts()) {}

Service::~Service() {
    ::sd_event_source_disable_unref(tick_source_);
    ::sd_event_source_disable_unref(work_source_);
    ::sd_event_source_disable_unref(slot_source_);
}

Status Service::run() {
    if (auto started = start(); !started) return started;
    wait_for_bus();
    if (::sd_event_get_state(event_.get()) == SD_EVENT_FINISHED) return {};  // SIGTERM came meanwhile
    // If there is nothing to do, start() has logged that.
    if (lacks_scopes(engine_->kernel()).empty())
        log_.write({LOG_INFO, Event::none,
                    fmt::format("wq-tuned {}: {}; policy {}", version(), summary(),
                                policy_hash(engine_->policy()))});
    notify("READY=1\nSTATUS=" + engine_->summary());
    const int r = ::sd_event_loop(event_.get());
    if (r < 0) return fail_errno("event loop", -r);
    return {};
}

Status Service::start() {
    auto lock = take_lock(paths_);
    if (!lock) {
        kept_out_ = lock.error().code == EWOULDBLOCK;
        return tl::unexpected(lock.error());
    }
    lock_ = std::move(*lock);
    // A setting that they left must not be taken for the kernel's.
    if (exists(paths_.lab())) {
        kept_out_ = true;
        return fail(
            paths_.lab() +
            ": what `wq-tunectl ab` or `bench` left is in force: `wq-tunectl ab --restore` puts it back");
    }
    started_ = wall_clock();
    remark(mark_restart(paths_, false));
    metrics_.recall();
    notify("STATUS=reading the baseline, the topology and the policy");
    if (const auto loaded = store_.load(); !loaded) {
        baseline_error_ = loaded.error().text;
        log_.write({LOG_ERR, Event::baseline_broken, baseline_error_ + "; observing, nothing is written"});
    }
    if (const auto loaded = verdicts_.load(); !loaded)
        log_.write({LOG_WARNING, Event::verdicts_broken, loaded.error().text});
    sd_event* event = nullptr;
    if (const int r = ::sd_event_default(&event); r < 0) return fail_errno("sd-event", -r);
    event_.reset(event);
    auto writes = writer_.start(event, [this] { arm_slot(); });
    if (!writes) return writes;
    KernelInfo kernel = probe_kernel(paths_);
    read_pods(paths_, kernel);  // once: the kernel makes the pods at boot
    engine_ = std::make_unique<Engine>(
        Engine::Edges{files_, store_, log_,
                      [this] {
                          auto now = read_topology("live", options_.root);
                          // Without the file a CPU that comes later would be known after a restart.
                          if (now) (void)keep_first_cpus(paths_, *now);
                          return now;
                      },
                      [this](const std::string& name) { return udev_ ? udev_->opted_out(name) : false; },
                      verdicts_, wall_clock,
                      [this](const StepInput& input) { return experiment_->step(input); },
                      [this] { return experiment_->waiting(); }},
        std::move(kernel));
    masks_ = std::make_unique<MaskKeeper>(MaskKeeper::Edges{
        files_, store_, log_, [this] { return read_cpus_now(paths_); },
        [this](const std::string& name) { return udev_ ? udev_->opted_out(name) : false; }});
    if (const std::string lacks = lacks_scopes(engine_->kernel()); !lacks.empty())
        log_.write({LOG_NOTICE, Event::none, lacks + "; nothing to do"});
    counters_ = make_bpf_counters(is_machine() ? "" : "a tree has no kernel to count in");
    experiment_ = std::make_unique<Experiment>(experiment_edges());
    pause_.load();
    experiment_->pause(pause_.is_set());
    if (auto added = add_sources(); !added) return added;
    cpu_watch_.start();
    // From here on, events are queued, so changes during the first reconcile() cause another one.
    start_udev();
    hostname_.start(event_.get(), [this] { look_at_hostname(); });
    load_policy_at_start();
    start_bus();
    reconcile();
    publish();
    return {};
}

Status Service::add_sources() {
    sigset_t mask;
    ::sigemptyset(&mask);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&mask, signal);
    ::sigprocmask(SIG_BLOCK, &mask, nullptr);
    int r = 0;
    for (const int signal : {SIGTERM, SIGINT, SIGHUP})
        if (r >= 0) r = ::sd_event_add_signal(event_.get(), nullptr, signal, on_signal, this);
    std::uint64_t watchdog = 0;
    tick_period_ = ::sd_watchdog_enabled(0, &watchdog) > 0 ? watchdog / 2 : kDefaultTick;
    if (r >= 0)
        r = ::sd_event_add_time_relative(event_.get(), &tick_source_, CLOCK_MONOTONIC, tick_period_,
                                         tick_period_ / 10, on_tick, this);
    if (r >= 0)
        r = ::sd_event_add_time(event_.get(), &work_source_, CLOCK_MONOTONIC, 0, kAccuracy, on_work, this);
    if (r >= 0) r = ::sd_event_source_set_enabled(work_source_, SD_EVENT_OFF);
    if (r >= 0)
        r = ::sd_event_add_time(event_.get(), &slot_source_, CLOCK_MONOTONIC, 0, kAccuracy, on_slot, this);
    if (r >= 0) r = ::sd_event_source_set_enabled(slot_source_, SD_EVENT_OFF);
    if (r < 0) return fail_errno("sd-event", -r);
    return {};
}

// Without udev, ticks still detect changes, but later.
void Service::start_udev() {
    const auto on_change = [this](Udev::Change change) { changed(change); };
    if (options_.events) options_.events(event_.get(), on_change);
    if (!is_machine()) return;
    auto udev = Udev::start(event_.get(), on_change);
    if (udev)
        udev_ = std::move(*udev);
    else
        log_.write({LOG_WARNING, Event::none, udev.error().in("no hotplug events").text});
}

// Other host tables may match the new name. If the same ones are in force, does nothing: a reload would end
// reverts of operators and forget external writers.
void Service::look_at_hostname() {
    const auto now = hostname_.changed();
    if (!now || engine_->policy().hosts.empty()) return;
    const auto policy = load_host_policy(options_.root, options_.config);
    if (policy && hosts_in_force(*policy) == hosts_in_force(engine_->policy())) return;
    log_.write({LOG_NOTICE, Event::none, fmt::format("the hostname is now '{}'", *now)});
    (void)reload();  // the result is in the journal and in STATUS=
}

// Updates which rules of the policy in use have expired, even if the files on disk have changed. This is not
// a reload, which would end reverts of operators and forget external writers. The next reconcile() plans
// again.
void Service::look_at_dates() {
    const std::int64_t now = wall_clock();
    const Policy& policy = engine_->policy();
    if (!policy.is_outdated(now)) return;
    engine_->expire(now);
    const auto expired = policy.expired_rules();
    const std::string said = expired.empty()       ? "no rule is expired now"
                             : expired.size() == 1 ? "1 rule has expired: " + expired.front().text()
                                                   : fmt::format("{} rules have expired, the first at {}",
                                                                 expired.size(), expired.front().text());
    log_.write({LOG_NOTICE, Event::policy_loaded, said});
}

// Logs a mark that could not be written. Without a mark, the restorer restores the settings.
void Service::remark(const Status& marked) {
    if (!marked) log_.write({LOG_WARNING, Event::none, marked.error().text});
}

void Service::take(Policy policy) {
    remark(mark_keep(paths_, policy.keep_on_exit));
    metrics_.use(policy.metrics.textfile);
    if (metrics_.is_wanted()) {
        const auto files = options_.config ? std::vector{*options_.config} : policy_files(options_.root);
        policy_facts_ = {policy_hash(policy), sources_hash(files), files.size()};
    }
    engine_->set_policy(std::move(policy));
    masks_->start_over();
    policy_state_.loaded(wall_clock());
    experiment_->policy_changed();
}

// If the policy is broken at the start, only observes. If a restart left a metrics file, it is still written
// and reports the broken policy.
void Service::load_policy_at_start() {
    auto policy = load_host_policy(options_.root, options_.config);
    if (policy) return take(std::move(*policy));
    log_policy_errors(log_, policy.error());
    policy_state_.broken(policy.error(), wall_clock());
    remark(mark_keep(paths_, false));
    engine_->set_policy(no_policy());
}

// If the new policy is broken, keeps the old one.
Status Service::reload() {
    quiet_.worked();
    notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=reloading the policy", monotonic_us()));
    auto policy = load_host_policy(options_.root, options_.config);
    Status done;
    if (policy) {
        take(std::move(*policy));
        const auto hosts = hosts_in_force(engine_->policy());
        log_.write({LOG_INFO, Event::policy_loaded,
                    hosts.empty()
                        ? "policy reloaded"
                        : fmt::format("policy reloaded; host tables in force: {}", fmt::join(hosts, ", "))});
    } else {
        log_policy_errors(log_, policy.error());
        policy_state_.broken(policy.error(), wall_clock());
        done = fail("reload failed, keeping the current policy: " + policy_state_.error, EINVAL);
    }
    reconcile();  // checks the kill switches even if the policy is broken
    publish();
    notify("READY=1\nSTATUS=" + summary());
    return done;
}

// Checks for reasons to write nothing, apart from mode observe: a kill switch, a broken baseline file, a
// broken policy. Called before anything is written. Logs a change; at the start the summary shows the reason.
void Service::check_switches() {
    std::string why;
    if (engine_->kernel().switched_off)
        why = "wq_tuned=off on the kernel command line";
    else
        why = why_disabled(paths_);
    switched_off_ = !why.empty();
    if (why.empty() && !baseline_error_.empty()) why = "the baseline file is broken: " + baseline_error_;
    if (why.empty() && policy_state_.nothing_to_plan_by())
        why = "the policy is broken: " + policy_state_.error;
    engine_->observe(why);
    const std::string observing = engine_->observing();
    if (observed_ && *observed_ != observing)
        log_.write({LOG_NOTICE, Event::none,
                    observing.empty() ? "no longer observing"
                                      : "observing: " + observing + "; settings are restored"});
    observed_ = observing;
}

void Service::reconcile() {
    if (std::exchange(events_lost_, false))
        log_.write({LOG_NOTICE, Event::none,
                    "udev's queue overflowed: events were lost, and everything is looked at again"});
    check_switches();
    // The masks first, because plans are made for the CPUs that masks leave.
    masks_->reconcile(engine_->policy(), engine_->observing());
    engine_->reconcile();
    log_.write({LOG_DEBUG, Event::none, "looked: " + summary()});
    experiment_->check();
    arm_slot();
    pending_.done();
    retries_ = engine_->wants_retry() || masks_->wants_retry() ? retries_ + 1 : 0;
    arm();
}

void Service::changed(Udev::Change change) {
    engine_->changed(change);
    if (change == Udev::Change::workqueue || change == Udev::Change::lost) masks_->changed();
    if (change != Udev::Change::workqueue) experiment_->cpus_changed();
    if (change == Udev::Change::lost) events_lost_ = true;
    pending_.event(now_us(event_.get()));
    arm();
}

// Sets the one-shot timer to the end of a burst of events, or else to the next retry.
void Service::arm() {
    auto due = pending_.due();
    if (!due && retries_ > 0) due = now_us(event_.get()) + (kFirstRetry << std::min(retries_ - 1, 4U));
    if (!due) {
        ::sd_event_source_set_enabled(work_source_, SD_EVENT_OFF);
        return;
    }
    ::sd_event_source_set_time(work_source_, *due);
    ::sd_event_source_set_enabled(work_source_, SD_EVENT_ONESHOT);
}

void Service::tick() {
    notify("WATCHDOG=1");
    // Before reconcile(), because the pages that it needs are read again and stay. Not while a slot is
    // measured, because the page faults would add to the cost of one arm.
    if (quiet_.fell() && !experiment_->is_measuring()) give_back_pages();
    check_bus();
    if (cpu_watch_.was_suspended()) engine_->changed(Udev::Change::cpu_online);
    if (cpu_watch_.changed()) engine_->changed(Udev::Change::cpu);
    look_at_hostname();
    look_at_dates();
    if (metrics_.is_wanted() && !experiment_->is_measuring()) isolated_.tick(*counters_);
    reconcile();
    experiment_->tick(system_state());
    arm_slot();
    publish();
    show_summary();
    // reconcile() copies all targets (Engine::targets_before_us()).
    if (!experiment_->is_measuring()) give_back_heap();
}

Experiment::Edges Service::experiment_edges() {
    return {
        .engine = *engine_,
        .counters = *counters_,
        .verdicts = verdicts_,
        .record = writer_,
        .log = log_,
        .paths = paths_,
        .clock = {
            .random = random_number,
            .clocks =
                [] {
                    return Clocks{time_suspended(), clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC)};
                },
            .now = monotonic_us,
            .wall = wall_clock,
            .minute_of_day = minute_of_day,
            .uptime = [] { return static_cast<std::uint64_t>(clock_ns(CLOCK_BOOTTIME) / 1'000'000'000); }}};
}

// If memory cannot be locked, restoring may need pages from a disk that does not answer. That is a risk, but
// no reason to stop.
void Service::hold_memory() {
    const bool hold = experiment_->holds_memory();
    if (std::exchange(memory_held_, hold) == hold) return;
    if (!hold) return let_go_of_memory();
    const auto held = wq::hold_memory();
    const std::string why = held ? "" : held.error().text;
    if (why != not_held_ && !why.empty())
        log_.write({LOG_NOTICE, Event::none, why + "; taking a candidate back may have to wait for a disk"});
    not_held_ = why;
}

// What everybody shall see at once in status.json: states, reasons and verdicts. Also changes with a verdict,
// which is part of a step's text.
std::size_t Service::essence() const {
    std::size_t out = 0;
    const auto mix = [&out](std::string_view text) { mix_in(out, text); };
    mix(state());
    mix(summary());
    mix(std::to_string(policy_state_.since.value_or(0)));
    mix(std::to_string(engine_->inventory().topology_reads()));
    for (const Origin& rule : engine_->policy().expired_rules()) mix(rule.text());
    for (const auto& [name, target] : engine_->targets()) {
        mix(name);
        mix(name_of(target.state));
        mix(target.reason);
        mix(target.step.said);
    }
    for (const auto& [name, mask] : masks_->masks()) {
        mix(name);
        mix(name_of(mask.state));
        mix(mask.reason);
    }
    return out;
}

// What may be late in status.json: counts, and what comparisons wait for.
std::size_t Service::counts() const {
    const ExperimentTotals totals = experiment_->totals();
    std::size_t out = totals.slots + totals.pairs + totals.pairs_dropped + totals.windows_lost +
                      engine_->writes() + engine_->inventory().topology_reads();
    mix_in(out, experiment_->why_no_slot());
    for (const auto& [name, target] : engine_->targets())
        if (const auto view = experiment_->view_of(name)) mix_in(out, view->waits);
    return out;
}

void Service::publish_status() {
    const std::uint64_t now = monotonic_us();
    const std::size_t essence = this->essence();
    if (essence == told_ && now < told_at_ + kStatusPeriod) return;
    const std::size_t counts = this->counts();
    if (essence == told_ && counts == told_counts_) {
        told_at_ = now;  // counts() is not cheap
        return;
    }
    nlohmann::json document = status_json(*engine_, experiment_.get(), state(), policy_state_);
    document["masks"] = masks_json(*masks_);
    document["isolation"] = counted_json(counters_->watched());
    document["daemon"]["names_cut_short"] = engine_->reconciler().names_cut_short();
    const auto done = publish_file(paths_.status(), status_text(std::move(document)));
    const std::string error = done ? "" : done.error().text;
    if (error != status_error_ && !done) log_.write({LOG_WARNING, Event::none, error});
    status_error_ = error;
    if (!done) return;
    told_ = essence;
    told_counts_ = counts;
    told_at_ = now;
}

void Service::publish() {
    publish_status();
    if (!metrics_.is_wanted()) return;
    policy_facts_.broken = !policy_state_.error.empty();
    policy_facts_.expired = engine_->policy().expired_rules().size();
    const Topology& topology = engine_->inventory().topology();
    if (!host_facts_) host_facts_ = read_host_facts(paths_, topology);
    metrics_.show(metrics_text({*engine_, *experiment_, verdicts_, state(), policy_facts_,
                                fleet_machine(*host_facts_, topology), started_, isolated_.items()}));
}

void Service::arm_slot() {
    hold_memory();  // before the first write of a slot
    const auto due = experiment_->due();
    if (due) ::sd_event_source_set_time(slot_source_, *due);
    ::sd_event_source_set_enabled(slot_source_, due ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

void Service::stop() {
    notify("STOPPING=1\nSTATUS=restoring");
    check_switches();
    experiment_->cancel_all("wq-tuned stopped");
    const bool restarting = is_restarted();
    if (restarting) {
        remark(mark_restart(paths_, true));
    } else {
        leave();
        metrics_.remove();
    }
    finish_records();
    // The disk may have been slow, and a stop may have replaced the restart meanwhile. The restorer then
    // removes the metrics.
    if (restarting && !is_restarted()) {
        remark(mark_restart(paths_, false));
        leave();
    }
    ::sd_event_exit(event_.get(), 0);
}

void Service::leave() {
    const bool keep = engine_->policy().keep_on_exit && !switched_off_;
    keep ? engine_->keep_all() : engine_->restore_all();
}

// A thread that is stuck in a write keeps the process alive. By then the process holds nothing that others
// need, and systemd stops waiting for it after its timeout.
void Service::finish_records() {
    for (const std::string& name : writer_.finish(kLastWrites))
        log_.write({LOG_WARNING, Event::none, name + ": not written: the disk does not respond"});
}

std::string Service::state() const {
    if (switched_off_) return "paused";
    if (!engine_->observing().empty()) return "observing";
    return pause_.is_set() ? "paused" : "running";
}

std::string Service::summary() const {
    std::string out = engine_->summary();
    if (!policy_state_.error.empty() && policy_state_.in_force)
        out += "; the policy on disk is broken: " + policy_state_.error;
    return out;
}

// Sends the summary only if it changed, because each message wakes systemd.
void Service::show_summary() {
    const std::string now = summary();
    if (now != shown_) notify("STATUS=" + now);
    shown_ = now;
}

void Service::notify(const std::string& text) const {
    if (is_machine()) ::sd_notify(0, text.c_str());
}

int Service::on_signal(sd_event_source* /*source*/, const signalfd_siginfo* info, void* self) {
    auto* service = static_cast<Service*>(self);
    if (info->ssi_signo == SIGHUP)
        (void)service->reload();  // the result is in the journal and in STATUS=
    else
        service->stop();
    return 0;
}

int Service::on_tick(sd_event_source* source, std::uint64_t /*now*/, void* self) {
    auto* service = static_cast<Service*>(self);
    service->tick();
    ::sd_event_source_set_time_relative(source, service->tick_period_);
    return ::sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int Service::on_slot(sd_event_source* /*source*/, std::uint64_t due, void* self) {
    auto* service = static_cast<Service*>(self);
    const std::uint64_t now = monotonic_us();
    service->log_.write(
        {LOG_DEBUG, Event::none, fmt::format("a slot's timer came {} us late", now - std::min(now, due))});
    const bool ran = service->experiment_->is_measuring();
    service->check_switches();  // a window begins with a write
    service->experiment_->check();
    service->experiment_->on_time();
    service->arm_slot();
    if (ran || service->experiment_->is_measuring()) service->quiet_.worked();
    // Only after the slot: writing the metrics must not disturb the windows.
    if (ran && !service->experiment_->is_measuring()) service->publish();
    return 0;
}

int Service::on_work(sd_event_source* /*source*/, std::uint64_t /*now*/, void* self) {
    auto* service = static_cast<Service*>(self);
    service->quiet_.worked();
    service->reconcile();
    service->publish();
    service->show_summary();
    return 0;
}

}  // namespace wq
