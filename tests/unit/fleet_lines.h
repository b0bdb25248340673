// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <fmt/format.h>

#include <string>

#include "ctl/fleet/fleet_line.h"
#include "noise.h"

namespace wq::test {

inline constexpr std::int64_t kFleetTime = 1'700'000'000;

inline FleetKey fleet_key(const std::string& kind = "kcryptd-#:#-#") {
    FleetKey key;
    key.machine = {"x86_64", "AuthenticAMD", "AMD [EPYC] 9654 96-Core Processor", 2, 192, 8};
    key.kernel = "6.12 cpu smt cache numa system";
    key.topology = "384 CPUs, 192 cores, 24 LLCs, 0123456789abcdef";
    key.kind = kind;
    key.reference = "cache";
    key.reference_origin = "kernel";
    key.candidate = "smt";
    key.partitions = {24, 192};
    key.counter = "latency";
    key.window = "2000ms 500ms";
    return key;
}

// The evidence of PAIRS pairs for a change of ln(cost) by EFFECT, with NOISE.
inline HostEvidence measured(unsigned pairs, double effect, Random& random, double noise = 0.03) {
    EProcess better;
    EProcess worse;
    double sum = 0;
    for (unsigned i = 0; i < pairs; i++) {
        const double d = effect + noise * random.normal();
        better.add(-d);
        worse.add(d);
        sum += d;
    }
    return {0, pairs, better.logs, worse.logs, sum, better.squares};
}

inline FleetLine host_line(unsigned host, const FleetKey& key, const HostEvidence& own,
                           std::int64_t at = kFleetTime) {
    FleetLine line;
    line.key = key;
    line.host = fmt::format("{:08x}", host);
    line.at = at;
    line.own = own;
    return line;
}

}  // namespace wq::test
