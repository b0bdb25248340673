// SPDX-License-Identifier: LGPL-2.1-or-later
// Prints the counters' values for workqueues as JSON, with the kernel's own counts for the same time:
//   count-work TARGET[,TARGET...] SECONDS [--two] [--every N] [--tails] [--enqueue]
//                                       one window; --two: two windows of half the time, one in each slot, a
//                                       second apart. The keys of the first target are also at the top level.
//                                       SIGUSR1 ends a window early
//   count-work --traffic                all counts of the kernel
//   count-work --cost                   the cost of reading these: us of CPU time, and programs loaded
//   count-work --loaded                 wq-tuned's BPF programs in the kernel that events call
// Prints "begun" on stderr when counting begins. On an error it prints one line and exits with 1.
#include <linux/bpf.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bpf/work_counters.h"
#include "bpf/work_sums.h"

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

sigset_t sigusr1() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGUSR1);
    return set;
}

void wait_for_signal(double seconds) {
    const timespec most{static_cast<time_t>(seconds),
                        static_cast<long>((seconds - std::floor(seconds)) * 1e9)};
    const sigset_t set = sigusr1();
    ::sigtimedwait(&set, nullptr, &most);
}

long bpf(int command, bpf_attr& attributes) {
    return ::syscall(SYS_bpf, command, &attributes, sizeof(attributes));
}

// Events do not call these: wqt_walk and wqt_look are iterators, and wqt_settle runs only on request.
bool is_probe(const std::string& name) {
    return name.starts_with("wqt_") && name != "wqt_walk" && name != "wqt_look" && name != "wqt_settle";
}

// wq-tuned's programs in the kernel: name, number of runs, and ns of all runs (0 unless
// kernel.bpf_stats_enabled is 1). Does not use libbpf, because the code under test uses it.
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
        if (bpf(BPF_OBJ_GET_INFO_BY_FD, ask) == 0 && is_probe(info.name))
            programs[info.name] = {{"runs", info.run_cnt}, {"ns", info.run_time_ns}};
        ::close(fd);
    }
    return programs;
}

nlohmann::ordered_json percentiles(const std::vector<std::uint32_t>& items) {
    if (items.empty()) return nullptr;
    wq::Histogram times(wq::kTimeBits);
    for (unsigned i = 0; i < items.size(); i++) times.add(i, items[i]);
    return {{"items", times.items()},
            {"p50", times.percentile(0.5)},
            {"p90", times.percentile(0.9)},
            {"p95", times.percentile(0.95)},
            {"p99", times.percentile(0.99)}};
}

nlohmann::ordered_json json_of(const wq::WorkCount& count) {
    return {{"items", count.items},
            {"latency", count.latency},
            {"tail", count.tail},
            {"exec", count.exec},
            {"lock", count.lock},
            {"pools", count.pools},
            {"workers", count.workers},
            {"stuck", count.stuck},
            {"unfinished", count.unfinished},
            {"lost", count.lost},
            {"timed", count.timed},
            {"throughput", count.throughput},  // null if unknown, and so is cpu
            {"cpu", count.cpu},
            {"enqueue", count.enqueue},
            {"enqueued", percentiles(count.enqueued)}};
}

// Bytes of kernel memory that this process's maps take, as fdinfo reports them.
std::uint64_t map_bytes() {
    std::uint64_t sum = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
        std::ifstream info(entry.path());
        for (std::string key, value; info >> key && std::getline(info, value);)
            if (key == "memlock:") sum += std::stoull(value);
    }
    return sum;
}

struct Options {
    std::vector<std::string> targets;
    double seconds = 0;
    unsigned windows = 1;
    unsigned every = 1;
    wq::Wanted wanted;
};

int count(const Options& options) {
    const auto counters = wq::make_bpf_counters();
    const auto n = static_cast<unsigned>(options.targets.size());
    or_exit(counters->attach(options.targets, options.wanted));
    for (unsigned t = 0; t < n; t++) counters->sample(t, options.every);
    const auto before = or_exit(counters->traffic());
    const auto start = Clock::now();
    for (unsigned slot = 0; slot < options.windows; slot++) {
        if (slot != 0) wait(1);
        for (unsigned t = 0; t < n; t++) or_exit(counters->begin(t, slot));
        if (slot == 0) std::cerr << "begun" << std::endl;
        wait_for_signal(options.seconds / options.windows);
        for (unsigned t = 0; t < n; t++) counters->pause(t);
    }
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    const auto after = or_exit(counters->traffic());
    wait(1);

    auto targets = nlohmann::ordered_json::array();
    for (unsigned t = 0; t < n; t++) {
        const std::string& target = options.targets[t];
        auto& one = targets.emplace_back(nlohmann::ordered_json{{"target", target}, {"seconds", took}});
        for (unsigned slot = 0; slot < options.windows; slot++)
            one["windows"].push_back(json_of(or_exit(counters->read(t, slot))));
        const bool known = before.contains(target) && after.contains(target);
        if (!known) continue;
        const auto &from = before.at(target), &to = after.at(target);
        one["kernel"] = to.started - from.started;
        one["kernel_cpu_ns"] = to.cpu_ns - from.cpu_ns;
    }
    nlohmann::ordered_json out = targets.front();
    out["targets"] = targets;
    out["limits"] = counters->limits();
    out["programs"] = loaded();
    out["loaded"] = out["programs"].size();
    out["map_bytes"] = map_bytes();
    counters->detach();
    // The kernel frees them a little later.
    for (int i = 0; i < 50 && !loaded().empty(); i++) wait(0.1);
    out["left"] = loaded().size();
    std::cout << out.dump() << '\n';
    return 0;
}

nlohmann::ordered_json traffic() {
    nlohmann::ordered_json out;
    for (const auto& [name, counted] : or_exit(wq::make_bpf_counters()->traffic()))
        out[name] = counted.started;
    return out;
}

double cpu_us() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto us = [](const timeval& time) {
        return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec);
    };
    return us(usage.ru_utime) + us(usage.ru_stime);
}

// The ID of the newest program: the kernel assigns IDs in increasing order.
std::uint32_t last_program() {
    bpf_attr next{};
    while (bpf(BPF_PROG_GET_NEXT_ID, next) == 0) next.start_id = next.next_id;
    return next.start_id;
}

nlohmann::ordered_json cost() {
    constexpr int kTimes = 50;
    const auto counters = wq::make_bpf_counters();
    const auto took = [](const auto& call) {
        const double before = cpu_us();
        call();
        return cpu_us() - before;
    };
    nlohmann::ordered_json out;
    out["first_us"] = took([&] { or_exit(counters->traffic()); });
    const auto programs = last_program();
    out["next_us"] = took([&] {
                         for (int i = 0; i < kTimes; i++) or_exit(counters->traffic());
                     }) /
                     kTimes;
    out["programs_more"] = last_program() - programs;
    out["attach_us"] = took([&] { or_exit(counters->attach({"@default"}, {})); });
    out["again_us"] = took([&] { or_exit(counters->attach({"@default", "writeback"}, {})); });
    out["of_one_us"] = took([&] {
                           for (int i = 0; i < kTimes; i++) or_exit(counters->traffic_of(0));
                       }) /
                       kTimes;
    out["window_us"] = took([&] {
                           for (unsigned i = 0; i < kTimes; i++) {
                               or_exit(counters->begin(1, i % 2));
                               counters->pause(1);
                               or_exit(counters->read(1, i % 2));
                           }
                       }) /
                       kTimes;
    return out;
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream stream(text);
    for (std::string word; std::getline(stream, word, ',');) out.push_back(word);
    return out;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 1 && words[0].starts_with("--")) {
        const auto& what = words[0];
        std::cout << (what == "--traffic" ? traffic() : what == "--cost" ? cost() : loaded()).dump() << '\n';
        return 0;
    }
    const sigset_t blocked = sigusr1();
    ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
    Options options;
    bool usage = words.size() < 2;
    for (std::size_t i = 2; i < words.size(); i++) {
        if (words[i] == "--two")
            options.windows = 2;
        else if (words[i] == "--tails")
            options.wanted.tails = true;
        else if (words[i] == "--enqueue")
            options.wanted.enqueue = true;
        else if (words[i] == "--every" && i + 1 < words.size())
            options.every = static_cast<unsigned>(std::stoul(words[++i]));
        else
            usage = true;
    }
    if (usage) {
        std::cerr << "usage: count-work TARGET[,TARGET...] SECONDS [--two] [--every N] [--tails] [--enqueue]"
                     " | --traffic | --cost | --loaded\n";
        return 2;
    }
    options.targets = split(words[0]);
    options.seconds = std::stod(words[1]);
    return count(options);
}
