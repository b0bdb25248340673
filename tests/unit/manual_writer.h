// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/record_writer.h"

namespace wq::test {

// A RecordWriter whose disk answers when the test says so.
class ManualWriter : public RecordWriter {
  public:
    void put(const std::string& name, Work work, Done done) override {
        const auto known = std::ranges::find(jobs_, name, &Job::name);
        Job& job = known != jobs_.end() ? *known : jobs_.emplace_back(Job{name, {}, {}});
        job.work = std::move(work);
        job.done.push_back(std::move(done));
    }
    // The disk answers all that was asked so far, and what that asks for.
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
