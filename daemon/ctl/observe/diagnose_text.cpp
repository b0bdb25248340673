// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "base/text.h"
#include "ctl/observe/diagnose_command.h"
#include "ctl/observe/diagnose_json.h"
#include "ctl/observe/top_table.h"
#include "ctl/render/terminal.h"
#include "ctl/shell_word.h"

namespace wq::ctl {
namespace {

constexpr double kLeastCpu = 0.01;   // CPUs; work that uses less only counts in the summary
constexpr double kHintCpu = 0.05;    // CPUs; below this, no comparison of scopes is suggested
constexpr double kLockShare = 0.10;  // below this, the wait for the lock is not mentioned
constexpr std::size_t kMostWork = 12;
constexpr std::size_t kMostNamed = 3;  // kworkers

std::string function_of(const std::string& name) {
    return name.empty() ? "an unknown function" : printable(name);
}

std::string kind_text(const DiagnosedWorkqueue& wq) {
    if (wq.kind.empty()) return "";
    if (wq.kind == "bh") return " (in soft interrupts)";
    if (wq.kind == "per-cpu") return " (per-CPU)";
    return fmt::format(" ({})", wq.kind);
}

class Text {
  public:
    Text(const Diagnosis& diagnosis, std::size_t columns) : d_(diagnosis), out_(columns) {}

    std::string all() {
        const std::size_t shown = work();
        events();
        stuck();
        tell_isolated(out_, d_.isolated, d_.isolated_cpus);
        summary(shown);
        for (const auto& one : d_.missing) out_.note("Not seen: " + one);
        return std::move(out_).text();
    }

  private:
    std::size_t work();
    void explain(const BusyWork& work, const DiagnosedWorkqueue& wq);
    void say_kworkers(const BusyWork& work);
    void say_times(const BusyWork& work);
    void say_where(const DiagnosedWorkqueue& wq);
    void say_lock(const DiagnosedWorkqueue& wq);
    void hint(const DiagnosedWorkqueue& wq);
    void say_workers(const DiagnosedWorkqueue& wq);
    void say_events(const DiagnosedWorkqueue& wq);
    void events();
    void stuck();
    void summary(std::size_t shown);

    void begin(const std::string& line) { out_.begin(line); }
    void say(const std::string& line) { out_.say(line); }

    const Diagnosis& d_;
    Paragraphs out_;
    std::set<std::size_t> explained_;  // workqueues
};

void Text::say_kworkers(const BusyWork& work) {
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
    say(line);
}

void Text::say_times(const BusyWork& work) {
    std::vector<std::string> words;
    if (work.per_second && work.mean_ns)
        words.push_back(fmt::format("{} items/s, {} each from start to end", count_text(*work.per_second),
                                    time_text(*work.mean_ns)));
    if (work.longest_ns && *work.longest_ns >= static_cast<double>(d_.hog_ns))
        words.push_back(
            fmt::format("one item was seen to use {} of CPU without a sleep", time_text(*work.longest_ns)));
    if (!words.empty()) say(fmt::format("{}", fmt::join(words, "; ")));
}

// Says which settings do not affect the work, because of its kind.
void Text::say_where(const DiagnosedWorkqueue& wq) {
    if (wq.kind == "per-cpu")
        say("Per-CPU work runs on the CPU that it is queued on; affinity scopes and the masks of unbound "
            "workqueues do not reach it.");
    if (wq.kind == "bh")
        say("It runs in soft interrupts of the CPU that it is queued on, and no kworker shows it.");
    if (wq.kind == "ordered" || (wq.kind == "unbound" && wq.max_active == 1))
        say("One item at a time: no affinity scope makes it faster.");
}

void Text::say_lock(const DiagnosedWorkqueue& wq) {
    if (wq.lock_share.value_or(0) < kLockShare) return;
    std::string line = fmt::format("{:.0f}% of the time in the queue is waiting for pool->lock ({} per item",
                                   *wq.lock_share * 100, time_text(wq.lock_ns.value_or(0)));
    if (wq.lock_cpu.value_or(0) >= kLeastCpu) line += fmt::format(", {:.2f} CPUs spin for it", *wq.lock_cpu);
    line += ").";
    if (wq.pool_cpus > 1) line += fmt::format(" Up to {} CPUs share a pool", wq.pool_cpus);
    if (wq.pool_cpus > 1 && wq.pool_shared > 0) line += ", and " + plural(wq.pool_shared, "other workqueue");
    if (wq.pool_cpus > 1) line += ".";
    say(line);
}

// Suggests a comparison, if another scope could change something.
void Text::hint(const DiagnosedWorkqueue& wq) {
    if (!wq.scope || wq.target.empty() || wq.cpu < kHintCpu) return;
    std::vector<std::string_view> arms{name_of(*wq.scope)};
    const bool contended = wq.lock_share ? *wq.lock_share >= kLockShare : wq.pool_cpus > 1;
    if (contended && !wq.finer.empty()) {
        for (const Scope scope : wq.finer) arms.push_back(name_of(scope));
        say(wq.lock_share ? "A finer scope may shorten this; a comparison under your load tells:"
                          : "Waiting for pool->lock is not seen here; a comparison under your load tells "
                            "whether a finer scope helps:");
    } else if (!wq.coarser.empty()) {
        for (const Scope scope : wq.coarser) arms.push_back(name_of(scope));
        say(fmt::format(
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
void Text::say_workers(const DiagnosedWorkqueue& wq) {
    const std::uint64_t items = wq.items.value_or(0);
    const auto often = [&](const std::optional<std::uint64_t>& count) {
        return count.value_or(0) > 0 && *count * 10 >= items;
    };
    const auto per_second = [this](std::uint64_t count) {
        return count_text(static_cast<double>(count) / d_.seconds);
    };
    if (often(wq.cm_wakeups))
        say(fmt::format(
            "Its items sleep or hold the CPU: {} times a second another kworker was woken to go on "
            "in their place.",
            per_second(*wq.cm_wakeups)));
    if (often(wq.repatriated))
        say(
            fmt::format("{} times a second a kworker was brought back into its pool's CPUs, from which the "
                        "scheduler had moved it.",
                        per_second(*wq.repatriated)));
}

void Text::say_events(const DiagnosedWorkqueue& wq) {
    if (wq.cpu_hogs.value_or(0) > 0)
        say(
            fmt::format("{} held a CPU for more than {}. The kernel may log \"hogged CPU ... consider "
                        "switching to WQ_UNBOUND\": that is for the authors of the driver, since other work "
                        "of that CPU had to wait. No setting changes it.",
                        *wq.cpu_hogs == 1 ? "1 item" : fmt::format("{} items", *wq.cpu_hogs),
                        time_text(static_cast<double>(d_.hog_ns))));
    if (wq.mayday.value_or(0) > 0 || wq.rescued.value_or(0) > 0)
        say(
            fmt::format("Its pool could not get another kworker in time and called the rescuer ({} calls, {} "
                        "items rescued): memory is short, or forking is slow. While that lasts one thread "
                        "does all of this work.",
                        wq.mayday.value_or(0), wq.rescued.value_or(0)));
}

void Text::explain(const BusyWork& work, const DiagnosedWorkqueue& wq) {
    begin(work.function.empty()
              ? fmt::format("{:.2f} CPUs in work of {}{}", work.cpu, printable(wq.name), kind_text(wq))
              : fmt::format("{:.2f} CPUs in {} of {}{}", work.cpu, function_of(work.function),
                            printable(wq.name), kind_text(wq)));
    say_kworkers(work);
    say_times(work);
    if (!explained_.insert(work.workqueue).second) return;
    say_where(wq);
    say_lock(wq);
    hint(wq);
    say_workers(wq);
    say_events(wq);
}

std::size_t Text::work() {
    std::size_t shown = 0;
    for (const auto& work : d_.work) {
        if (work.cpu < kLeastCpu || shown == kMostWork) break;
        explain(work, d_.workqueues.at(work.workqueue));
        shown++;
    }
    return shown;
}

// Prints the events of workqueues whose work was not explained, because it used little CPU time.
void Text::events() {
    for (std::size_t i = 0; i < d_.workqueues.size(); i++) {
        const auto& wq = d_.workqueues[i];
        if (explained_.contains(i) || !wq.has_events()) continue;
        begin(printable(wq.name) + kind_text(wq));
        say_events(wq);
    }
}

void Text::stuck() {
    for (const auto& one : d_.stuck) {
        begin(fmt::format("{} did not run at all: it sleeps in the middle of an item{}", printable(one.name),
                          one.work.empty() ? "" : " of " + printable(one.work)));
        say(fmt::format(
            "It waits{}. It uses no CPU but counts in the load average. `cat /proc/PID/stack` shows what "
            "it waits for.",
            one.sleeps_in.empty() ? "" : " in " + printable(one.sleeps_in)));
    }
}

void Text::summary(std::size_t shown) {
    const std::string use =
        fmt::format("kworkers used {:.2f} of {} in {:.1f} s", d_.cpu, plural(d_.online, "CPU"), d_.seconds);
    if (out_.empty()) {
        begin("Nothing keeps kworkers busy: " + use + ".");
        return;
    }
    double rest = 0;
    for (std::size_t i = shown; i < d_.work.size(); i++) rest += d_.work[i].cpu;
    std::string line = "All " + use + ".";
    if (rest >= 0.005)
        line += fmt::format(" {} used {:.2f} together.",
                            (shown > 0 ? "Another " : "") + plural(d_.work.size() - shown, "function"), rest);
    if (d_.unsampled >= 0.1)
        line += fmt::format(
            " Of the total, {:.2f} was used by kworkers that no scheduler tick found running.", d_.unsampled);
    begin(line);
}

}  // namespace

std::string diagnosis_text(const Diagnosis& diagnosis, std::size_t columns) {
    return Text(diagnosis, columns).all();
}

}  // namespace wq::ctl
