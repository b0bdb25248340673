// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "judge/settings.h"
#include "model/host_facts.h"
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

// The most rules that one file, or one host table, may have.
inline constexpr unsigned kMaxRules = 1024;
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
};

enum class Mode { observe, guard, tune };
std::string_view name_of(Mode mode);

// What becomes of a planned scope that a trial could not tell from the baseline.
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

// [judge]: how trials are run and judged.
struct Judging {
    JudgeSettings settings{.min_items = 1200};  // alpha: of all trials of the same arms together
    std::chrono::milliseconds window{10'000};   // kMinWindow..kMaxWindow
    std::chrono::milliseconds washout{2'000};   // its first part, not counted; less than the window
    std::vector<JudgedCounter> counters{{"latency", false}};  // at least one, at most kMaxCounters
    std::chrono::seconds retry_after{7 * 24 * 3600};          // how long a verdict is trusted
    std::chrono::seconds jitter{3600};                        // trials start after a random part of this
    Hours hours;                                              // when pairs may be measured
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
    Mode mode = Mode::guard;
    bool keep_on_exit = false;    // on_exit = "keep"
    bool apply_unjudged = false;  // apply the plan at once, without a trial
    Keep keep = Keep::unless_regressed;
    Judging judge;
    unsigned shard_size = 8;           // cores, 1..kMaxShardSize
    std::vector<WorkqueueRule> rules;  // in the order in which they are tried
    struct DefaultScope {
        bool manage = false;
        ScopeWish wish;
        Origin origin;
    } default_scope;
    Metrics metrics;
    std::map<std::string, Origin> origins;  // of what is not built in, by "TABLE.KEY": "judge.alpha"
    std::vector<HostMatch> hosts;           // all host tables, in the order in which they are merged

    // The rule for a workqueue of this name, or nullptr.
    [[nodiscard]] const WorkqueueRule* rule_for(const std::string& name) const;
};

// One mistake in a policy, with all that is needed to find it. Line and column count from 1, columns in
// bytes; 0 = the whole file. Excerpt and message hold nothing that a terminal would obey.
struct PolicyError {
    std::string file;
    unsigned line = 0;
    unsigned column = 0;
    std::string message;
    std::string excerpt;                           // the offending line, if any; a piece of a long one
    unsigned caret = 0;                            // byte of the excerpt that `column` is, from 1; 0 = none
    [[nodiscard]] std::string text() const;        // "FILE:LINE:COLUMN: MESSAGE"
    [[nodiscard]] std::string underlined() const;  // the same, then the line with a caret under the column
};
using PolicyErrors = std::vector<PolicyError>;

// The policy files in force below ROOT ("" is the machine), main file first, then drop-ins in their order:
// the main file is the first found of {/etc,/run,/usr/lib}/wq-tuned/wq-tuned.toml; drop-ins are
// {...}/wq-tuned/wq-tuned.toml.d/*.toml of all three, sorted by base name, where a name in /etc hides the
// same name in /run and /usr/lib; an empty file or a link to /dev/null masks (UAPI.6). Names with a leading
// dot are passed over. What is there but cannot be looked at, and a folder that everyone may write to, are
// returned too: load_policy() says why.
std::vector<std::string> policy_files(const std::string& root);

// Whether there is a main file at all, a masked one included.
bool has_main_file(const std::string& root);

// Asked once, and only where a policy has a host table: reading a topology has its price.
using FactsSource = std::function<HostFacts()>;

// Reads FILES, the first being the main file, and merges them, then the host tables that match, in the order
// of the files: a key set by a later source wins, and the rules of a later source are tried before those of
// an earlier one. All mistakes of all files are returned at once, in the order of the files and of their
// lines, those of host tables that do not match too; values that do not go together are told once each is
// right by itself. A host table's values must go together with those outside of host tables, whether or not
// it matches. No files, or empty ones: the built-in defaults. No FACTS: nothing is known about the host.
// Where there is no mistake, WARNINGS gets what is allowed and cannot be meant, see rule_warnings.h.
tl::expected<Policy, PolicyErrors> load_policy(const std::vector<std::string>& files,
                                               const FactsSource& facts = {},
                                               PolicyErrors* warnings = nullptr);

}  // namespace wq
