// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_recording.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <utility>

namespace wq::ctl {
namespace {

using nlohmann::json;

std::optional<double> number_or_none(const json& value) {
    return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

// A count that does not apply is null in the line; the kernel's count is then 0.
std::uint64_t count_or_zero(const json& value) {
    return value.is_null() ? 0 : value.get<std::uint64_t>();
}

KernelWorkqueue workqueue_of(const json& line) {
    KernelWorkqueue out;
    out.name = line.at("name").get<std::string>();
    out.unbound = line.at("kind").get<std::string>() == "unbound";
    out.bh = line.at("cpu_seconds").is_null();
    out.managed = !line.at("cpu_hogs").is_null();
    out.mem_reclaim = !line.at("mayday").is_null();
    out.started = line.at("total").get<std::uint64_t>();
    out.completed = out.started - std::min(out.started, line.at("in_flight").get<std::uint64_t>());
    if (!out.bh)
        out.cpu_time_us =
            static_cast<std::uint64_t>(std::llround(line.at("cpu_seconds").get<double>() * 1e6));
    out.cpu_intensive = count_or_zero(line.at("cpu_hogs"));
    out.cm_wakeup = count_or_zero(line.at("cm_wakeups"));
    out.repatriated = count_or_zero(line.at("repatriated"));
    out.mayday = count_or_zero(line.at("mayday"));
    out.rescued = count_or_zero(line.at("rescued"));
    return out;
}

WorkqueueRow row_of(const json& line) {
    WorkqueueRow out;
    out.id = line.at("id").get<unsigned>();
    out.now = workqueue_of(line);
    out.reset = line.at("reset").get<bool>();
    out.items = line.at("items").get<std::uint64_t>();
    out.per_second = line.at("per_second").get<double>();
    out.cpu = number_or_none(line.at("cpu"));
    out.timed = line.at("timed").get<std::uint64_t>();
    out.p50 = number_or_none(line.at("wait_ns").at("p50"));
    out.p90 = number_or_none(line.at("wait_ns").at("p90"));
    out.p99 = number_or_none(line.at("wait_ns").at("p99"));
    out.lock = number_or_none(line.at("lock_ns"));
    return out;
}

FunctionRow function_of(const json& line) {
    FunctionRow out;
    out.id = line.at("id").get<unsigned>();
    out.workqueue = line.at("workqueue").get<std::string>();
    out.function = line.at("function").get<std::string>();
    out.items = line.at("items").get<std::uint64_t>();
    out.per_second = line.at("per_second").get<double>();
    out.busy = line.at("busy").get<double>();
    out.mean = line.at("mean_ns").get<double>();
    return out;
}

RecordedInterval parsed(const json& line, std::set<unsigned>& reset_before) {
    RecordedInterval out;
    out.time = line.at("time").get<std::int64_t>();
    out.limits = line.at("limits").get<std::string>();
    out.interval.seconds = line.at("seconds").get<double>();
    out.interval.lost = line.at("lost").get<std::uint64_t>();
    for (const auto& one : line.at("workqueues")) {
        WorkqueueRow row = row_of(one);
        if (row.reset) reset_before.insert(row.id);
        row.was_reset = reset_before.contains(row.id);
        out.interval.workqueues.push_back(std::move(row));
    }
    out.has_functions = line.contains("functions");
    if (out.has_functions)
        for (const auto& one : line.at("functions")) out.interval.functions.push_back(function_of(one));
    return out;
}

}  // namespace

Result<RecordedInterval> interval_of(const json& line, std::set<unsigned>& reset_before) {
    try {
        return parsed(line, reset_before);
    } catch (const json::exception&) {  // a key is missing, or a value has the wrong type
        return fail("not an interval of `wq-tunectl top --json`");
    }
}

Result<TopRecorder> TopRecorder::open(const std::string& path) {
    Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
    if (!file) return fail_errno(path, errno);
    return TopRecorder(path, std::move(file));
}

Status TopRecorder::add(const std::string& line) {
    // EINVAL: a pipe or a device, which cannot be truncated.
    if (!std::exchange(emptied_, true) && ::ftruncate(file_.get(), 0) != 0 && errno != EINVAL)
        return fail_errno(path_, errno);
    for (std::string_view rest = line; !rest.empty();) {
        const ssize_t done = ::write(file_.get(), rest.data(), rest.size());
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return fail_errno(path_, errno);
        rest.remove_prefix(static_cast<std::size_t>(done));
    }
    return {};
}

Result<TopRecording> TopRecording::open(const std::string& path) {
    struct stat found {};
    if (::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) return fail_errno(path, EISDIR);
    errno = 0;
    std::ifstream file(path);
    if (!file) return fail_errno(path, errno != 0 ? errno : EIO);
    return TopRecording(path, std::move(file));
}

Result<std::optional<RecordedInterval>> TopRecording::next() {
    std::string text;
    if (!std::getline(file_, text)) {
        if (file_.bad()) return fail_errno(path_, EIO);
        if (line_ == 0) return fail(path_ + ": it is empty");
        return std::nullopt;
    }
    line_++;
    const bool whole = !file_.eof();  // it ends with a newline
    const auto line = json::parse(text, nullptr, false);
    auto out = interval_of(line, reset_);
    if (out) return std::optional(std::move(*out));
    if (!whole && line_ > 1) {
        cut_off_ = true;
        return std::nullopt;
    }
    return fail(fmt::format("{}:{}: {}", path_, line_, out.error().text));
}

}  // namespace wq::ctl
