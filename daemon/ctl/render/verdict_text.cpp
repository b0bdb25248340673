// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/render/verdict_text.h"

#include <fmt/format.h>

namespace wq::ctl {

std::string effect_text(const Effect& effect) {
    std::string median = fmt::format("{:+.2f}%", effect.percent);
    if (!effect.interval) return median;
    return fmt::format("{} ({:+.2f}..{:+.2f})", median, effect.interval->low, effect.interval->high);
}

std::string verdict_text(const TrialVerdict& verdict) {
    std::string outcome(name_of(verdict.outcome));
    if (verdict.reason.empty() || verdict.reason == kMaxPairsReason) return outcome;
    return fmt::format("{} ({})", outcome, verdict.reason);
}

}  // namespace wq::ctl
