// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "evidence/verdicts.h"
#include "machine/paths.h"
#include "service/status.h"

namespace wq::ctl {
int history(const Options& options, const std::string& target) {
    VerdictStore store(Paths{options.root}.verdicts());
    if (const auto read = store.read(); !read) return complain(read.error().text);
    std::vector<VerdictRecord> records = store.records();
    if (!target.empty()) std::erase_if(records, [&](const VerdictRecord& r) { return r.target != target; });
    if (options.json) {
        nlohmann::json verdicts = nlohmann::json::array();
        for (const VerdictRecord& record : records) verdicts.push_back(to_json(record));
        fmt::print("{}\n", dump_json({{"verdicts", std::move(verdicts)}}));
        return kOk;
    }
    if (records.empty()) {
        fmt::print("No comparison {}has a verdict on this machine yet.\n",
                   target.empty() ? "" : "of " + target + " ");
        return kOk;
    }
    Table table({"TIME", "TARGET", "COMPARED", "VERDICT", "PAIRS", "EFFECT"});
    for (const VerdictRecord& r : records)
        table.add({local_time(r.time), r.target, r.key.reference + " -> " + r.key.candidate,
                   r.judged ? std::string(name_of(r.outcome)) : "cut off", std::to_string(r.standing.pairs),
                   effect_text(r.standing) + (r.reason.empty() ? "" : "; " + r.reason) +
                       (r.contention ? "; " + text_of(*r.contention) : "")});
    table.print();
    print_text(
        "Effects describe the pairs up to the verdict, which came when there was enough evidence, and so "
        "tend "
        "to be overstated.");
    return kOk;
}

}  // namespace wq::ctl
