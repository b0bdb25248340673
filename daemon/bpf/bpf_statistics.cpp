// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/bpf_statistics.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>

namespace wq {
namespace {

class StatisticsMonitor : public WorkMonitor {
  public:
    Status attach(const std::vector<std::string>& names, bool /*functions*/) override {
        names_ = names;
        auto walk = WorkqueueWalk::load();
        if (!walk) return tl::unexpected(walk.error());
        walk_.emplace(std::move(*walk));
        return {};
    }

    Result<WorkSample> sample() override {
        if (!walk_) return fail("nothing is attached", ENOTCONN);
        auto there = walk_->list();
        if (!there) return tl::unexpected(there.error());
        WorkSample out;
        out.workqueues = std::move(*there);
        if (!names_.empty())
            std::erase_if(out.workqueues, [this](const KernelWorkqueue& one) {
                return std::ranges::find(names_, one.name) == names_.end();
            });
        out.seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
        return out;
    }

    [[nodiscard]] std::string limits() const override { return "waits and functions (no probes)"; }

  private:
    std::vector<std::string> names_;
    std::optional<WorkqueueWalk> walk_;
};

}  // namespace

std::unique_ptr<WorkMonitor> make_statistics_monitor() {
    return std::make_unique<StatisticsMonitor>();
}

}  // namespace wq
