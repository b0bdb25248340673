// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/parts.h"

#include <fmt/format.h>
#include <syslog.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "bpf/bpf_dump.h"
#include "machine/isolation.h"
#include "machine/topology.h"

namespace wq {
namespace {

constexpr std::int64_t kNoise = 100'000'000;  // ns, because two clocks are read one after the other

// The pods are read once: the kernel makes them at boot.
KernelInfo kernel_with_pods(const Paths& paths) {
    KernelInfo out = probe_kernel(paths);
    read_pods(paths, out);
    return out;
}

HostClock host_clock() {
    return {.random = random_number,
            .clocks =
                [] {
                    return Clocks{time_suspended(), clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC)};
                },
            .now = monotonic_us,
            .wall = wall_clock,
            .minute_of_day = minute_of_day,
            .uptime = [] { return static_cast<std::uint64_t>(clock_ns(CLOCK_BOOTTIME) / 1'000'000'000); }};
}

}  // namespace

Parts::Parts(const Paths& paths, Log& log, RecordWriter& record, const OptedOut& opted_out)
    : files(paths),
      owned(paths.owned()),
      verdicts(paths.verdicts()),
      ledger(paths.ledger(), paths.pairs(), record, log),
      baseline_error(load(log)),
      counters(make_bpf_counters(paths.root.empty() ? "" : "a tree has no kernel to count in")),
      targets({files, owned, log,
               [&paths] {
                   auto now = read_cpu_files(paths);
                   // Without the file a CPU that comes later would be known after a restart.
                   if (now) (void)keep_first_cpus(paths, *now);
                   return now;
               },
               opted_out, verdicts, wall_clock, &ledger.ledger(), &book,
               [&paths] { return read_cpus_now(paths); }},
              kernel_with_pods(paths)),
      engine(targets),
      orders(engine),
      slot_writer(engine),
      experiment({targets, engine, slot_writer, book, ledger, *counters, verdicts, record, log, paths,
                  host_clock()}),
      paths_(paths),
      log_(log),
      record_(record),
      suspended_(time_suspended()),
      cpus_(cpu_state(paths)) {
    const auto paused = read_if_there(paths.paused());
    if (!paused) log.write({LOG_WARNING, Event::none, paused.error().text + "; experiments are not paused"});
    experiment.pause(paused && *paused);
    if (experiment.is_paused())
        log.write({LOG_NOTICE, Event::none, "experiments are paused; `wq-tunectl resume` ends that"});
}

std::string Parts::load(Log& log) {
    const Status loaded = owned.load();
    std::string error = loaded ? "" : loaded.error().text;
    if (!loaded) log.write({LOG_ERR, Event::baseline_broken, error + "; observing, nothing is written"});
    if (const auto done = verdicts.load(); !done)
        log.write({LOG_WARNING, Event::verdicts_broken, done.error().text});
    return error;
}

void Parts::use(Policy policy) {
    engine.set_policy(std::move(policy));
    experiment.policy_changed();
}

void Parts::changed(Udev::Change change) {
    engine.changed(change);
    if (change != Udev::Change::workqueue) experiment.cpus_changed();
}

// A suspend takes CPUs offline and online again.
void Parts::poll() {
    const std::int64_t now = time_suspended();
    if (std::abs(now - std::exchange(suspended_, now)) > kNoise) changed(Udev::Change::cpu_online);
    std::string cpus = cpu_state(paths_);
    if (cpus != cpus_) changed(Udev::Change::cpu);
    cpus_ = std::move(cpus);
}

void Parts::pause(bool paused) {
    if (paused != experiment.is_paused())
        log_.write({LOG_NOTICE, Event::none,
                    paused ? "experiments are paused by an order" : "experiments are resumed by an order"});
    experiment.pause(paused);
    const std::string path = paths_.paused();
    record_.put(
        path, [path, paused] { return paused ? replace_state_file(path, "") : remove_file(path); },
        [this](const Status& done) {
            if (!done)
                log_.write(
                    {LOG_WARNING, Event::none,
                     fmt::format("{}; the order is in force only until the daemon ends", done.error().text)});
        });
}

void Parts::hold_memory() {
    const bool hold = experiment.holds_memory();
    if (std::exchange(holds_memory_, hold) == hold) return;
    if (!hold) return let_go_of_memory();
    const auto held = wq::hold_memory();
    if (!held && !std::exchange(said_, true))
        log_.write({LOG_NOTICE, Event::none,
                    held.error().text + "; taking a candidate back may have to wait for a disk"});
}

}  // namespace wq
