// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/kworker.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace wq {
namespace {

constexpr unsigned kIsWorker = 0x20;  // PF_WQ_WORKER

// The name in COMM: "kworker/u8:3+writeback" while it works, "kworker/u8:3-writeback" afterwards. A rescuer
// is named after its workqueue, and that name may contain both signs: "kworker/R-kcryptd-254:0".
void set_name(Kworker& out, std::string_view comm) {
    constexpr std::string_view kRescuer = "kworker/R-";
    const bool rescuer = comm.starts_with(kRescuer);
    const std::size_t end = rescuer ? std::string_view::npos : comm.find_first_of("+-");
    out.name = printable(comm.substr(0, end));
    if (rescuer) out.work = printable(comm.substr(kRescuer.size()));
    if (end == std::string_view::npos) return;
    out.busy = comm[end] == '+';
    out.work = printable(comm.substr(end + 1));
}

// The fields after the name, from "state" on, the third in proc_pid_stat(5).
bool set_state(Kworker& out, std::string_view fields) {
    std::istringstream in{std::string(fields)};
    long long skipped = 0;
    std::uint64_t flags = 0, user = 0, system = 0;
    in >> out.state;
    for (int i = 0; i < 5; i++) in >> skipped;  // ppid to tpgid
    in >> flags;
    for (int i = 0; i < 4; i++) in >> skipped;  // faults
    in >> user >> system;
    out.cpu_ns = (user + system) * 10'000'000;  // USER_HZ is 100 everywhere but on Alpha
    return in && (flags & kIsWorker) != 0;
}

std::optional<Kworker> read_kworker(const std::string& dir, int pid) {
    const auto stat = read_file(dir + "/stat");
    if (!stat) return std::nullopt;
    const std::size_t from = stat->find('('), to = stat->rfind(')');
    if (from == std::string::npos || to == std::string::npos || to < from) return std::nullopt;
    Kworker out;
    out.pid = pid;
    set_name(out, std::string_view(*stat).substr(from + 1, to - from - 1));
    if (!set_state(out, std::string_view(*stat).substr(to + 1))) return std::nullopt;
    if (const auto exact = read_file(dir + "/schedstat")) {  // only with CONFIG_SCHED_INFO
        std::uint64_t waited = 0;
        std::istringstream(*exact) >> out.cpu_ns >> waited >> out.runs;
    }
    return out;
}

}  // namespace

std::vector<Kworker> read_kworkers(const Paths& paths) {
    std::vector<Kworker> out;
    for (const std::string& name : names_or_none(paths.proc())) {
        const auto pid = number_of<int>(name);
        if (!pid) continue;
        const std::string path = paths.proc() + "/" + name;
        // Much cheaper than `stat` of a process with many threads.
        const auto comm = read_file(path + "/comm");
        if (!comm || !comm->starts_with("kworker/")) continue;
        if (auto one = read_kworker(path, *pid)) out.push_back(std::move(*one));
    }
    std::ranges::sort(out, {}, &Kworker::pid);
    return out;
}

CpuSet cpus_of_task(const Paths& paths, int pid) {
    constexpr std::string_view kKey = "Cpus_allowed_list:";
    const auto status = read_file(paths.proc() + "/" + std::to_string(pid) + "/status");
    const std::size_t at = status ? status->find(kKey) : std::string::npos;
    if (at == std::string::npos) return {};
    const std::size_t from = status->find_first_not_of(" \t", at + kKey.size());
    if (from == std::string::npos) return {};
    return CpuSet::parse_list(status->substr(from, status->find('\n', from) - from)).value_or(CpuSet{});
}

std::string sleeps_in(const Paths& paths, int pid) {
    const auto text = read_file(paths.proc() + "/" + std::to_string(pid) + "/wchan");
    return !text || *text == "0" ? "" : printable(*text);
}

}  // namespace wq
