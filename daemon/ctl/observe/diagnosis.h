// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_set.h"
#include "bpf/bpf_dump.h"
#include "bpf/work_monitor.h"
#include "ctl/command.h"
#include "ctl/device_mapper.h"
#include "ctl/kworker.h"
#include "ctl/observe/top_rates.h"
#include "machine/paths.h"
#include "machine/workqueue.h"

namespace wq::ctl {

// Text in paragraphs, wrapped at COLUMNS: a line, and indented lines below it.
class Paragraphs {
  public:
    explicit Paragraphs(std::size_t columns) : columns_(columns) {}

    // Begins a paragraph; an empty line precedes it, unless it is the first.
    void begin(const std::string& line) {
        if (!text_.empty()) text_ += '\n';
        note(line);
    }
    void say(const std::string& line) { add(line, kIndent); }
    // Adds a line that is neither indented nor a new paragraph.
    void note(const std::string& line) { add(line, 0); }
    // Adds a command. It is not wrapped, so that the user can copy it.
    void command(const std::string& line) { text_ += std::string(kIndent + 2, ' ') + line + '\n'; }

    [[nodiscard]] bool empty() const { return text_.empty(); }
    std::string text() && { return std::move(text_); }

  private:
    static constexpr std::size_t kIndent = 4;
    void add(const std::string& text, std::size_t indent);

    std::size_t columns_;
    std::string text_;
};

// Work of one function on isolated CPUs.
struct IsolatedFinding {
    std::string workqueue, kind;  // "": in a soft interrupt; an unknown workqueue also has no kind
    std::string function;
    std::uint64_t items = 0;  // items that started there
    std::vector<WorkOrigin> origins;
};

// Returns the work that started on isolated CPUs, most items first, without work that was only queued there.
// WORKQUEUES: the kernel's workqueues by address, for their names.
std::vector<IsolatedFinding> isolated_findings(const std::vector<IsolatedWork>& work,
                                               const std::map<std::uint64_t, KernelWorkqueue>& workqueues);

// Adds a paragraph for each function, at most twelve.
void tell_isolated(Paragraphs& out, const std::vector<IsolatedFinding>& findings, const CpuSet& isolated);
nlohmann::ordered_json isolated_json(const std::vector<IsolatedFinding>& findings);

// One kworker during a look.
struct KworkerUse {
    int pid = 0;
    std::string name;
    std::uint64_t cpu_ns = 0;
    // CPU time by the kernel's name for the work. The time between two readings counts for the name in the
    // second one, which is a guess for a kworker that serves several workqueues.
    std::map<std::string, std::uint64_t> by_work;
    bool stuck = false;     // busy with one item that was in uninterruptible sleep in all readings
    std::string work;       // at the last reading
    CpuSet cpus;            // where it may run; filled in by the caller
    std::string sleeps_in;  // the kernel function, if it is stuck; filled in by the caller
};

// Adds up readings of all kworkers.
class KworkerWatch {
  public:
    void add(const std::vector<Kworker>& reading);
    // The kworkers that used CPU time or are stuck. Needs two readings.
    [[nodiscard]] std::vector<KworkerUse> uses() const;
    [[nodiscard]] std::size_t seen() const { return seen_.size(); }

  private:
    struct Seen {
        Kworker last;
        KworkerUse use;
        unsigned readings = 0;  // latest readings in a row that found it in the same sleep
    };
    std::map<int, Seen> seen_;
    unsigned readings_ = 0;
};

// Everything that was seen in one look at the machine's kworkers. Data that this kernel refused is empty.
struct DiagnoseLook {
    double seconds = 0;
    CpuSet online;
    std::vector<KworkerUse> kworkers;
    std::optional<TopInterval> work;  // from the start to the end
    std::optional<ProfileSample> profile;
    double profile_seconds = 0;
    bool sampled = false;  // the profile has RanWork
    std::optional<KernelDump> dump;
    CpuSet isolated;
    std::map<std::string, CryptBypass> bypassed;  // workqueues of dm-crypt that work bypasses
    std::uint64_t hog_ns = 10'000'000;            // the kernel's threshold for an item that holds a CPU
    std::vector<std::string> missing;             // what cannot be seen here, and why
};

// CPU time is in CPUs: seconds of CPU time per second.

struct KworkerShare {
    std::string name;  // "kworker/u96:3"
    double cpu = 0;
    CpuSet cpus;  // where it may run; empty if it has ended
};

// One function of one workqueue.
struct BusyWork {
    std::size_t workqueue = 0;  // index in Diagnosis::workqueues
    std::string function;       // "" if it is not known
    double cpu = 0;
    std::vector<KworkerShare> kworkers;  // the busiest first
    std::optional<double> per_second;    // items that ended
    std::optional<double> mean_ns;       // from start to end
    std::optional<double> longest_ns;    // CPU time that one item was seen to use without a sleep
};

struct EnqueueTimes {
    double p50 = 0, p90 = 0, p95 = 0, p99 = 0;  // ns
};

// A workqueue that used CPU time, or that has events.
struct DiagnosedWorkqueue {
    unsigned id = 0;   // names are not unique
    std::string name;  // as in sysfs; the kernel's name for the work if nothing better is known
    std::string kind;  // "unbound", "ordered", "per-cpu", "bh"; "" if not known
    double cpu = 0;
    std::optional<int> max_active;
    // The wait for pool->lock of all items during the look.
    std::optional<double> lock_share;  // of the time from queueing to start
    std::optional<double> lock_ns;     // per item
    std::optional<double> lock_cpu;    // CPUs that spin for it
    // The part of lock_ns above the lowest mean of any other workqueue in this look: what is below is the
    // lock without contention, and our probe. Empty if no other workqueue had enough items to compare with.
    std::optional<double> contention_ns;
    std::optional<double> contention_share;  // of the mean time from queueing to the end
    std::optional<EnqueueTimes> enqueue;     // that producers spent in queue_work()
    // Only for unbound workqueues:
    std::optional<Scope> scope;   // in effect
    std::vector<Scope> finer;     // scopes that make more pools, the coarsest first; empty if none can help
    std::vector<Scope> coarser;   // only if each core needlessly has its own pool; the finest first
    std::string target;           // for `ab --target`; "" if no setting affects it, or this is not known
    std::size_t pool_cpus = 0;    // largest number of online CPUs that queue to one pool; 0 if not known
    std::size_t pool_shared = 0;  // other workqueues that use its pools
    // Counted by the kernel during the look; empty if the event cannot happen on this workqueue, or if its
    // pools were replaced during the look.
    std::optional<std::uint64_t> items, cpu_hogs, cm_wakeups, repatriated, mayday, rescued;
    // Items in flight (queued or running), if there were some at the start, and none began or ended since.
    std::optional<std::uint64_t> stalled;

    // Whether the kernel counted something that needs an explanation.
    [[nodiscard]] bool has_events() const {
        return cpu_hogs.value_or(0) > 0 || mayday.value_or(0) > 0 || rescued.value_or(0) > 0 ||
               stalled.value_or(0) > 0;
    }
};

struct StuckKworker {
    std::string name, work;
    std::string sleeps_in;  // a kernel function; "" if it is not known
};

struct Diagnosis {
    double seconds = 0;
    std::size_t online = 0;  // CPUs
    double cpu = 0;          // of all kworkers
    double unsampled = 0;    // of kworkers that no tick found running
    // How CPU time was attributed to work: by samples at scheduler "ticks"; by the kernel's "statistics" of
    // each workqueue (and the time that functions took); by the "names" of the kworkers' work.
    const char* by = "names";
    std::vector<BusyWork> work;                  // the most costly first
    std::vector<DiagnosedWorkqueue> workqueues;  // in the order of their work, then those with events
    std::vector<StuckKworker> stuck;
    CpuSet isolated_cpus;
    std::vector<IsolatedFinding> isolated;        // most items first
    std::map<std::string, CryptBypass> bypassed;  // as in DiagnoseLook
    std::uint64_t hog_ns = 0;
    std::vector<std::string> missing;
};

// Finds what keeps the kworkers busy.
Diagnosis diagnose(const DiagnoseLook& look);

struct DiagnoseOptions {
    double seconds = 5;
    bool json = false;
};

// The data sources. If one cannot be used, `diagnose` uses the others.
struct DiagnoseTools {
    Paths paths;  // of /proc and /sys
    WorkMonitor& monitor;
    WorkProfile& profile;
    Result<KernelDump> (*dump)() = nullptr;  // only for `diagnose`
};

// `wq-tunectl diagnose`: watches for a while and prints what keeps kworkers busy. A signal ends the look
// early; then it prints what was seen so far. Fails only if nothing can be seen or printed.
int diagnose(const DiagnoseOptions& options, const DiagnoseTools& tools);

// `wq-tunectl status --isolation`: the same for the isolated CPUs: which work started there, and who queued
// it. It attaches nothing if no CPU is isolated.
int isolation(const DiagnoseOptions& options, const DiagnoseTools& tools);

// The diagnosis in plain words, COLUMNS wide.
std::string diagnosis_text(const Diagnosis& diagnosis, std::size_t columns);
nlohmann::ordered_json diagnosis_json(const Diagnosis& diagnosis);

// Adds --seconds, how long to look.
CLI::Option* add_look_seconds(CLI::App& command, double& seconds);

CommandRun set_up_diagnose(CLI::App& command, const Invocation& invocation);

}  // namespace wq::ctl
