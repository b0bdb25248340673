// SPDX-License-Identifier: LGPL-2.1-or-later
// One run of a benchmark: runs the load COMMAND with one way of counting attached, and prints a line of JSON.
//   overhead [--exact] ARM TARGET COMMAND...
// ARM is one of:
//   off              nothing
//   ours             the counters of TARGET
//   sampled          ours, but only one of 1000 items is timed
//   enqueue          sampled, with the time that producers spend in queue_work()
//   top, functions   `wq-tunectl top`, without and with --functions
//   none, bare, wqlat   the programs of peers.bpf.c
//   bpftrace         the script overhead.bt in the folder of this program
// With --exact the kernel times the BPF programs themselves. This has its own cost: the other times of such a
// run are not valid.
//   items     work items of TARGET, as counted by the kernel itself
//   wall cpu  ns that COMMAND took; ns on a CPU of COMMAND and all kworkers together
//   programs  runs and ns (0 without --exact) of each BPF program, by name
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/file.h"
#include "bpf/work_counters.h"
#include "bpf/work_monitor.h"
#include "peers.skel.h"

namespace {

[[noreturn]] void give_up(const std::string& why) {
    std::cerr << why << '\n';
    std::exit(1);
}

template <class T>
T or_exit(wq::Result<T> result) {
    if (!result) give_up(result.error().text);
    if constexpr (!std::is_void_v<T>) return *result;
}

struct Destroy {
    void operator()(peers_bpf* skeleton) const { peers_bpf::destroy(skeleton); }
};
using Peers = std::unique_ptr<peers_bpf, Destroy>;

// Attaches only the programs with names peer_ARM_*.
Peers attached_peer(const std::string& arm) {
    Peers peers(peers_bpf::open());
    if (!peers) give_up("the peers do not open");
    bpf_program* program = nullptr;
    bool found = false;
    bpf_object__for_each_program(program, peers->obj) {
        const bool wanted = std::string(bpf_program__name(program)).starts_with("peer_" + arm + "_");
        bpf_program__set_autoload(program, wanted);
        found = found || wanted;
    }
    if (!found) give_up("no such arm: " + arm);
    if (peers_bpf::load(peers.get()) != 0 || peers_bpf::attach(peers.get()) != 0)
        give_up("the peer '" + arm + "' does not attach");
    return peers;
}

// The programs with an id above BEFORE. systemd has loaded some of its own before.
nlohmann::ordered_json programs(std::uint32_t before) {
    auto all = nlohmann::ordered_json::object();
    for (std::uint32_t id = before; bpf_prog_get_next_id(id, &id) == 0;) {
        const wq::Fd fd(bpf_prog_get_fd_by_id(id));
        bpf_prog_info info{};
        std::uint32_t size = sizeof(info);
        if (!fd || bpf_obj_get_info_by_fd(fd.get(), &info, &size) != 0) continue;
        if (std::string(info.name) == "wqt_settle") continue;  // no event calls it
        all[info.name] = {{"runs", info.run_cnt}, {"ns", info.run_time_ns}};
    }
    return all;
}

// The highest id: the kernel assigns ids in ascending order.
std::uint32_t last_program() {
    std::uint32_t last = 0;
    while (bpf_prog_get_next_id(last, &last) == 0) {
    }
    return last;
}

// Runs bpftrace with SCRIPT. The constructor returns when all is attached; the destructor kills it.
class Bpftrace {
  public:
    explicit Bpftrace(const std::string& script) {
        int said[2];
        if (::pipe(said) != 0) give_up("no pipe");
        pid_ = ::fork();
        if (pid_ == 0) {
            ::dup2(said[1], STDOUT_FILENO);
            ::close(said[0]);
            ::close(said[1]);
            ::execlp("bpftrace", "bpftrace", "-B", "line", script.c_str(), nullptr);
            ::_exit(127);
        }
        ::close(said[1]);
        output_ = wq::Fd(said[0]);
        std::string text;
        char part[256];
        for (ssize_t n = 0; text.find("attached\n") == std::string::npos; text.append(part, n))
            if ((n = ::read(output_.get(), part, sizeof(part))) <= 0) give_up("bpftrace: " + text);
    }
    Bpftrace(const Bpftrace&) = delete;
    Bpftrace& operator=(const Bpftrace&) = delete;
    ~Bpftrace() {
        ::kill(pid_, SIGKILL);  // another signal would make it print its maps
        ::waitpid(pid_, nullptr, 0);
    }

  private:
    pid_t pid_ = -1;
    wq::Fd output_;
};

// ns that all kworkers together have been on a CPU. A kworker that has ended is missed, but it idles for 5
// minutes first.
std::uint64_t kworkers_ns() {
    std::uint64_t sum = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        std::string name;
        std::uint64_t ns = 0;
        if (std::ifstream(entry.path() / "comm") >> name; !name.starts_with("kworker/")) continue;
        if (std::ifstream(entry.path() / "schedstat") >> ns) sum += ns;
    }
    return sum;
}

// Runs COMMAND to its end. Returns the ns that it and its children have been on a CPU.
std::uint64_t run(char** command) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::dup2(STDERR_FILENO, STDOUT_FILENO);
        ::execvp(*command, command);
        ::_exit(127);
    }
    int status = 0;
    rusage usage{};
    if (pid < 0 || ::wait4(pid, &status, 0, &usage) != pid || status != 0)
        give_up(std::string(*command) + " failed");
    const auto ns = [](const timeval& time) {
        return (static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
                static_cast<std::uint64_t>(time.tv_usec)) *
               1000;
    };
    return ns(usage.ru_utime) + ns(usage.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
    int at = 1;
    const bool exact = argc > 1 && std::string(argv[1]) == "--exact";
    if (exact) at++;
    if (argc - at < 3) give_up("usage: overhead [--exact] ARM TARGET COMMAND...");
    const std::string arm = argv[at], target = argv[at + 1];
    libbpf_set_strict_mode(LIBBPF_STRICT_ALL);

    const auto counters = wq::make_bpf_counters();
    const auto monitor = wq::make_bpf_monitor();
    Peers peers;
    std::optional<Bpftrace> bpftrace;
    or_exit(counters->traffic());  // loads its programs, which must not be counted
    const std::uint32_t before = last_program();
    const bool ours = arm == "ours" || arm == "sampled" || arm == "enqueue";
    if (ours) {
        or_exit(counters->attach({target}, {.enqueue = arm == "enqueue"}));
        if (arm == "sampled" || arm == "enqueue") counters->sample(0, 1000);
        or_exit(counters->begin(0, 0));
    } else if (arm == "top" || arm == "functions") {
        or_exit(monitor->attach(arm == "functions", false));
    } else if (arm == "bpftrace") {
        bpftrace.emplace(std::filesystem::path(argv[0]).replace_filename("overhead.bt"));
    } else if (arm != "off") {
        peers = attached_peer(arm == "wqlat" ? "wq" : arm);
    }
    const wq::Fd timing(exact ? bpf_enable_stats(BPF_STATS_RUN_TIME) : -1);
    if (exact && !timing) give_up("the kernel does not time BPF programs");

    const auto items_before = or_exit(counters->traffic())[target].started;
    const auto workers_before = kworkers_ns();
    const auto start = std::chrono::steady_clock::now();
    const auto own = run(argv + at + 2);
    const auto wall = std::chrono::steady_clock::now() - start;
    const auto workers = kworkers_ns() - workers_before;
    const auto seen = programs(before);
    const auto items = or_exit(counters->traffic())[target].started - items_before;

    nlohmann::ordered_json out{{"arm", arm},           {"exact", exact},
                               {"items", items},       {"wall", std::chrono::nanoseconds(wall).count()},
                               {"cpu", own + workers}, {"programs", seen}};
    if (ours) {
        const auto count = or_exit(counters->read(0, 0));
        out["counted"] = count.items;
        out["lost"] = count.lost + count.unfinished;
    }
    std::cout << out.dump() << '\n';
}
