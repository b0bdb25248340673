// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <utility>

#include "bpf/work_monitor.h"

namespace wq {

// Returns the sample that the test sets.
class FakeProfile : public WorkProfile {
  public:
    Status attach(const CpuSet& isolated) override {
        isolated_ = isolated;
        return attached_;
    }
    Result<ProfileSample> read() override { return sample_; }
    [[nodiscard]] std::string limits() const override { return limits_; }

    Result<ProfileSample> sample_ = ProfileSample{};
    Status attached_;
    std::string limits_;
    CpuSet isolated_;
};

}  // namespace wq
