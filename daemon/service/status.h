// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/ledger.h"
#include "experiment/experiment.h"
#include "machine/isolation.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"
#include "machine/topology.h"
#include "policy/policy.h"
#include "targets/engine.h"

namespace wq {

// The policy on disk as of its last reading, and the one in force. Times: s since 1970; empty: not known.
struct PolicyState {
    std::string error;                     // "FILE:LINE:COLUMN: why"; "" if it could be read
    std::optional<std::int64_t> since;     // when it was found broken, or was loaded
    std::optional<std::int64_t> in_force;  // when the one in force was loaded; empty: there is none

    void loaded(std::int64_t now);
    void broken(const PolicyErrors& errors, std::int64_t now);
    // Whether targets have no plan because there is no policy.
    [[nodiscard]] bool nothing_to_plan_by() const { return !error.empty() && !in_force; }
};

// The document of `wq-tunectl status --json`: {"daemon":{...},"targets":[...]}. DAEMON_STATE
// is running, paused (by a kill switch or an order), observing or absent; EXPERIMENT is nullptr if absent.
nlohmann::json status_json(const Engine& engine, const Experiment* experiment,
                           const std::string& daemon_state, const PolicyState& policy = {});

// One line, for STATUS=.
std::string summary_of(const Targets& targets);

// The names of the host tables in force in POLICY, in the order in which they are merged.
std::vector<std::string> hosts_in_force(const Policy& policy);

// The text of /run/wq-tuned/status.json. It names this process, so that it is not believed after its end.
std::string status_text(nlohmann::json document);

// The document of the daemon that runs. Error: ESRCH if none runs; the text says why the file is not
// believed,
// "" if there is none or the restorer has replaced it.
Result<nlohmann::json> read_status(const Paths& paths);

// "isolation" of `wq-tunectl status --json`: the isolated CPUs.
nlohmann::json isolation_json(const Isolation& isolation);

// "kernel" of `wq-tunectl status --json`: its release and its features.
nlohmann::json features_json(const KernelInfo& kernel, const KernelFeatures& features);

// The source of the pods for plans, {"source": "kernel" | "model", "why", "differ"}: why the kernel's own
// pods were not read, or null; its pods of each scope where they differ from the model, as lists of online
// CPUs.
nlohmann::json pods_json(const KernelInfo& kernel, const Topology& topology);

// What the scopes in force are worth against the kernel's setting, from the pairs that AfterVerdict has.
struct Worth {
    // A class of targets that run on an arm which improved or was set first, by one judged counter.
    struct Part {
        std::string kind;  // class_of() the targets
        std::string arm;
        std::string counter;
        AfterVerdict after;  // of all its comparisons here: its targets may have different CPUs
        [[nodiscard]] bool is_measured() const { return after.pairs >= kLeastForMean; }
    };
    std::size_t targets = 0;
    std::size_t moved = 0;    // those on another scope or strictness than the kernel's because of us
    std::vector<Part> parts;  // measured ones first, the largest effect first
};

// Between slots and in them: what targets run on while no experiment tries an arm.
Worth worth_of(const Targets& targets, const Ledger& ledger);

// The part `worth` of `status --json`, without what was lost today. NOW: s since 1970.
nlohmann::json worth_json(const Targets& targets, const Ledger& ledger,
                          const std::vector<VerdictRecord>& verdicts, std::int64_t now);

}  // namespace wq
