// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cerrno>
#include <utility>

#include "bpf/work_counters.h"

namespace wq {

// Used if work cannot be counted. The calls return the reason as an error.
class NoCounters : public WorkCounters {
  public:
    explicit NoCounters(std::string why) : why_(std::move(why)) {}
    Status attach(const std::vector<std::string>& /*targets*/, bool /*tails*/) override { return absent(); }
    void sample(unsigned /*t*/, unsigned /*n*/) override {}
    Status begin(unsigned /*t*/, unsigned /*slot*/) override { return absent(); }
    void pause(unsigned /*t*/) override {}
    Result<WorkCount> read(unsigned /*t*/, unsigned /*slot*/) override { return absent(); }
    void detach() override {}
    void watch(const CpuSet& /*cpus*/) override {}
    [[nodiscard]] Watched watched() override { return {}; }
    Result<std::vector<StartedWork>> started_on(const CpuSet& /*cpus*/) override { return absent(); }
    Result<std::map<std::string, Traffic>> traffic() override { return absent(); }
    Result<Traffic> traffic_of(unsigned /*t*/) override { return absent(); }
    [[nodiscard]] std::string limits() const override { return why_; }

  private:
    [[nodiscard]] tl::unexpected<Error> absent() const { return fail(why_, EOPNOTSUPP); }

    std::string why_;
};

}  // namespace wq
