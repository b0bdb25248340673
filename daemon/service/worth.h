// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "evidence/ledger.h"
#include "targets/engine.h"

namespace wq {

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
Worth worth_of(const Engine& engine, const Ledger& ledger);

// The part `worth` of `status --json`, without what was lost today. NOW: s since 1970.
nlohmann::json worth_json(const Engine& engine, const Ledger& ledger,
                          const std::vector<VerdictRecord>& verdicts, std::int64_t now);

}  // namespace wq
