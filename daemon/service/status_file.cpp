// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/status_file.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "plan/pods.h"
#include "service/status.h"

namespace wq {
namespace {

using nlohmann::json;

constexpr std::size_t kMostBytes = 64 << 20;  // 10,000 targets need about a third
constexpr int kMostDepth = 12;                // of a document; ours has 6

std::string boot_id(const Paths& paths) {
    return read_first_line(paths.proc() + "/sys/kernel/random/boot_id");
}

// When the process PID started, in ticks since boot (field 22 of its stat; the name, field 2, may contain
// anything). Empty if it cannot be read, or if the process is dead and only its parent has not asked for its
// exit status yet (field 3).
std::optional<std::uint64_t> start_of(const Paths& paths, std::int64_t pid) {
    constexpr int kFieldsAfterName = 20;
    const std::string stat = read_first_line(fmt::format("{}/{}/stat", paths.proc(), pid));
    std::size_t at = stat.rfind(')');
    if (at != std::string::npos && stat.find_first_of("ZXx", at) == at + 2) return {};
    for (int i = 0; i < kFieldsAfterName && at != std::string::npos; i++) at = stat.find(' ', at + 1);
    if (at == std::string::npos) return {};
    std::uint64_t ticks = 0;
    const auto [end, error] = std::from_chars(stat.data() + at + 1, stat.data() + stat.size(), ticks);
    return error == std::errc() ? std::optional(ticks) : std::nullopt;
}

std::string word(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

tl::unexpected<Error> not_running(std::string why = "") {
    return fail(std::move(why), ESRCH);
}

// Where /proc hides other users' processes (hidepid=), kill() still tells that there is one.
bool is_hidden(const Paths& paths, std::int64_t pid) {
    return paths.root.empty() && !exists(fmt::format("/proc/{}/stat", pid)) &&
           ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == EPERM;
}

}  // namespace

std::string status_text(json document) {
    const Paths machine;
    const auto pid = static_cast<std::int64_t>(::getpid());
    document["process"] = {
        {"boot_id", boot_id(machine)}, {"pid", pid}, {"start_time", start_of(machine, pid).value_or(0)}};
    return dump_json(document);
}

bool is_status(const json& document) {
    constexpr std::array kStates = {"running", "paused", "observing"};
    if (!document.is_object() || !document.contains("daemon") || !document.contains("targets")) return false;
    const json& targets = document.at("targets");
    const auto has_name = [](const json& each) { return each.is_object() && !word(each, "name").empty(); };
    return std::ranges::count(kStates, word(document.at("daemon"), "state")) == 1 && targets.is_array() &&
           std::ranges::all_of(targets, has_name);
}

Result<json> read_status(const Paths& paths) {
    const std::string path = paths.status();
    const auto text = read_file(path, kMostBytes);
    if (!text) return not_running(text.error().code == ENOENT ? "" : text.error().text);
    bool deep = false;
    const auto look = [&deep](int depth, json::parse_event_t /*event*/, json& /*parsed*/) {
        deep = deep || depth > kMostDepth;
        return !deep;
    };
    json document = json::parse(*text, look, false);
    const json daemon = document.is_object() ? document.value("daemon", json(nullptr)) : json(nullptr);
    const std::string state = word(daemon, "state");
    if (state == "absent") return not_running();
    if (state == "restarting") return not_running("it is being restarted");
    const json process = document.is_object() ? document.value("process", json(nullptr)) : json(nullptr);
    const auto number = [&process](const char* key) {
        const auto found = process.find(key);
        return found != process.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
    };
    const std::int64_t pid = number("pid");
    if (deep || !is_status(document) || pid <= 0) return not_running(path + ": broken");
    if (const std::string boot = boot_id(paths); boot.empty() || boot != word(process, "boot_id"))
        return not_running(path + ": of another boot");
    const auto started = start_of(paths, pid);
    if (!started && is_hidden(paths, pid))
        return not_running(fmt::format("/proc hides whether process {} is the daemon: run it as root", pid));
    if (!started || static_cast<std::int64_t>(*started) != number("start_time"))
        return not_running(fmt::format("process {}, which wrote {}, is gone", pid, path));
    document.erase("process");
    return document;
}

namespace {

json bool_or_null(std::optional<bool> known) {
    return known ? json(*known) : json(nullptr);
}

json work_json(const WatchedWork& work) {
    return {{"workqueue", work.workqueue.empty() ? json(nullptr) : json(work.workqueue)},
            {"kind", work.workqueue.empty() ? json(nullptr) : json(work.per_cpu ? "per-cpu" : "unbound")},
            {"function", work.function},
            {"items", work.items}};
}

}  // namespace

json isolation_json(const Isolation& isolation) {
    json partitions = json::array();
    for (const Partition& p : isolation.partitions)
        partitions.push_back({{"cgroup", p.cgroup.empty() ? json(nullptr) : json(p.cgroup)},
                              {"cpus", p.cpus.list()},
                              {"type", p.type}});
    return {{"isolcpus", isolation.isolcpus.list()},
            {"nohz_full", isolation.nohz_full.list()},
            {"partitions", std::move(partitions)},
            {"partitions_complete", isolation.complete}};
}

json counted_json(const Watched& watched) {
    json work = json::array();
    for (const WatchedWork& each : watched.work) work.push_back(work_json(each));
    return {{"work", std::move(work)},
            {"work_lost", watched.lost},
            {"work_seconds", std::round(watched.seconds * 10) / 10}};
}

json features_json(const KernelInfo& kernel, const KernelFeatures& features, bool cut_short) {
    json named = json::object();
    for (const NamedFeature& feature : kFeatures)
        named[std::string(feature.name)] = bool_or_null(features.*feature.value);
    if (cut_short) named["exact_parsing"] = false;
    return {{"release", kernel.release.empty() ? json(nullptr) : json(kernel.release)},
            {"features", std::move(named)}};
}

json pods_json(const KernelInfo& kernel, const Topology& topology) {
    json differ = json::object();
    for (const Scope scope : unlike_model(kernel, topology)) {
        json& lists = differ[std::string(name_of(scope))] = json::array();
        for (const CpuSet& pod : pods_in(kernel, scope, topology, 1)) lists.push_back(pod.list());
    }
    return {{"source", kernel.pods ? "kernel" : "model"},
            {"why", kernel.pods_unread.empty() ? json(nullptr) : json(kernel.pods_unread)},
            {"differ", std::move(differ)}};
}

}  // namespace wq
