// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares verdict records with those read back from a file. For several targets.
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "../unit/fake_log.h"
#include "evidence/verdicts.h"
#include "fuzz.h"

namespace wq::fuzz {

// Floating-point values may differ a little, because evidence is stored as a logarithm.
inline bool alike(const nlohmann::json& a, const nlohmann::json& b) {
    if (a.is_array() && b.is_array()) return std::ranges::equal(a, b, alike);
    if (!a.is_number_float() || !b.is_number_float()) return a == b;
    const auto x = a.get<double>();
    const auto y = b.get<double>();
    return x == y || std::abs(x - y) <= 1e-9 * std::max(std::abs(x), std::abs(y));
}

// Adds RECORD to the file of STORE.
inline void keep(VerdictStore& store, const VerdictRecord& record) {
    struct : Log {
        void write(const LogLine& /*line*/) override { require(false, "a verdict can be stored"); }
    } log;
    WriteAtOnce at_once;
    store.add(record);
    store.save(at_once, log);
}

inline void require_same(const VerdictRecord& a, const VerdictRecord& b) {
    const nlohmann::json one = to_json(a);
    const nlohmann::json two = to_json(b);
    for (const auto& [key, value] : one.items())
        require(two.contains(key) && alike(value, two.at(key)),
                "a record that is read is written back to the same: " + key);
}

}  // namespace wq::fuzz
