// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/journal.h"
#include "machine/host_facts.h"
#include "machine/paths.h"
#include "policy/policy.h"
#include "service/health.h"
#include "service/metrics.h"
#include "service/metrics_file.h"
#include "service/parts.h"
#include "service/status.h"
#include "state/state_file.h"

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

}  // namespace wq
