// SPDX-License-Identifier: LGPL-2.1-or-later
// The findings of `diagnose` in plain words, and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "ctl/json_values.h"
#include "ctl/observe/diagnosis.h"
#include "ctl/render/terminal.h"
#include "ctl/shell_word.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLeastCpu = 0.01;     // CPUs; work that uses less only counts in the summary
constexpr double kHintCpu = 0.05;      // CPUs; below this, no comparison of scopes is suggested
constexpr double kLockShare = 0.10;    // below this, the wait for the lock is not mentioned
constexpr double kContention = 0.01;   // of the latency; below this, no scope can gain much by the lock
constexpr std::size_t kMostWork = 12;  // functions
constexpr std::size_t kMostOrigins = 3;
constexpr std::size_t kMostNamed = 3;  // kworkers

std::string kind_text(const std::string& kind) {
    if (kind.empty()) return "";
    if (kind == "bh") return " (in soft interrupts)";
    return fmt::format(" ({})", kind == "per-cpu" ? "per-CPU" : kind);
}

std::string head_of(const IsolatedFinding& one, const CpuSet& isolated) {
    std::string of = " in a soft interrupt";
    if (!one.workqueue.empty()) of = " of " + printable(one.workqueue);
    of += kind_text(one.kind);
    return fmt::format("{} of {}{} on isolated CPUs {}", plural(one.items, "item"),
                       one.function.empty() ? "an unknown function" : printable(one.function), of,
                       isolated.list());
}

std::string text_of(const WorkOrigin& origin) {
    return origin.timer ? fmt::format("{} queued by a timer on CPU {}", origin.items, origin.cpu)
                        : fmt::format("{} queued on CPU {}, where {} ran", origin.items, origin.cpu,
                                      printable(origin.task));
}

class Text {
  public:
    Text(const Diagnosis& diagnosis, std::size_t columns) : d_(diagnosis), out_(columns) {}

    std::string all() {
        const std::size_t shown = work();
        events();
        stuck();
        bypassed();
        tell_isolated(out_, d_.isolated, d_.isolated_cpus);
        summary(shown);
        for (const auto& one : d_.missing) out_.note("Not seen: " + one);
        return std::move(out_).text();
    }

  private:
    void say_kworkers(const BusyWork& work) {
        if (work.kworkers.empty()) return;
        std::vector<std::string> names;
        CpuSet cpus;
        for (const auto& one : work.kworkers) {
            cpus |= one.cpus;
            if (names.size() < kMostNamed)
                names.push_back(fmt::format("{} {:.2f}", printable(one.name), one.cpu));
        }
        std::string line = fmt::format("{}", fmt::join(names, ", "));
        if (work.kworkers.size() > names.size())
            line += fmt::format(" and {} more", work.kworkers.size() - names.size());
        if (!cpus.empty())
            line += fmt::format(", allowed on CPU{} {}", cpus.count() == 1 ? "" : "s", cpus.list());
        out_.say(line);
    }

    void say_times(const BusyWork& work) {
        std::vector<std::string> words;
        if (work.per_second && work.mean_ns)
            words.push_back(fmt::format("{} items/s, {} each from start to end", count_text(*work.per_second),
                                        time_text(*work.mean_ns)));
        if (work.longest_ns && *work.longest_ns >= static_cast<double>(d_.hog_ns))
            words.push_back(fmt::format("one item was seen to use {} of CPU without a sleep",
                                        time_text(*work.longest_ns)));
        if (!words.empty()) out_.say(fmt::format("{}", fmt::join(words, "; ")));
    }

    // Says which settings do not affect the work, because of its kind.
    void say_where(const DiagnosedWorkqueue& wq) {
        if (wq.kind == "per-cpu")
            out_.say(
                "Per-CPU work runs on the CPU that it is queued on; affinity scopes and the masks of unbound "
                "workqueues do not reach it.");
        if (wq.kind == "bh")
            out_.say("It runs in soft interrupts of the CPU that it is queued on, and no kworker shows it.");
        if (wq.kind == "ordered" || (wq.kind == "unbound" && wq.max_active == 1))
            out_.say("One item at a time: no affinity scope makes it faster.");
    }

    void say_lock(const DiagnosedWorkqueue& wq) {
        if (wq.lock_share.value_or(0) < kLockShare) return;
        std::string line =
            fmt::format("{:.0f}% of the time in the queue is waiting for pool->lock ({} per item",
                        *wq.lock_share * 100, time_text(wq.lock_ns.value_or(0)));
        if (wq.lock_cpu.value_or(0) >= kLeastCpu)
            line += fmt::format(", {:.2f} CPUs spin for it", *wq.lock_cpu);
        line += ").";
        if (wq.pool_cpus > 1) line += fmt::format(" Up to {} CPUs share a pool", wq.pool_cpus);
        if (wq.pool_cpus > 1 && wq.pool_shared > 0)
            line += ", and " + plural(wq.pool_shared, "other workqueue");
        if (wq.pool_cpus > 1) line += ".";
        out_.say(line);
    }

    void say_enqueue(const DiagnosedWorkqueue& wq) {
        if (!wq.enqueue) return;
        out_.say(fmt::format("queue_work() takes its callers {} (p50), {} (p90), {} (p95), {} (p99).",
                             time_text(wq.enqueue->p50), time_text(wq.enqueue->p90),
                             time_text(wq.enqueue->p95), time_text(wq.enqueue->p99)));
    }

    void say_contention(const DiagnosedWorkqueue& wq) {
        if (wq.kind != "unbound" || !wq.lock_ns) return;
        if (!wq.contention_ns)
            return out_.say("Contention is not known: no other workqueue had enough items to compare with.");
        const std::string line =
            fmt::format("Contention: {} per item above the lowest wait for pool->lock seen here, ",
                        time_text(*wq.contention_ns));
        if (!wq.contention_share) return out_.say(line + "a share of its latency that is not known.");
        if (*wq.contention_share < kContention)
            return out_.say(line + "under 1% of its latency: a finer scope can hardly gain by the lock.");
        out_.say(line + fmt::format("{:.0f}% of its latency.", *wq.contention_share * 100));
    }

    // Suggests a comparison, if another scope could change something.
    void hint(const DiagnosedWorkqueue& wq) {
        if (!wq.scope || wq.target.empty() || wq.cpu < kHintCpu) return;
        std::vector<std::string_view> arms{name_of(*wq.scope)};
        const bool contended =
            wq.lock_share ? *wq.lock_share >= kLockShare && wq.contention_share.value_or(1) >= kContention
                          : wq.pool_cpus > 1;
        if (contended && !wq.finer.empty()) {
            for (const Scope scope : wq.finer) arms.push_back(name_of(scope));
            out_.say(wq.lock_share
                         ? "A finer scope may shorten this; a comparison under your load tells:"
                         : "Waiting for pool->lock is not seen here; a comparison under your load tells "
                           "whether a finer scope helps:");
        } else if (!wq.coarser.empty()) {
            for (const Scope scope : wq.coarser) arms.push_back(name_of(scope));
            out_.say(fmt::format(
                "Each core has a pool of its own, since `{}` is one core here (as in virtual machines "
                "of one-core sockets). A coarser scope may spread the work better; a comparison "
                "under your load tells:",
                name_of(*wq.scope)));
        } else {
            return;
        }
        out_.command(fmt::format("wq-tunectl ab --target {} --arms {} -- COMMAND",
                                 shell_word(printable(wq.target)), fmt::join(arms, ",")));
    }

    // Explains counts that show why a workqueue is slower than necessary.
    void say_workers(const DiagnosedWorkqueue& wq) {
        const std::uint64_t items = wq.items.value_or(0);
        const auto often = [&](const std::optional<std::uint64_t>& count) {
            return count.value_or(0) > 0 && *count * 10 >= items;
        };
        const auto per_second = [this](std::uint64_t count) {
            return count_text(static_cast<double>(count) / d_.seconds);
        };
        if (often(wq.cm_wakeups))
            out_.say(fmt::format(
                "Its items sleep or hold the CPU: {} times a second another kworker was woken to go on "
                "in their place.",
                per_second(*wq.cm_wakeups)));
        if (often(wq.repatriated))
            out_.say(fmt::format(
                "{} times a second a kworker was brought back into its pool's CPUs, from which the "
                "scheduler had moved it.",
                per_second(*wq.repatriated)));
    }

    void say_events(const DiagnosedWorkqueue& wq) {
        if (wq.cpu_hogs.value_or(0) > 0)
            out_.say(fmt::format(
                "{} held a CPU for more than {}. The kernel may log \"hogged CPU ... consider "
                "switching to WQ_UNBOUND\": that is for the authors of the driver, since other work "
                "of that CPU had to wait. No setting changes it.",
                *wq.cpu_hogs == 1 ? "1 item" : fmt::format("{} items", *wq.cpu_hogs),
                time_text(static_cast<double>(d_.hog_ns))));
        if (wq.mayday.value_or(0) > 0 || wq.rescued.value_or(0) > 0)
            out_.say(fmt::format(
                "Its pool could not get another kworker in time and called the rescuer ({} calls, {} "
                "items rescued): memory is short, or forking is slow. While that lasts one thread "
                "does all of this work.",
                wq.mayday.value_or(0), wq.rescued.value_or(0)));
        if (wq.stalled.value_or(0) > 0)
            out_.say(
                fmt::format("{} in flight, and none began or ended meanwhile. If no kworker takes what is "
                            "queued for 30 s "
                            "(workqueue.watchdog_thresh), the kernel logs \"BUG: workqueue lockup - pool "
                            "...\" and \"Showing "
                            "busy workqueues and worker pools\", with all items; `echo t "
                            ">/proc/sysrq-trigger` prints these "
                            "now.",
                            *wq.stalled == 1 ? "1 item is" : fmt::format("{} items are", *wq.stalled)));
    }

    // Work for which a scope is often blamed, although none helps.
    void say_known(const BusyWork& work, const DiagnosedWorkqueue& wq) {
        static constexpr struct {
            std::string_view workqueue;
            const char* text;
        } kKnown[] = {
            {"inode_switch_wbs",
             "Inodes move to another cgroup's writeback, many at once when a cgroup ends that owned them "
             "(fs/fs-writeback.c). This workqueue is per-CPU, and its items wait for the locks of both lists "
             "(wb->list_lock), so a scope does not help. Fewer short-lived cgroups that write files do."},
        };
        if (work.cpu < kHintCpu) return;
        for (const auto& known : kKnown)
            if (wq.name == known.workqueue) out_.say(known.text);
    }

    void explain(const BusyWork& work, const DiagnosedWorkqueue& wq) {
        out_.begin(fmt::format("{:.2f} CPUs in {} of {}{}", work.cpu,
                               work.function.empty() ? "work" : printable(work.function), printable(wq.name),
                               kind_text(wq.kind)));
        say_kworkers(work);
        say_times(work);
        if (!explained_.insert(work.workqueue).second) return;
        say_where(wq);
        say_enqueue(wq);
        say_known(work, wq);
        say_lock(wq);
        say_contention(wq);
        hint(wq);
        say_workers(wq);
        say_events(wq);
    }

    std::size_t work() {
        std::size_t shown = 0;
        for (const auto& work : d_.work) {
            if (work.cpu < kLeastCpu || shown == kMostWork) break;
            explain(work, d_.workqueues.at(work.workqueue));
            shown++;
        }
        return shown;
    }

    // Prints the events of workqueues whose work was not explained, because it used little CPU time.
    void events() {
        for (std::size_t i = 0; i < d_.workqueues.size(); i++) {
            const auto& wq = d_.workqueues[i];
            if (explained_.contains(i) || !wq.has_events()) continue;
            out_.begin(printable(wq.name) + kind_text(wq.kind));
            say_events(wq);
        }
    }

    // Of all mappings, since a workqueue that is bypassed uses little CPU time.
    void bypassed() {
        for (const auto& [workqueue, bypass] : d_.bypassed) {
            out_.begin(printable(workqueue));
            out_.say("In its dm-crypt mapping " + bypass.text() + ".");
        }
    }

    void stuck() {
        for (const auto& one : d_.stuck) {
            out_.begin(fmt::format("{} did not run at all: it sleeps in the middle of an item{}",
                                   printable(one.name),
                                   one.work.empty() ? "" : " of " + printable(one.work)));
            out_.say(fmt::format(
                "It waits{}. It uses no CPU but counts in the load average. `cat /proc/PID/stack` shows what "
                "it waits for.",
                one.sleeps_in.empty() ? "" : " in " + printable(one.sleeps_in)));
        }
    }

    void summary(std::size_t shown) {
        const std::string use = fmt::format("kworkers used {:.2f} of {} in {:.1f} s", d_.cpu,
                                            plural(d_.online, "CPU"), d_.seconds);
        if (out_.empty()) {
            out_.begin("Nothing keeps kworkers busy: " + use + ".");
            return;
        }
        double rest = 0;
        for (std::size_t i = shown; i < d_.work.size(); i++) rest += d_.work[i].cpu;
        std::string line = "All " + use + ".";
        if (rest >= 0.005)
            line +=
                fmt::format(" {} used {:.2f} together.",
                            (shown > 0 ? "Another " : "") + plural(d_.work.size() - shown, "function"), rest);
        if (d_.unsampled >= 0.1)
            line += fmt::format(
                " Of the total, {:.2f} was used by kworkers that no scheduler tick found running.",
                d_.unsampled);
        out_.begin(line);
    }

    const Diagnosis& d_;
    Paragraphs out_;
    std::set<std::size_t> explained_;  // workqueues
};

Json number_or_null(std::size_t number) {
    return number == 0 ? Json(nullptr) : Json(number);
}
Json words_of(const std::vector<Scope>& scopes) {
    Json out = Json::array();
    for (const Scope scope : scopes) out.push_back(name_of(scope));
    return out;
}

Json work_json(const BusyWork& work, const DiagnosedWorkqueue& wq) {
    Json kworkers = Json::array();
    for (const auto& one : work.kworkers)
        kworkers.push_back(
            {{"name", one.name}, {"cpu", one.cpu}, {"allowed", word_or_null(one.cpus.list())}});
    return {{"cpu", work.cpu},
            {"function", word_or_null(work.function)},
            {"workqueue", wq.name},
            {"id", wq.id},
            {"kind", word_or_null(wq.kind)},
            {"kworkers", kworkers},
            {"per_second", or_null(work.per_second)},
            {"mean_ns", or_null(work.mean_ns)},
            {"longest_ns", or_null(work.longest_ns)}};
}

Json enqueue_json(const std::optional<EnqueueTimes>& times) {
    if (!times) return nullptr;
    return {{"p50", times->p50}, {"p90", times->p90}, {"p95", times->p95}, {"p99", times->p99}};
}

Json workqueue_json(const DiagnosedWorkqueue& wq) {
    return {{"name", wq.name},
            {"id", wq.id},
            {"kind", word_or_null(wq.kind)},
            {"cpu", wq.cpu},
            {"max_active", or_null(wq.max_active)},
            {"scope", name_or_null(wq.scope)},
            {"finer", words_of(wq.finer)},
            {"coarser", words_of(wq.coarser)},
            {"target", word_or_null(wq.target)},
            {"pool_cpus", number_or_null(wq.pool_cpus)},
            {"pool_shared", wq.pool_cpus == 0 ? Json(nullptr) : Json(wq.pool_shared)},
            {"lock_share", or_null(wq.lock_share)},
            {"lock_ns", or_null(wq.lock_ns)},
            {"lock_cpu", or_null(wq.lock_cpu)},
            {"contention_ns", or_null(wq.contention_ns)},
            {"contention_share", or_null(wq.contention_share)},
            {"enqueue_ns", enqueue_json(wq.enqueue)},
            {"items", or_null(wq.items)},
            {"cpu_hogs", or_null(wq.cpu_hogs)},
            {"cm_wakeups", or_null(wq.cm_wakeups)},
            {"repatriated", or_null(wq.repatriated)},
            {"mayday", or_null(wq.mayday)},
            {"rescued", or_null(wq.rescued)},
            {"stalled", or_null(wq.stalled)}};
}

}  // namespace

std::vector<IsolatedFinding> isolated_findings(const std::vector<IsolatedWork>& work,
                                               const std::map<std::uint64_t, KernelWorkqueue>& workqueues) {
    std::vector<IsolatedFinding> out;
    for (const auto& one : work) {
        if (one.items == 0) continue;
        const auto at = workqueues.find(one.workqueue);
        const bool known = one.workqueue != 0 && at != workqueues.end();
        out.push_back({known                ? at->second.name
                       : one.workqueue != 0 ? "an unknown workqueue"
                                            : "",
                       !known               ? ""
                       : at->second.unbound ? "unbound"
                                            : "per-cpu",
                       one.function, one.items, one.origins});
    }
    std::ranges::stable_sort(out, std::ranges::greater{}, &IsolatedFinding::items);
    return out;
}

void tell_isolated(Paragraphs& out, const std::vector<IsolatedFinding>& findings, const CpuSet& isolated) {
    for (std::size_t i = 0; i < std::min(findings.size(), kMostWork); i++) {
        const IsolatedFinding& one = findings[i];
        out.begin(head_of(one, isolated));
        for (std::size_t k = 0; k < std::min(one.origins.size(), kMostOrigins); k++)
            out.say(text_of(one.origins[k]));
        if (one.origins.size() > kMostOrigins)
            out.say(fmt::format("and from {} more", plural(one.origins.size() - kMostOrigins, "place")));
        if (one.kind == "unbound")
            out.say(
                "The cpumask of this workqueue and the mask of all unbound workqueues decide where it runs.");
    }
    if (findings.size() > kMostWork)
        out.say(fmt::format("and {} more", plural(findings.size() - kMostWork, "function")));
}

Json isolated_json(const std::vector<IsolatedFinding>& findings) {
    Json out = Json::array();
    for (const auto& one : findings) {
        Json origins = Json::array();
        for (const auto& origin : one.origins)
            origins.push_back({{"timer", origin.timer},
                               {"cpu", origin.cpu},
                               {"task", word_or_null(origin.task)},
                               {"items", origin.items}});
        out.push_back({{"workqueue", word_or_null(one.workqueue)},
                       {"kind", word_or_null(one.kind)},
                       {"function", one.function},
                       {"items", one.items},
                       {"origins", std::move(origins)}});
    }
    return out;
}

void Paragraphs::add(const std::string& text, std::size_t indent) {
    const std::size_t width = columns_ > indent + 20 ? columns_ - indent : 20;
    for (const auto& line : wrap(text, width)) text_ += std::string(indent, ' ') + line + '\n';
}

std::string diagnosis_text(const Diagnosis& diagnosis, std::size_t columns) {
    return Text(diagnosis, columns).all();
}

Json diagnosis_json(const Diagnosis& diagnosis) {
    Json work = Json::array(), workqueues = Json::array(), stuck = Json::array();
    for (const auto& one : diagnosis.work)
        work.push_back(work_json(one, diagnosis.workqueues.at(one.workqueue)));
    for (const auto& one : diagnosis.workqueues) workqueues.push_back(workqueue_json(one));
    for (const auto& one : diagnosis.stuck)
        stuck.push_back({{"name", one.name},
                         {"work", word_or_null(one.work)},
                         {"sleeps_in", word_or_null(one.sleeps_in)}});
    Json bypassed = Json::array();
    for (const auto& [workqueue, bypass] : diagnosis.bypassed)
        bypassed.push_back({{"workqueue", workqueue}, {"options", bypass.options()}});
    const Json isolated = isolated_json(diagnosis.isolated);
    return {{"seconds", diagnosis.seconds},
            {"online", diagnosis.online},
            {"cpu", diagnosis.cpu},
            {"unsampled", diagnosis.unsampled},
            {"attributed", diagnosis.by},
            {"work", work},
            {"workqueues", workqueues},
            {"stuck", stuck},
            {"bypassed", bypassed},
            {"isolated", {{"cpus", diagnosis.isolated_cpus.list()}, {"work", isolated}}},
            {"missing", diagnosis.missing}};
}

}  // namespace wq::ctl
