// SPDX-License-Identifier: LGPL-2.1-or-later
// Makes queue_work() slow for a workqueue, by known times (slow_queue.bpf.c), until SIGTERM:
//   slow-queue WORKQUEUE
// Prints "begun" on stderr, and at the end a line of JSON: the number of items, and mean and percentiles of
// the ns from entering __queue_work() to its return. On an error it prints one line and exits with 1.
#include <bpf/libbpf.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "slow_queue.skel.h"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: slow-queue WORKQUEUE\n";
        return 2;
    }
    libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
    sigset_t end;
    ::sigemptyset(&end);
    ::sigaddset(&end, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &end, nullptr);
    slow_queue_bpf* slow = slow_queue_bpf::open();
    if (slow != nullptr) std::strncpy(slow->bss->name, argv[1], sizeof(slow->bss->name) - 1);
    if (slow == nullptr || slow_queue_bpf::load(slow) != 0 || slow_queue_bpf::attach(slow) != 0) {
        std::cerr << "cannot load or attach the programs\n";
        return 1;
    }
    std::cerr << "begun" << std::endl;
    int signal = 0;
    ::sigwait(&end, &signal);
    slow_queue_bpf::detach(slow);
    const std::size_t items = std::min<std::size_t>(slow->bss->items, std::size(slow->bss->ns));
    std::vector<std::uint64_t> times(slow->bss->ns, slow->bss->ns + items);
    std::ranges::sort(times);
    const auto percentile = [&](unsigned percent) {
        return items == 0 ? 0 : times[(items * percent + 99) / 100 - 1];
    };
    const double all = std::accumulate(times.begin(), times.end(), 0.0);
    const nlohmann::ordered_json out{
        {"items", slow->bss->items}, {"mean", items == 0 ? 0 : all / static_cast<double>(items)},
        {"p50", percentile(50)},     {"p90", percentile(90)},
        {"p95", percentile(95)},     {"p99", percentile(99)}};
    std::cout << out.dump() << '\n';
    slow_queue_bpf::destroy(slow);
    return 0;
}
