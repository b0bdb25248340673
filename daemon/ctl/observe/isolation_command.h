// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_set.h"
#include "bpf/bpf_workqueues.h"
#include "bpf/work_monitor.h"
#include "bpf/work_profile.h"
#include "machine/paths.h"

namespace wq::ctl {

struct IsolationOptions {
    double seconds = 5;
    bool json = false;
};

struct IsolationTools {
    Paths paths;              // of /proc and /sys
    WorkMonitor& statistics;  // for the names of workqueues
    WorkProfile& profile;
};

// `wq-tunectl status --isolation`: watches the isolated CPUs for a while, and prints which work started on
// them and who queued it. It needs neither the daemon nor an experiment. A signal ends the look early; then
// it prints what was seen so far. If no CPU is isolated, it says so and attaches nothing.
int isolation(const IsolationOptions& options, const IsolationTools& tools);

// Text in paragraphs, wrapped at COLUMNS: a line, and indented lines below it.
class Paragraphs {
  public:
    explicit Paragraphs(std::size_t columns) : columns_(columns) {}

    // Begins a paragraph; an empty line precedes it, unless it is the first.
    void begin(const std::string& line) {
        if (!text_.empty()) text_ += '\n';
        add(line, 0);
    }
    void say(const std::string& line) { add(line, kIndent); }
    // Adds a line that is neither indented nor a new paragraph.
    void note(const std::string& line) { add(line, 0); }
    // Adds a command. It is not wrapped, so that the user can copy it.
    void command(const std::string& line) { text_ += std::string(kIndent + 2, ' ') + line + '\n'; }

    [[nodiscard]] bool empty() const { return text_.empty(); }
    std::string text() && { return std::move(text_); }

  private:
    static constexpr std::size_t kIndent = 4;
    void add(const std::string& text, std::size_t indent);

    std::size_t columns_;
    std::string text_;
};

// Work of one function on isolated CPUs.
struct IsolatedFinding {
    std::string workqueue, kind;  // "": in a soft interrupt; an unknown workqueue also has no kind
    std::string function;
    std::uint64_t items = 0;  // items that started there
    std::vector<WorkOrigin> origins;
};

// Returns the work that started on isolated CPUs, most items first, without work that was only queued there.
// WORKQUEUES: the kernel's workqueues by address, for their names.
std::vector<IsolatedFinding> isolated_findings(const std::vector<IsolatedWork>& work,
                                               const std::map<std::uint64_t, KernelWorkqueue>& workqueues);

// Adds a paragraph for each function, at most twelve.
void tell_isolated(Paragraphs& out, const std::vector<IsolatedFinding>& findings, const CpuSet& isolated);
nlohmann::ordered_json isolated_json(const std::vector<IsolatedFinding>& findings);

}  // namespace wq::ctl
