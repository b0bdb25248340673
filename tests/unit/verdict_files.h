// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <utility>

#include "evidence/verdicts.h"
#include "fake_log.h"

namespace wq::test {

// The key of a comparison of KIND, with what the verdict's tests tell apart.
inline LedgerKey key_of(const std::string& kind, const std::string& kernel = "6.12",
                        const std::string& topology = "8 CPUs", const std::string& reference = "cache",
                        const std::string& candidate = "smt") {
    LedgerKey out;
    out.kernel = kernel;
    out.topology = topology;
    out.kind = kind;
    out.reference = reference;
    out.candidate = candidate;
    out.reference_origin = "kernel";
    return out;
}

// Adds RECORD to STORE and to its file. Returns whether it is on disk.
inline bool keep(VerdictStore& store, VerdictRecord record) {
    WriteAtOnce at_once;
    FakeLog log;
    store.add(std::move(record));
    store.save(at_once, log);
    return log.lines.empty();
}

}  // namespace wq::test
