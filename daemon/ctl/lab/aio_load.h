// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "ctl/lab/bench_load.h"
#include "ctl/lab/runner.h"

namespace wq::bench {

// Threads that write random blocks with O_DIRECT, each with several writes in flight by the kernel's AIO. So
// a few CPUs submit more work than they can do alone, and the scope decides which other CPUs help.
class AioLoad : public Load {
  public:
    // A signal of INTERRUPTS ends a run.
    explicit AioLoad(const ab::Interrupts& interrupts) : interrupts_(interrupts) {}
    Result<LoadFigures> run(const LoadJob& job, const std::function<void()>& at_edge) override;

  private:
    const ab::Interrupts& interrupts_;
};

}  // namespace wq::bench
