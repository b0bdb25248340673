// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/host_policy.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>

#include "machine/hwloc_topology.h"
#include "machine/kernel_info.h"
#include "machine/host_facts.h"
#include "machine/isolation.h"

namespace wq {
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
