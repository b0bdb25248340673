// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bpf/work_counters.h"

namespace wq::test {

// Returns the counts that the test sets, and records the calls.
class FakeCounters : public WorkCounters {
  public:
    // The counts of window SLOT of a target.
    std::function<WorkCount(const std::string& target, unsigned slot)> count = [](const auto&, unsigned) {
        return WorkCount{
            .items = 10'000, .latency = 1000, .timed = 10'000, .throughput = 10'000, .cpu = 5000};
    };
    std::map<std::string, std::uint64_t> items;  // traffic() returns this,
    std::map<std::string, std::uint64_t> more;   // after adding these to it
    // Items of an attached target completed so far.
    std::function<std::uint64_t(const std::string& target)> completed = [](const auto&) { return 0; };
    std::function<void()> on_attach = [] {};  // called in attach(): changes while BPF is loaded
    std::function<void(const std::string& target, unsigned slot)> on_begin = [](const auto&, unsigned) {};
    std::optional<Error> attach_error;
    std::optional<Error> traffic_error;
    std::optional<Error> read_error;
    std::string lacks;  // limits() returns this
    // health() calls this.
    std::function<Result<std::vector<KernelWorkqueue>>()> healthy = [] {
        return std::vector<KernelWorkqueue>{};
    };
    std::vector<std::string> asked;
    std::vector<std::string> targets;
    bool attached = false;
    Wanted wanted;

    Status attach(const std::vector<std::string>& names, Wanted what) override {
        std::string text = "attach";
        for (const std::string& name : names) text += " " + name;
        asked.push_back(text);
        on_attach();
        if (attach_error) return tl::unexpected(*attach_error);
        targets = names;
        wanted = what;
        attached = true;
        return {};
    }
    void sample(unsigned t, unsigned n) override {
        asked.push_back("sample " + targets.at(t) + " " + std::to_string(n));
    }
    Status begin(unsigned t, unsigned slot) override {
        asked.push_back("begin " + targets.at(t) + " " + std::to_string(slot));
        on_begin(targets.at(t), slot);
        return {};
    }
    void pause(unsigned t) override { asked.push_back("pause " + targets.at(t)); }
    Result<WorkCount> read(unsigned t, unsigned slot) override {
        if (read_error) return tl::unexpected(*read_error);
        return count(targets.at(t), slot);
    }
    void detach() override {
        if (attached) asked.push_back("detach");
        attached = false;
    }
    Result<std::map<std::string, Traffic>> traffic() override {
        asked.push_back("traffic");
        if (traffic_error) return tl::unexpected(*traffic_error);
        std::map<std::string, Traffic> out;
        for (const auto& [name, n] : more) items[name] += n;
        for (const auto& [name, n] : items) out[name] = {n, n, 0};
        return out;
    }
    Result<Traffic> traffic_of(unsigned t) override {
        const std::uint64_t n = completed(targets.at(t));
        return Traffic{n, n, 0};
    }
    Result<std::vector<KernelWorkqueue>> health() override {
        asked.emplace_back("health");
        return healthy();
    }
    [[nodiscard]] std::string limits() const override { return lacks; }
};

}  // namespace wq::test
