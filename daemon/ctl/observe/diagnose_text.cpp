// SPDX-License-Identifier: LGPL-2.1-or-later
// The findings of `diagnose` in plain words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "ctl/observe/diagnosis.h"
#include "ctl/render/terminal.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLeastCpu = 0.01;     // CPUs; work that uses less only counts in the summary
constexpr double kHintCpu = 0.05;      // CPUs; below this, no comparison of scopes is suggested
constexpr double kLockShare = 0.10;    // below this, the wait for the lock is not mentioned
constexpr double kContention = 0.01;   // of the latency; below this, no scope can gain much by the lock
constexpr std::size_t kMostWork = 12;  // functions
constexpr std::size_t kMostNamed = 3;  // kworkers

// The number KEY of OBJECT; OTHERWISE if it is null.
double number(const Json& object, const char* key, double otherwise = 0) {
    const Json& value = object.at(key);
    return value.is_number() ? value.get<double>() : otherwise;
}

// The word KEY of OBJECT, harmless to a terminal; "" if it is null.
std::string word_in(const Json& object, const char* key) {
    const Json& value = object.at(key);
    return value.is_string() ? printable(value.get<std::string>()) : "";
}

std::string time_in(const Json& object, const char* key) {
    return time_text(number(object, key));
}

std::string items_text(double items) {
    return plural(static_cast<std::size_t>(items), "item");
}

std::string name_and_kind(const Json& wq) {
    const std::string kind = word_in(wq, "kind");
    return fmt::format("{} ({})", word_in(wq, "name"),
                       kind == "bh"        ? "in soft interrupts"
                       : kind == "per-cpu" ? "per-CPU"
                                           : kind);
}

// Paragraphs, wrapped at COLUMNS: a line, and indented lines below it.
class DiagnosisText {
  public:
    DiagnosisText(const Json& diagnosis, const DiagnoseLook& look, std::size_t columns)
        : d_(diagnosis), look_(look), columns_(columns) {}

    std::string all() {
        const std::size_t shown = work();
        // The events of workqueues whose work was not explained, because it used little CPU time.
        for (const Json& wq : d_.at("workqueues")) {
            if (explained_.contains(wq.at("id").get<unsigned>()) || !has_events(wq)) continue;
            begin(name_and_kind(wq));
            say_events(wq);
        }
        others();
        summary(shown);
        for (const Json& one : d_.at("missing")) add("Not seen: " + one.get<std::string>(), 0);
        return std::move(text_);
    }

  private:
    static constexpr std::size_t kIndent = 4;

    void add(const std::string& text, std::size_t indent) {
        const std::size_t width = columns_ > indent + 20 ? columns_ - indent : 20;
        for (const auto& line : wrap(text, width)) text_ += std::string(indent, ' ') + line + '\n';
    }
    void begin(const std::string& line) {
        if (!text_.empty()) text_ += '\n';
        add(line, 0);
    }
    void say(const std::string& line) { add(line, kIndent); }

    void say_kworkers(const Json& work) {
        std::vector<std::string> names;
        CpuSet cpus;
        for (const Json& one : work.at("kworkers")) {
            cpus |= CpuSet::parse_list(word_in(one, "allowed")).value_or(CpuSet{});
            names.push_back(fmt::format("{} {:.2f}", word_in(one, "name"), number(one, "cpu")));
        }
        if (names.empty()) return;
        std::string line = some_of(names, kMostNamed);
        if (!cpus.empty())
            line += fmt::format(", allowed on CPU{} {}", cpus.count() == 1 ? "" : "s", cpus.list());
        say(line);
    }

    void say_times(const Json& work) {
        std::vector<std::string> words;
        if (work.at("mean_ns").is_number())
            words.push_back(fmt::format("{} items/s, {} each from start to end",
                                        count_text(number(work, "per_second")), time_in(work, "mean_ns")));
        if (number(work, "longest_ns") >= static_cast<double>(look_.hog_ns))
            words.push_back(fmt::format("one item was seen to use {} of CPU without a sleep",
                                        time_in(work, "longest_ns")));
        if (!words.empty()) say(fmt::format("{}", fmt::join(words, "; ")));
    }

    // Says which settings do not affect the work, because of its kind.
    void say_where(const Json& wq) {
        const std::string kind = word_in(wq, "kind");
        if (kind == "per-cpu")
            say("Per-CPU work runs on the CPU that it is queued on; affinity scopes and the masks of unbound "
                "workqueues do not reach it.");
        if (kind == "bh")
            say("It runs in soft interrupts of the CPU that it is queued on, and no kworker shows it.");
        if (kind == "ordered" || (kind == "unbound" && number(wq, "max_active") == 1))
            say("One item at a time: no affinity scope makes it faster.");
    }

    void say_lock(const Json& wq) {
        if (number(wq, "lock_share") < kLockShare) return;
        std::string line =
            fmt::format("{:.0f}% of the time in the queue is waiting for pool->lock ({} per item",
                        number(wq, "lock_share") * 100, time_in(wq, "lock_ns"));
        if (number(wq, "lock_cpu") >= kLeastCpu)
            line += fmt::format(", {:.2f} CPUs spin for it", number(wq, "lock_cpu"));
        line += ").";
        const auto others = static_cast<std::size_t>(number(wq, "pool_shared"));
        if (number(wq, "pool_cpus") > 1)
            line += fmt::format(" Up to {} CPUs share a pool{}.", number(wq, "pool_cpus"),
                                others > 0 ? ", and " + plural(others, "other workqueue") : "");
        say(line);
    }

    void say_enqueue(const Json& times) {
        if (times.is_null()) return;
        say(fmt::format("queue_work() takes its callers {} (p50), {} (p90), {} (p95), {} (p99).",
                        time_in(times, "p50"), time_in(times, "p90"), time_in(times, "p95"),
                        time_in(times, "p99")));
    }

    void say_contention(const Json& wq) {
        if (word_in(wq, "kind") != "unbound" || wq.at("lock_ns").is_null()) return;
        if (wq.at("contention_ns").is_null())
            return say("Contention is not known: no other workqueue had enough items to compare with.");
        const double share = number(wq, "contention_share");
        say(fmt::format("Contention: {} per item above the lowest wait for pool->lock seen here, {}",
                        time_in(wq, "contention_ns"),
                        wq.at("contention_share").is_null() ? "a share of its latency that is not known."
                        : share < kContention
                            ? "under 1% of its latency: a finer scope can hardly gain by the lock."
                            : fmt::format("{:.0f}% of its latency.", share * 100)));
    }

    // Suggests a comparison, if another scope could change something.
    void hint(const Json& wq) {
        if (wq.at("scope").is_null() || wq.at("target").is_null() || number(wq, "cpu") < kHintCpu) return;
        const bool lock_seen = wq.at("lock_share").is_number();
        const bool contended = lock_seen ? number(wq, "lock_share") >= kLockShare &&
                                               number(wq, "contention_share", 1) >= kContention
                                         : number(wq, "pool_cpus") > 1;
        const bool finer = contended && !wq.at("finer").empty();
        if (!finer && wq.at("coarser").empty()) return;
        if (!finer)
            say(
                fmt::format("Each core has a pool of its own, since `{}` is one core here (as in virtual "
                            "machines of one-core sockets). A coarser scope may spread the work better; a "
                            "comparison under your load tells:",
                            word_in(wq, "scope")));
        else if (lock_seen)
            say("A finer scope may shorten this; a comparison under your load tells:");
        else
            say("Waiting for pool->lock is not seen here; a comparison under your load tells whether a finer "
                "scope helps:");
        auto arms = wq.at(finer ? "finer" : "coarser").get<std::vector<std::string>>();
        arms.insert(arms.begin(), word_in(wq, "scope"));
        // Not wrapped, so that the user can copy it.
        text_ += fmt::format("      wq-tunectl ab --target {} --arms {} -- COMMAND\n",
                             shell_word(word_in(wq, "target")), fmt::join(arms, ","));
    }

    // Explains counts that show why a workqueue is slower than necessary.
    void say_workers(const Json& wq) {
        const auto say_often = [&](const char* key, const char* words) {
            const double count = number(wq, key);
            if (count > 0 && count * 10 >= number(wq, "items"))
                say(fmt::format(fmt::runtime(words), count_text(count / look_.seconds)));
        };
        say_often("cm_wakeups",
                  "Its items sleep or hold the CPU: {} times a second another kworker was woken to go on in "
                  "their place.");
        say_often("repatriated",
                  "{} times a second a kworker was brought back into its pool's CPUs, from which the "
                  "scheduler had moved it.");
    }

    static bool has_events(const Json& wq) {
        return number(wq, "cpu_hogs") + number(wq, "mayday") + number(wq, "rescued") + number(wq, "stalled") >
               0;
    }

    void say_events(const Json& wq) {
        if (const double hogs = number(wq, "cpu_hogs"); hogs > 0)
            say(
                fmt::format("{} held a CPU for more than {}. The kernel may log \"hogged CPU ... consider "
                            "switching to WQ_UNBOUND\": that is for the authors of the driver, since other "
                            "work of that CPU had to wait. No setting changes it.",
                            items_text(hogs), time_text(static_cast<double>(look_.hog_ns))));
        if (number(wq, "mayday") > 0 || number(wq, "rescued") > 0)
            say(
                fmt::format("Its pool could not get another kworker in time and called the rescuer ({} "
                            "calls, {} items rescued): memory is short, or forking is slow. While that "
                            "lasts one thread does all of this work.",
                            number(wq, "mayday"), number(wq, "rescued")));
        if (const double stalled = number(wq, "stalled"); stalled > 0)
            say(
                fmt::format("{} {} in flight, and none began or ended meanwhile. If no kworker takes what is "
                            "queued for 30 s (workqueue.watchdog_thresh), the kernel logs \"BUG: workqueue "
                            "lockup - pool ...\" and \"Showing busy workqueues and worker pools\", with all "
                            "items; `echo t >/proc/sysrq-trigger` prints these now.",
                            items_text(stalled), stalled == 1 ? "is" : "are"));
    }

    std::size_t work() {
        std::size_t shown = 0;
        for (const Json& work : d_.at("work")) {
            if (number(work, "cpu") < kLeastCpu || shown == kMostWork) break;
            shown++;
            const Json& wq = *std::ranges::find_if(
                d_.at("workqueues"), [&](const Json& one) { return one.at("id") == work.at("id"); });
            const std::string function = word_in(work, "function");
            begin(fmt::format("{:.2f} CPUs in {} of {}", number(work, "cpu"),
                              function.empty() ? "work" : function, name_and_kind(wq)));
            say_kworkers(work);
            say_times(work);
            if (explained_.insert(wq.at("id").get<unsigned>()).second) explain(wq, number(work, "cpu"));
        }
        return shown;
    }

    void explain(const Json& wq, double cpu) {
        say_where(wq);
        say_enqueue(wq.at("enqueue_ns"));
        // Work for which a scope is often blamed, although none helps.
        if (cpu >= kHintCpu && wq.at("name") == "inode_switch_wbs")
            say("Inodes move to another cgroup's writeback, many at once when a cgroup ends that owned them "
                "(fs/fs-writeback.c). This workqueue is per-CPU, and its items wait for the locks of both "
                "lists (wb->list_lock), so a scope does not help. Fewer short-lived cgroups that write "
                "files do.");
        say_lock(wq);
        say_contention(wq);
        hint(wq);
        say_workers(wq);
        say_events(wq);
    }

    void others() {
        for (const Json& one : d_.at("stuck")) {
            const std::string work = word_in(one, "work"), sleeps_in = word_in(one, "sleeps_in");
            begin(fmt::format("{} did not run at all: it sleeps in the middle of an item{}",
                              word_in(one, "name"), work.empty() ? "" : " of " + work));
            say(
                fmt::format("It waits{}. It uses no CPU but counts in the load average. `cat "
                            "/proc/PID/stack` shows what it waits for.",
                            sleeps_in.empty() ? "" : " in " + sleeps_in));
        }
        // Of all mappings, since a workqueue that is bypassed uses little CPU time.
        for (const auto& [workqueue, bypass] : look_.bypassed) {
            begin(printable(workqueue));
            say("In its dm-crypt mapping " + bypass.text() + ".");
        }
        std::vector<std::string> isolated;
        for (const Json& one : d_.at("isolated").at("work"))
            isolated.push_back(items_text(number(one, "items")) + " of " + word_in(one, "workqueue"));
        if (isolated.empty()) return;
        begin(fmt::format("On the isolated CPUs {} per-CPU work started", look_.isolated.list()));
        say(fmt::format("{}. Each was queued for the CPU that it ran on.", some_of(isolated, kMostWork)));
    }

    void summary(std::size_t shown) {
        const std::string use = fmt::format("kworkers used {:.2f} of {} in {:.1f} s", number(d_, "cpu"),
                                            plural(look_.online.count(), "CPU"), look_.seconds);
        if (text_.empty() && number(d_, "cpu") < kLeastCpu)
            return begin("Nothing keeps kworkers busy: " + use + ".");
        const Json& work = d_.at("work");
        double rest = 0;
        for (std::size_t i = shown; i < work.size(); i++) rest += number(work[i], "cpu");
        std::string line = "All " + use + ".";
        if (rest >= 0.005)
            line +=
                fmt::format(" {} used {:.2f} together.",
                            (shown > 0 ? "Another " : "") + plural(work.size() - shown, "function"), rest);
        if (number(d_, "unsampled") >= 0.1)
            line += fmt::format(
                " Of the total, {:.2f} was used by kworkers that no scheduler tick found running.",
                number(d_, "unsampled"));
        begin(line);
    }

    const Json& d_;
    const DiagnoseLook& look_;
    std::size_t columns_;
    std::string text_;
    std::set<unsigned> explained_;  // ids of workqueues
};

}  // namespace

std::string diagnosis_text(const nlohmann::ordered_json& diagnosis, const DiagnoseLook& look,
                           std::size_t columns) {
    return DiagnosisText(diagnosis, look, columns).all();
}

}  // namespace wq::ctl
