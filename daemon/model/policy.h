// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "model/host_facts.h"
#include "model/judge_settings.h"
#include "model/scope.h"

namespace wq {

// Where a setting came from. An empty file is the built-in default.
struct Origin {
    std::string file;
    unsigned line = 0;
    [[nodiscard]] std::string text() const;  // "FILE:LINE", or "built-in"
};

// What a rule asks for: the planner's own choice, hands off, or one scope.
struct ScopeWish {
    enum class Kind { automatic, leave, fixed };
    Kind kind = Kind::automatic;
    Scope scope = Scope::cache;              // of a fixed wish
    [[nodiscard]] std::string text() const;  // "auto", "leave", "smt"
};

// What a rule or [default_mask] asks for: hands off, all CPUs that nothing isolates, or these CPUs.
struct MaskWish {
    enum class Kind { leave, housekeeping, fixed };
    Kind kind = Kind::leave;
    CpuSet cpus;                             // of a fixed wish, not empty
    [[nodiscard]] std::string text() const;  // "leave", "housekeeping", "0-7"
    friend bool operator==(const MaskWish&, const MaskWish&) = default;
};

// The most rules that one file, or one host table, may have.
inline constexpr unsigned kMaxRules = 1024;
// The longest `evidence` of a rule, in bytes.
inline constexpr std::size_t kMaxEvidence = 1000;
// The most host tables that one file may have.
inline constexpr unsigned kMaxHosts = 256;
// The largest [shard] size, in cores.
inline constexpr unsigned kMaxShardSize = 1024;

// [[workqueue]]: the first rule whose glob matches a workqueue's name decides.
struct WorkqueueRule {
    std::string match;  // fnmatch(3) pattern
    ScopeWish wish;
    std::optional<bool> strict;  // affinity_strict is written only where a rule says so
    Origin origin;
    std::string expires = {};   // the last day on which it is in force, "2027-01-31" in UTC; "" is for good
    std::string evidence = {};  // why there is such a rule, for people
    bool expired = false;       // since the last Policy::expire()
    MaskWish mask = {};         // cpumask is written only where a rule asks for it
};

enum class Mode { observe, guard, tune };
std::string_view name_of(Mode mode);

// What becomes, in mode guard, of a planned scope that max_pairs pairs could not tell from the baseline. Mode
// tune keeps only what improved.
enum class Keep { unless_regressed, if_improved };
std::string_view name_of(Keep keep);

// A part of the day in local time, from minute `begin` up to but without minute `end`; where end is not after
// begin it goes over midnight. 0 to 1440.
struct Hours {
    unsigned begin = 0;
    unsigned end = 24 * 60;
    [[nodiscard]] bool contains(unsigned minute_of_day) const;
    friend bool operator==(const Hours&, const Hours&) = default;
};

inline constexpr unsigned kMaxConcurrent = 16;

// A counter that may veto a candidate, and never speaks for one.
struct Guard {
    std::string counter;   // of the table of counters, or "others": the other targets of the slot
    double tolerance = 0;  // fraction 0..1: a cost that is higher by at most this is no harm
    friend bool operator==(const Guard&, const Guard&) = default;
};

// [judge]: how experiments are run and judged.
struct Judging {
    JudgeSettings settings{.max_pairs = 64, .min_items = 200};  // alpha: of all that is ever said of two arms
    std::chrono::milliseconds window{2'000};                    // kMinWindow..kMaxWindow
    std::chrono::milliseconds washout{500};  // its first part, not counted; less than the window
    std::vector<JudgedCounter> counters{{"latency", false}};  // at least one, at most kMaxCounters
    std::vector<Guard> guards{{"throughput", 0.01}, {"cpu", 0.05}, {"others", 0.02}};  // at most kMaxCounters
    unsigned concurrent = kMaxConcurrent;  // targets in a slot, 1..kMaxConcurrent
    std::chrono::seconds holdback{600};    // between the sparse pairs of one target
    std::uint64_t run_length = 20'000;     // pairs between two false alarms of the watch, on average
    std::chrono::seconds budget{60};       // time that a target may lose a day
    std::chrono::seconds retry_after{30 * 24 * 3600};  // how long what regressed is left alone
    std::chrono::seconds jitter{60};                   // experiments start after a random part of this
    std::chrono::seconds settle{600};                  // after boot, before the first slot
    Hours hours;                                       // when pairs may be measured
    friend bool operator==(const Judging&, const Judging&) = default;
};
inline constexpr std::chrono::milliseconds kMinWindow{500};
inline constexpr std::chrono::milliseconds kMaxWindow{3'600'000};
inline constexpr std::size_t kMaxCounters = 8;

// [metrics]: what is told to a fleet's monitoring.
struct Metrics {
    std::string textfile;  // absolute, ends in ".prom", for node_exporter's textfile collector; "" = none
    friend bool operator==(const Metrics&, const Metrics&) = default;
};

// [[host]]: whether it is for this host.
struct HostMatch {
    std::string name;
    Origin origin;
    std::vector<std::string> misses;  // each condition that does not hold: "arch is \"x86_64\", not ..."
    [[nodiscard]] bool matches() const { return misses.empty(); }
};

struct Policy {
    Mode mode = Mode::tune;
    bool keep_on_exit = false;    // on_exit = "keep"
    bool apply_unjudged = false;  // apply the plan at once, without a trial
    Keep keep = Keep::unless_regressed;
    Judging judge;
    unsigned shard_size = kKernelShardSize;  // cores, 1..kMaxShardSize
    std::vector<WorkqueueRule> rules;        // in the order in which they are tried
    struct DefaultScope {
        bool manage = true;
        ScopeWish wish;
        Origin origin;
    } default_scope;
    MaskWish default_mask;  // of the mask of all unbound workqueues, /sys/devices/virtual/workqueue/cpumask
    Metrics metrics;
    std::map<std::string, Origin> origins;  // of what is not built in, by "TABLE.KEY": "judge.alpha"
    std::vector<HostMatch> hosts;           // all host tables, in the order in which they are merged

    // Rules whose last day is over at NOW, in s since 1970, match nothing from here on.
    void expire(std::int64_t now);
    // Whether expire() would change anything.
    [[nodiscard]] bool is_outdated(std::int64_t now) const;
    [[nodiscard]] std::vector<Origin> expired_rules() const;
    // Whether any mask is asked for, by a rule in force or by [default_mask].
    [[nodiscard]] bool wants_masks() const;
    // The rule for a workqueue of this name, or nullptr.
    [[nodiscard]] const WorkqueueRule* rule_for(const std::string& name) const;
};

}  // namespace wq
