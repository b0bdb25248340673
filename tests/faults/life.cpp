// SPDX-License-Identifier: LGPL-2.1-or-later
#include "life.h"

#include <cstdlib>

namespace wq::faults {

void live(const Scenario& scenario, Host& host, const std::function<void(const Step&)>& after) {
    for (const Step& step : scenario.steps) {
        if (!step.behind) host.edge.watch();
        step.run(host);
        host.edge.rest();
        if (after) after(step);
    }
}

bool is_long() {
    const char* wish = std::getenv("WQ_TUNED_FAULTS");
    return wish != nullptr && std::string(wish) == "all";
}

}  // namespace wq::faults
