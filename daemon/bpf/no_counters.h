// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cerrno>
#include <cstdint>
#include <utility>

#include "bpf/work_counters.h"

namespace wq {

// Where work cannot be counted: every call says why.
class NoCounters : public WorkCounters {
  public:
    explicit NoCounters(std::string why) : why_(std::move(why)) {}
    Status attach(const std::string& /*target*/) override { return fail(why_, EOPNOTSUPP); }
    Status begin(unsigned /*slot*/) override { return fail(why_, EOPNOTSUPP); }
    void pause() override {}
    Result<WorkCount> read(unsigned /*slot*/) override { return fail(why_, EOPNOTSUPP); }
    void detach() override {}
    void watch(const CpuSet& /*cpus*/) override {}
    [[nodiscard]] Watched watched() override { return {}; }
    Result<std::map<std::string, std::uint64_t>> traffic() override { return fail(why_, EOPNOTSUPP); }
    [[nodiscard]] std::string limits() const override { return why_; }

  private:
    std::string why_;
};

}  // namespace wq
