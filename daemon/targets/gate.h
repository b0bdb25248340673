// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>

#include "targets/targets.h"

namespace wq {

// What is asked of a target. Each asks for more than the one before.
enum class Use : std::uint8_t {
    revert,   // by an order, to its baseline
    pin,      // by an order, to a scope
    compare,  // in a slot
};

// Why a target may not be used.
struct No {
    std::string why;
    int code = EPERM;
    bool ours = false;  // the operator or the policy causes it, and nobody else

    [[nodiscard]] tl::unexpected<Error> error_of(const std::string& name) const {
        return fail(name + ": " + why, code);
    }
};

// The gate: why no order and no slot may use TARGET like this, whatever its plan. ARMS: to be compared.
std::optional<No> why_not(const Targets& targets, const Target& target, Use use, const Arms* arms = nullptr);

// The same for the target NAME, at which it looks first.
std::optional<No> ask(Targets& targets, const std::string& name, Use use);

}  // namespace wq
