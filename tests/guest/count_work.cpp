// SPDX-License-Identifier: LGPL-2.1-or-later
// What the counters see of one workqueue, as JSON, beside what the kernel itself has counted in that time:
//   count-work TARGET SECONDS [--two] [--watch CPUS]
//                                       one window, or --two: half of the time in either slot; what starts on
//                                       CPUS
//   count-work --traffic                the kernel's own counts, all of them
//   count-work --loaded                 the BPF programs of ours that are in the kernel
// Says "begun" on stderr once it counts, and what is wrong in one line, with exit code 1.
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bpf/bpf_counters.h"

namespace {

using Clock = std::chrono::steady_clock;

template <class T>
T or_exit(wq::Result<T> result) {
    if (!result) {
        std::cerr << result.error().text << '\n';
        std::exit(1);
    }
    if constexpr (!std::is_void_v<T>) return *result;
}

void wait(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

long bpf(int command, bpf_attr& attributes) {
    return ::syscall(SYS_bpf, command, &attributes, sizeof(attributes));
}

// Of our programs in the kernel: name to runs and ns of them all (0 unless kernel.bpf_stats_enabled is 1).
// Not by libbpf: it is the library's own, and it is on trial here.
nlohmann::ordered_json loaded() {
    auto programs = nlohmann::ordered_json::object();
    bpf_attr next{};
    for (; bpf(BPF_PROG_GET_NEXT_ID, next) == 0; next.start_id = next.next_id) {
        bpf_attr by_id{};
        by_id.prog_id = next.next_id;
        const int fd = static_cast<int>(bpf(BPF_PROG_GET_FD_BY_ID, by_id));
        if (fd < 0) continue;
        bpf_prog_info info{};
        bpf_attr ask{};
        ask.info.bpf_fd = static_cast<unsigned>(fd);
        ask.info.info_len = sizeof(info);
        ask.info.info = reinterpret_cast<std::uintptr_t>(&info);
        if (bpf(BPF_OBJ_GET_INFO_BY_FD, ask) == 0 && std::string(info.name).starts_with("wqt_"))
            programs[info.name] = {{"runs", info.run_cnt}, {"ns", info.run_time_ns}};
        ::close(fd);
    }
    return programs;
}

nlohmann::ordered_json json_of(const wq::WorkCount& count) {
    return {{"items", count.items},
            {"latency", count.latency},
            {"tail", count.tail},
            {"exec", count.exec},
            {"lock", count.lock},
            {"stuck", count.stuck},
            {"unfinished", count.unfinished},
            {"lost", count.lost}};
}

nlohmann::ordered_json json_of(const wq::Watched& watched) {
    auto work = nlohmann::ordered_json::array();
    for (const auto& one : watched.work)
        work.push_back({{"workqueue", one.workqueue},
                        {"per_cpu", one.per_cpu},
                        {"function", one.function},
                        {"items", one.items}});
    return {{"seconds", watched.seconds}, {"lost", watched.lost}, {"work", work}};
}

int count(const std::string& target, double seconds, unsigned windows, const wq::CpuSet& watched) {
    const auto counters = wq::make_bpf_counters();
    counters->watch(watched);
    or_exit(counters->attach(target));
    const auto before = or_exit(counters->traffic());
    const auto start = Clock::now();
    for (unsigned slot = 0; slot < windows; slot++) {
        or_exit(counters->begin(slot));
        if (slot == 0) std::cerr << "begun" << std::endl;
        wait(seconds / windows);
    }
    counters->pause();
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    const auto after = or_exit(counters->traffic());
    wait(1);

    nlohmann::ordered_json out{{"target", target}, {"seconds", took}, {"windows", nlohmann::json::array()}};
    for (unsigned slot = 0; slot < windows; slot++)
        out["windows"].push_back(json_of(or_exit(counters->read(slot))));
    const bool known = before.contains(target) && after.contains(target);
    out["kernel"] = known ? nlohmann::ordered_json(after.at(target) - before.at(target)) : nullptr;
    out["limits"] = counters->limits();
    out["programs"] = loaded();
    out["loaded"] = out["programs"].size();
    counters->detach();
    out["watched"] = json_of(counters->watched());
    // The kernel frees them a little later.
    for (int i = 0; i < 50 && !loaded().empty(); i++) wait(0.1);
    out["left"] = loaded().size();
    std::cout << out.dump() << '\n';
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 1 && words[0] == "--traffic") {
        std::cout << nlohmann::json(or_exit(wq::make_bpf_counters()->traffic())).dump() << '\n';
        return 0;
    }
    if (words.size() == 1 && words[0] == "--loaded") {
        std::cout << loaded().dump() << '\n';
        return 0;
    }
    unsigned windows = 1;
    wq::CpuSet watched;
    bool usage = words.size() < 2;
    for (std::size_t i = 2; i < words.size(); i++) {
        if (words[i] == "--two")
            windows = 2;
        else if (words[i] == "--watch" && i + 1 < words.size())
            watched = or_exit(wq::CpuSet::parse_list(words[++i]));
        else
            usage = true;
    }
    if (usage) {
        std::cerr << "usage: count-work TARGET SECONDS [--two] [--watch CPUS] | --traffic | --loaded\n";
        return 2;
    }
    return count(words[0], std::stod(words[1]), windows, watched);
}
