// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include <cstdint>
#include <ctime>

#include "ctl/commands/exported_policy.h"
#include "ctl/machine.h"
#include "machine/hwloc_topology.h"
#include "machine/paths.h"
#include "plan/pods.h"
#include "targets/keys.h"

namespace wq::ctl {

int export_policy(const Options& options) {
    VerdictStore store(Paths{options.root}.verdicts());
    if (const auto read = store.read(); !read) return complain(read.error().text);
    const auto topology = read_topology(options.topology, options.root);
    if (!topology) return complain(topology.error().text);
    for (const std::string& warning : topology->warnings) complain(warning);
    const FactsSource facts = facts_of(options, *topology);
    const std::string fingerprint = machine_fingerprint(kernel_of(options), *topology);
    const std::int64_t now = ::time(nullptr);
    // A verdict of any age counts until a newer one replaces it, because the daemon watches a setting that
    // improved and retries one that regressed.
    const auto lessons = lessons_of({store.records(), kernel_key(kernel_of(options)), fingerprint, now});
    const std::string text = exported_policy({facts(), fingerprint, lessons, now});
    if (text.empty())
        return complain(
            "no verdict of this kernel and topology (without CPUs that are offline now) is improved or "
            "regressed; see history");
    fmt::print("{}", text);
    return kOk;
}

}  // namespace wq::ctl
