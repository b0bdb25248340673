// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/watches.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <syslog.h>
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "machine/cpu_files.h"
#include "machine/host_facts.h"
#include "machine/hwloc_topology.h"
#include "machine/isolation.h"
#include "machine/kernel_info.h"

namespace wq {
namespace {

constexpr std::int64_t kNoise = 100'000'000;  // ns, because two clocks are read one after the other

}  // namespace

void CpuWatch::start() {
    suspended_ = time_suspended();
    cpus_ = cpu_state(paths_);
}

bool CpuWatch::was_suspended() {
    const std::int64_t now = time_suspended();
    if (std::abs(now - suspended_) <= kNoise) return false;
    suspended_ = now;
    return true;
}

bool CpuWatch::changed() {
    std::string now = cpu_state(paths_);
    const bool other = now != cpus_;
    cpus_ = std::move(now);
    return other;
}

HostnameWatch::~HostnameWatch() {
    ::sd_event_source_disable_unref(source_);
}

void HostnameWatch::start(sd_event* event, std::function<void()> woken) {
    woken_ = std::move(woken);
    file_ = Fd(::open(paths_.hostname().c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (file_) (void)::sd_event_add_io(event, &source_, file_.get(), 0, on_change, this);
    name_ = read_hostname(paths_);
}

std::optional<std::string> HostnameWatch::changed() {
    std::string now = read_hostname(paths_);
    if (now == std::exchange(name_, now)) return std::nullopt;
    return now;
}

int HostnameWatch::on_change(sd_event_source* /*source*/, int /*fd*/, std::uint32_t /*events*/, void* self) {
    static_cast<HostnameWatch*>(self)->woken_();
    return 0;
}

void Pause::load() {
    const auto file = read_if_there(path_);
    paused_ = file && *file;
    if (!file) log_.write({LOG_WARNING, Event::none, file.error().text + "; experiments are not paused"});
    if (paused_)
        log_.write({LOG_NOTICE, Event::none, "experiments are paused; `wq-tunectl resume` ends that"});
}

void Pause::set(bool paused) {
    if (paused != paused_)
        log_.write({LOG_NOTICE, Event::none,
                    paused ? "experiments are paused by an order" : "experiments are resumed by an order"});
    paused_ = paused;
    record_.put(
        path_, [path = path_, paused] { return paused ? replace_state_file(path, "") : remove_file(path); },
        [this](const Status& done) {
            if (!done)
                log_.write(
                    {LOG_WARNING, Event::none,
                     fmt::format("{}; the order is in force only until the daemon ends", done.error().text)});
        });
}

namespace {

constexpr std::size_t kMostErrors = 10;  // in the journal

}  // namespace

tl::expected<Policy, PolicyErrors> load_host_policy(const std::string& root,
                                                    const std::optional<std::string>& config) {
    return load_installed_policy(root, config, [&] {
        const Paths paths{root};
        HostFacts facts = read_host_facts(paths, read_topology("live", root));
        facts.features = [paths] { return read_features(paths, probe_kernel(paths)); };
        facts.cpus = [paths] { return read_boot_cpus(paths); };
        return facts;
    });
}

void log_policy_errors(Log& log, const PolicyErrors& errors) {
    for (std::size_t i = 0; i < std::min(errors.size(), kMostErrors); i++)
        log.write({LOG_ERR, Event::policy_broken, errors[i].text(), {{"WQ_POLICY_FILE", errors[i].file}}});
    if (errors.size() > kMostErrors)
        log.write({LOG_ERR, Event::none,
                   fmt::format("and {} more; wq-tunectl check shows them", errors.size() - kMostErrors)});
}

}  // namespace wq
