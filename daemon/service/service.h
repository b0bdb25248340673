// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-event.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/journal.h"
#include "bpf/work_counters.h"
#include "experiment/experiment.h"
#include "machine/host_facts.h"
#include "machine/udev.h"
#include "service/bus.h"
#include "service/metrics.h"
#include "service/metrics_file.h"
#include "service/status.h"
#include "service/watches.h"
#include "state/record_thread.h"
#include "targets/engine.h"
#include "targets/mask_keeper.h"

namespace wq {

struct ServiceOptions {
    std::string root;                   // "" is the machine; a test's tree has no udev and no bus
    std::optional<std::string> config;  // instead of the installed policy
    // For a test's tree, replaces udev: called once with the event loop and the function that takes each
    // event.
    std::function<void(sd_event*, std::function<void(Udev::Change)>)> events = {};
};

// The daemon: an event loop around an Engine. A lock in the runtime directory allows one instance per ROOT.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): there is one
class Service {
  public:
    explicit Service(ServiceOptions options);
    ~Service();
    // Runs until SIGTERM or SIGINT. Error: it could not start, or the event loop failed.
    Status run();
    // Whether run() failed because a daemon, `wq-tunectl ab` or `bench` holds the lock.
    [[nodiscard]] bool was_kept_out() const { return kept_out_; }

  private:
    // service_bus.cpp: the bus.
    void start_bus();
    void wait_for_bus();
    void check_bus();
    void warn_of_bus(const std::string& why);
    BusHandlers bus_handlers();
    Status ordered(Status done);
    const std::string& system_state();
    [[nodiscard]] bool is_restarted() const;

    // service.cpp: the rest.
    [[nodiscard]] bool is_machine() const { return options_.root.empty(); }
    Status start();
    Status add_sources();
    void start_udev();
    void look_at_hostname();
    void look_at_dates();
    void load_policy_at_start();
    Status reload();
    void remark(const Status& marked);
    void take(Policy policy);
    void publish();
    void publish_status();
    [[nodiscard]] std::size_t essence() const;
    [[nodiscard]] std::size_t counts() const;
    void check_switches();
    void reconcile();
    void changed(Udev::Change change);
    void arm();
    void tick();
    void stop();
    void leave();
    void finish_records();
    void hold_memory();
    void show_summary();
    Experiment::Edges experiment_edges();
    void arm_slot();
    [[nodiscard]] std::string state() const;
    [[nodiscard]] std::string summary() const;
    void notify(const std::string& text) const;

    bool kept_out_ = false;

    static int on_signal(sd_event_source* source, const signalfd_siginfo* info, void* self);
    static int on_tick(sd_event_source* source, std::uint64_t now, void* self);
    static int on_work(sd_event_source* source, std::uint64_t now, void* self);
    static int on_slot(sd_event_source* source, std::uint64_t now, void* self);

    struct EventUnref {
        void operator()(sd_event* event) const { ::sd_event_unref(event); }
    };

    ServiceOptions options_;
    Paths paths_;
    Journal log_;
    Fd lock_;
    std::unique_ptr<sd_event, EventUnref> event_;
    RecordThread writer_;
    MetricsFile metrics_;
    Pause pause_;
    HostnameWatch hostname_;
    PolicyFacts policy_facts_;
    CpuWatch cpu_watch_;
    IsolatedWatch isolated_;
    std::optional<HostFacts> host_facts_;  // for metrics; except for counts of CPUs, they do not change
    WorkqueueFs files_;
    OwnedStore store_;
    std::unique_ptr<Udev> udev_;
    VerdictStore verdicts_;
    std::unique_ptr<WorkCounters> counters_;
    std::unique_ptr<Engine> engine_;
    std::unique_ptr<MaskKeeper> masks_;
    std::unique_ptr<Experiment> experiment_;
    std::unique_ptr<BusServer> bus_;
    Coalescer pending_;
    sd_event_source* tick_source_ = nullptr;
    sd_event_source* work_source_ = nullptr;
    sd_event_source* slot_source_ = nullptr;
    std::uint64_t tick_period_ = 0;  // us
    Quiet quiet_;
    std::size_t told_ = 0;         // essence() and counts() as last written to status.json
    std::size_t told_counts_ = 0;  //
    std::uint64_t told_at_ = 0;    // us, when they were last compared
    std::string status_error_;     // last logged
    std::int64_t started_ = 0;     // s since 1970
    unsigned retries_ = 0;         // in a row, for backing off
    PolicyState policy_state_;
    std::string baseline_error_;
    bool events_lost_ = false;             // since the last reconcile()
    std::string shown_;                    // STATUS= as last sent by a tick or an event
    bool switched_off_ = false;            // by a kill switch
    std::optional<std::string> observed_;  // Engine::observing() at the last check; empty at the start
    std::string system_state_;
    std::uint64_t asked_system_at_ = 0;  // us
    bool memory_held_ = false;
    std::string not_held_;     // last logged reason why memory could not be locked
    bool bus_warned_ = false;  // logged that there is no bus; reset once there is one
};

}  // namespace wq
