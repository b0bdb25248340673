// SPDX-License-Identifier: LGPL-2.1-or-later
#include "engine/measures.h"

#include "counters/counter_table.h"

namespace wq {

Measures measures_of(const Judging& judging, bool work_counted, const std::string& lacks,
                     const std::string& scheduler) {
    Measures out;
    for (const JudgedCounter& c : judging.counters)
        if (work_counted || !is_work_counter(c.name))
            out.counters.push_back({c.name, c.higher_is_better, judging.settings.tolerance, false});
    for (const Guard& g : judging.guards)
        if (work_counted || !is_work_counter(g.counter))
            out.counters.push_back({g.counter, counter_higher_is_better(g.counter), g.tolerance, true});
    out.lacks = lacks;
    out.scheduler = scheduler;
    return out;
}

}  // namespace wq
