// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bpf/work_counters.h"

namespace wq::test {

// Counts what it is told to. Records what was asked.
class FakeCounters : public WorkCounters {
  public:
    std::function<WorkCount(unsigned slot)> count = [](unsigned) {
        return WorkCount{.items = 10'000, .latency = 1000};
    };
    std::map<std::string, std::uint64_t> items;  // traffic() answers this,
    std::map<std::string, std::uint64_t> more;   // after adding this
    std::function<void()> on_attach = [] {};     // what happens meanwhile: loading BPF takes a while
    std::optional<Error> attach_error;
    std::optional<Error> traffic_error;
    std::optional<Error> read_error;
    std::string lacks;  // limits() answers this
    CpuSet watched_cpus;
    Watched found;  // watched() answers this
    std::vector<std::string> asked;
    bool attached = false;

    Status attach(const std::vector<std::string>& targets, bool) override {
        for (const auto& target : targets) asked.push_back("attach " + target);
        on_attach();
        if (attach_error) return tl::unexpected(*attach_error);
        attached = true;
        return {};
    }
    void sample(unsigned, unsigned) override {}
    Status begin(unsigned, unsigned slot) override {
        asked.push_back("begin " + std::to_string(slot));
        return {};
    }
    void pause(unsigned) override { asked.push_back("pause"); }
    Result<WorkCount> read(unsigned, unsigned slot) override {
        if (read_error) return tl::unexpected(*read_error);
        return count(slot);
    }
    void watch(const CpuSet& cpus) override { watched_cpus = cpus; }
    [[nodiscard]] Watched watched() override { return found; }
    void detach() override {
        if (attached) asked.push_back("detach");
        attached = false;
    }
    Result<std::map<std::string, Traffic>> traffic() override {
        asked.push_back("traffic");
        if (traffic_error) return tl::unexpected(*traffic_error);
        for (const auto& [name, n] : more) items[name] += n;
        std::map<std::string, Traffic> out;
        for (const auto& [name, n] : items) out[name] = {n, n, 0};
        return out;
    }
    Result<Traffic> traffic_of(unsigned) override { return Traffic{}; }
    [[nodiscard]] std::string limits() const override { return lacks; }
};

}  // namespace wq::test
