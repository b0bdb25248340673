// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-event.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/journal.h"
#include "machine/host_facts.h"
#include "machine/udev.h"
#include "service/bus.h"
#include "service/health.h"
#include "service/loop.h"
#include "service/metrics.h"
#include "service/metrics_file.h"
#include "service/parts.h"
#include "service/status.h"
#include "state/record_thread.h"

namespace wq {

// What the daemon tells about itself.
struct Told {
    Parts& parts;
    const PolicyState& policy;
    std::string state;    // running, paused or observing
    std::string summary;  // one line
    bool whole = true;    // after a look at all targets
};

// Tells others: status.json, the metrics, messages for systemd. Each is written only if it changed.
class Publisher {
  public:
    Publisher(const Paths& paths, Log& log, RecordWriter& record)
        : paths_(paths), log_(log), metrics_(paths, log, record), health_(paths, log) {}

    // Takes over the metrics of an earlier daemon: they are still written if the policy is broken.
    void start();
    // Uses the metrics of a policy that takes effect. FILES: those of the policy.
    void use(const Policy& policy, const std::vector<std::string>& files);
    // Call it at ticks between slots, and (WRITES) before the daemon's own writes.
    void sample(WorkCounters& counters, bool writes);
    void cpus_changed() { health_.cpus_changed(); }
    void publish(const Told& now);
    // Sends TEXT to systemd, unless this is a test's tree. SUMMARY, if any, becomes STATUS=.
    void notify(const std::string& text, const std::string& summary = "");
    // Removes the metrics.
    void end() { metrics_.remove(); }

  private:
    void publish_status(const Told& now);
    void publish_metrics(const Told& now);

    const Paths& paths_;
    Log& log_;
    MetricsFile metrics_;
    HealthWatch health_;
    PolicyFacts policy_;
    std::optional<HostFacts> host_;  // for metrics; except for counts of CPUs, they do not change
    std::int64_t started_ = 0;       // s since 1970
    std::uint64_t told_ = 0;         // essence_of() and counts_of() as last written to status.json
    std::string told_counts_;        //
    std::uint64_t told_at_ = 0;      // us, when that was
    std::string error_;              // of status.json, last logged
    std::string summary_;            // STATUS= as last sent
};

struct ServiceOptions {
    std::string root;                   // "" is the machine; a test's tree has no udev and no bus
    std::optional<std::string> config;  // instead of the installed policy
    // For a test's tree, instead of udev: called once with the event loop and what takes each event.
    std::function<void(sd_event*, std::function<void(Udev::Change)>)> events = {};
};

// The daemon: takes events and does what follows from them. A lock in the runtime directory allows one
// instance per ROOT.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): there is one
class Service {
  public:
    explicit Service(ServiceOptions options);
    // Runs until SIGTERM or SIGINT. Error: it could not start, or the event loop failed. EWOULDBLOCK: a
    // daemon, `wq-tunectl ab` or `bench` holds the lock, or left something in force.
    Status run();

  private:
    Status start();
    void start_udev();
    void on(Cause cause);
    void take(Cause cause);
    void changed(Udev::Change change);
    Result<std::string> order(const std::string& method, const std::vector<std::string>& arguments);
    bool tick();
    void looked(bool whole);
    void look_at_hostname();
    bool look_at_dates();
    Status reload();
    void stop();
    void check_switches();
    void arm();
    Status use_policy();
    void leave();
    void remark(const Status& marked);
    [[nodiscard]] std::string state() const;
    [[nodiscard]] std::string summary() const;

    ServiceOptions options_;
    Paths paths_;
    Journal log_;
    Fd lock_;
    Loop loop_;
    RecordThread writer_;
    Publisher publisher_;
    std::string hostname_;  // as last read
    std::unique_ptr<Udev> udev_;
    std::unique_ptr<Parts> parts_;
    std::unique_ptr<BusServer> bus_;  // none for a test's tree
    Agenda agenda_;
    PolicyState policy_;
    unsigned ticks_ = 0;                   // since the last look at all targets
    bool events_lost_ = false;             // since then
    bool switched_off_ = false;            // by a kill switch
    std::optional<std::string> observed_;  // Targets::observing() at the last check; empty at the start
};

}  // namespace wq
