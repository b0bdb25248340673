// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Shared by all targets. A target is a file with one FUZZ_TARGET(name) { ... }, which gets `text`, any bytes.
// libFuzzer runs it (./dev fuzz), and fuzz-replay runs it with the kept corpora (./dev test).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "temp_tree.h"

namespace wq::fuzz {

// Aborts if PROPERTY, which must hold for any input, does not hold.
void require(bool holds, std::string_view property);

// One folder for all inputs of a process; in memory if possible.
test::TempTree& folder();

using Target = void (*)(std::string_view text);

// Registers a target of fuzz-replay.
struct Registered {
    Registered(std::string_view name, Target target);
};

}  // namespace wq::fuzz

#ifdef WQ_TUNED_FUZZ_REPLAY
#define FUZZ_TARGET(name)                                             \
    static void fuzz_##name(std::string_view text);                   \
    static const wq::fuzz::Registered registered{#name, fuzz_##name}; \
    static void fuzz_##name(std::string_view text)
#else
#define FUZZ_TARGET(name)                                                               \
    static void fuzz_##name(std::string_view text);                                     \
    extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
        fuzz_##name({reinterpret_cast<const char*>(data), size});                       \
        return 0;                                                                       \
    }                                                                                   \
    static void fuzz_##name(std::string_view text)
#endif
