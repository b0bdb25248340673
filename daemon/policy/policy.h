// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_set.h"
#include "machine/host_facts.h"
#include "machine/workqueue.h"

namespace wq {

// One error in a policy, with its place. Line and column count from 1, columns in bytes; 0 = the whole file.
// Excerpt and message contain no terminal control characters.
struct PolicyError {
    std::string file;
    unsigned line = 0;
    unsigned column = 0;
    std::string message;
    std::string excerpt;                           // the line with the error; empty if it is long
    [[nodiscard]] std::string text() const;        // "FILE:LINE:COLUMN: MESSAGE"
    [[nodiscard]] std::string underlined() const;  // text(), then the line with a caret under the column
};
using PolicyErrors = std::vector<PolicyError>;

// Where a setting came from. An empty file is the built-in default.
struct Origin {
    std::string file;
    unsigned line = 0;
    unsigned column = 0;
    [[nodiscard]] std::string text() const;  // "FILE:LINE", or "built-in"
};

// What a rule's `scope` says. automatic: only a scope that improved is set. plan, fixed: the planner's choice
// or the named scope is set first, and compared afterwards. leave: the scope stays as the kernel has it.
struct ScopeWish {
    enum class Kind { automatic, plan, leave, fixed };
    Kind kind = Kind::automatic;
    Scope scope = Scope::cache;  // if `kind` is fixed
    // With automatic: these alone, in the order written. Empty: the plan and every finer scope.
    std::vector<Scope> candidates = {};
    bool hold = false;  // with plan or fixed: keep it whatever the evidence says
    [[nodiscard]] bool sets_first() const { return kind == Kind::plan || kind == Kind::fixed; }
    [[nodiscard]] std::string text() const;  // "auto", "plan", "leave", "smt"
    friend bool operator==(const ScopeWish&, const ScopeWish&) = default;
};

// The mask that a rule or [default_mask] requests: no change, all CPUs that are not isolated, or fixed CPUs.
struct MaskWish {
    enum class Kind { leave, housekeeping, fixed };
    Kind kind = Kind::leave;
    CpuSet cpus;                             // if `kind` is fixed; not empty
    [[nodiscard]] std::string text() const;  // "leave", "housekeeping", "0-7"
    friend bool operator==(const MaskWish&, const MaskWish&) = default;
};

inline constexpr unsigned kMaxRules = 1024;        // in one file or one host table
inline constexpr std::size_t kMaxEvidence = 1000;  // bytes of a rule's `evidence`
inline constexpr unsigned kMaxHosts = 256;         // host tables in one file
inline constexpr unsigned kMaxShardSize = 1024;    // cores

// Whether the fnmatch(3) pattern PATTERN matches NAME.
bool is_match(const std::string& pattern, const std::string& name);

// [[workqueue]]: the first rule any of whose globs matches a workqueue's name decides.
struct WorkqueueRule {
    std::vector<std::string> match;  // fnmatch(3) patterns, 1 to 64
    ScopeWish wish;
    std::optional<bool> strict;  // affinity_strict; written only if a rule sets it
    Origin origin;
    std::string expires = {};   // the last day on which the rule applies, "2027-01-31" in UTC; "": no limit
    std::string evidence = {};  // why the rule exists, for people
    bool expired = false;       // as of the last Policy::expire()
    MaskWish mask = {};         // cpumask; written only if a rule requests it
    std::vector<Origin> match_origins = {};  // of each of `match`, if it is from a file
    Origin mask_origin = {};                 // of cpumask

    [[nodiscard]] bool matches(const std::string& name) const;
    // The same, without the pattern "*", which matches every name.
    [[nodiscard]] bool names(const std::string& name) const;
};

struct DefaultScope {
    bool manage = true;
    ScopeWish wish;
    Origin origin;
    std::string expires = {}, evidence = {};  // as of a rule
};

// One [default_scope] table.
struct DefaultScopeTable {
    DefaultScope keys;
    std::map<std::string, Origin> origins = {};  // of those that it has: "default_scope.manage"
    bool expired = false;                        // as of the last Policy::expire()
};

enum class Mode { observe, tune };
std::string_view name_of(Mode mode);

// A part of the day in local time: from minute `begin` to just before minute `end`, 0 to 1440. If `end` is
// not after `begin`, it includes midnight.
struct Hours {
    unsigned begin = 0;
    unsigned end = 24 * 60;
    [[nodiscard]] bool contains(unsigned minute_of_day) const;
    friend bool operator==(const Hours&, const Hours&) = default;
};

inline constexpr unsigned kMaxConcurrent = 16;

// A quantity that is compared. Lower is better unless `higher_is_better`.
struct JudgedCounter {
    std::string name;
    bool higher_is_better = false;
    friend bool operator==(const JudgedCounter&, const JudgedCounter&) = default;
};

// Settings of a comparison: [judge] of the policy, or the options of `wq-tunectl judge`.
struct JudgeSettings {
    double alpha = 0.05;          // of this comparison; above 0, at most kMaxAlpha
    double tolerance = 0;         // fraction 0..1: a cost increase up to this is not called regressed
    unsigned max_pairs = 16;      // 1..kMaxPairs, without dropped pairs
    std::uint64_t min_items = 0;  // per window; a pair with fewer in both windows is dropped
    friend bool operator==(const JudgeSettings&, const JudgeSettings&) = default;
};

inline constexpr double kMaxAlpha = 0.5;
inline constexpr unsigned kMaxPairs = 10'000;
inline constexpr unsigned kMaxCandidates = 100;
inline constexpr std::uint64_t kMaxRunLength = 1'000'000'000;  // pairs

// A counter that can count against a candidate, never for it.
struct Guard {
    std::string counter;   // name in the table of counters; "others": the other targets of the slot
    double tolerance = 0;  // fraction 0..1: a cost increase up to this is not harm
    friend bool operator==(const Guard&, const Guard&) = default;
};

// [judge]: how experiments are run and judged.
struct Judging {
    JudgeSettings settings{.max_pairs = 64, .min_items = 200};  // alpha: for the whole life of a comparison
    std::chrono::milliseconds window{2'000};                    // kMinWindow..kMaxWindow
    std::chrono::milliseconds washout{500};  // the first part of a window, not counted; less than `window`
    std::vector<JudgedCounter> counters{{"latency", false}};  // at least one, at most kMaxCounters
    std::vector<Guard> guards{{"throughput", 0.01}, {"cpu", 0.05}, {"others", 0.02}};  // at most kMaxCounters
    unsigned concurrent = kMaxConcurrent;  // targets in a slot, 1..kMaxConcurrent
    std::chrono::seconds recheck{600};     // between two sparse pairs of a target
    std::uint64_t run_length = 20'000;     // pairs between two false alarms of the watch, at least on average
    std::chrono::seconds budget{60};       // time that a target may lose to candidates per day
    std::chrono::seconds retry_after{30 * 24 * 3600};  // how long a candidate that regressed is left alone
    std::chrono::seconds jitter{60};                   // the first slot is delayed by a random part of this
    std::chrono::seconds settle{600};                  // after boot, before the first slot
    Hours hours;                                       // when slots may begin
    friend bool operator==(const Judging&, const Judging&) = default;
};
inline constexpr std::chrono::milliseconds kMinWindow{500};
inline constexpr std::chrono::milliseconds kMaxWindow{3'600'000};
inline constexpr std::size_t kMaxCounters = 8;

// [metrics]: the export to a fleet's monitoring.
struct Metrics {
    std::string textfile;  // absolute, ends in ".prom", for node_exporter's textfile collector; "" = none
    friend bool operator==(const Metrics&, const Metrics&) = default;
};

// [[host]]: whether the table applies to this host.
struct HostMatch {
    std::string name;
    Origin origin;
    std::vector<std::string> misses;  // each condition that does not hold: "arch is \"x86_64\", not ..."
    [[nodiscard]] bool matches() const { return misses.empty(); }
};

struct Policy {
    Mode mode = Mode::tune;
    bool keep_on_exit = false;  // on_exit = "keep"
    Judging judge;
    unsigned shard_size = kKernelShardSize;  // cores, 1..kMaxShardSize
    std::vector<WorkqueueRule> rules;        // in the order in which they are tried
    DefaultScope default_scope;              // as of the last Policy::expire(), if there are tables
    std::vector<DefaultScopeTable> default_scope_tables;  // the earliest source first
    MaskWish default_mask;  // for the mask of all unbound workqueues, /sys/devices/virtual/workqueue/cpumask
    Metrics metrics;
    std::map<std::string, Origin> origins;  // of settings from files, by "TABLE.KEY": "judge.alpha"
    Origin times;                  // of the last judge.window or judge.washout, which depend on each other
    std::vector<HostMatch> hosts;  // all host tables, in the order in which they are merged

    // Sets `expired` of each rule and [default_scope] table: whether its last day is over at NOW, in s since
    // 1970. Expired rules match nothing, and the keys of expired tables do not apply. Returns whether
    // anything changed.
    bool expire(std::int64_t now);
    [[nodiscard]] std::vector<Origin> expired_rules() const;
    // Whether a rule that has not expired, or [default_mask], requests a mask.
    [[nodiscard]] bool wants_masks() const;
    // The rule for a workqueue of this name, or nullptr.
    [[nodiscard]] const WorkqueueRule* rule_for(const std::string& name) const;
    // Merges `default_scope_tables` that have not expired into `default_scope`.
    void merge_default_scope();
};

}  // namespace wq
