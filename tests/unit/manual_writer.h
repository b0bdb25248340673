// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "state/state_file.h"

namespace wq::test {

// A RecordWriter whose disk answers only when the test calls answer().
class ManualWriter : public RecordWriter {
  public:
    void put(const std::string& name, Work work, Done done) override {
        const auto known = std::ranges::find(jobs_, name, &Job::name);
        Job& job = known != jobs_.end() ? *known : jobs_.emplace_back(Job{name, {}, {}});
        job.work = std::move(work);
        job.done.push_back(std::move(done));
    }
    // Does all work put so far, and work that is put meanwhile.
    void answer() {
        while (!jobs_.empty()) {
            Job job = std::move(jobs_.front());
            jobs_.pop_front();
            const Status status = job.work();
            for (const Done& done : job.done) done(status);
        }
    }
    [[nodiscard]] std::size_t waiting() const { return jobs_.size(); }

  private:
    struct Job {
        std::string name;
        Work work;
        std::vector<Done> done;
    };
    std::deque<Job> jobs_;
};

}  // namespace wq::test
