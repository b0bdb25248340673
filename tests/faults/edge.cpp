// SPDX-License-Identifier: LGPL-2.1-or-later
#include "edge.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace wq::faults {
namespace {

constexpr const char* kParameter = "/sys/module/workqueue/parameters/default_affinity_scope";

std::string first_line(const std::string& path) {
    const long fd = ::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC);
    char buffer[64];
    const long n = ::syscall(SYS_read, fd, buffer, sizeof buffer);
    ::syscall(SYS_close, fd);
    const std::string text(buffer, n > 0 ? static_cast<std::size_t>(n) : 0);
    return text.substr(0, text.find('\n'));
}

}  // namespace

bool SimKernel::plays(const std::string& path) const {
    return path.starts_with(root_ + "/sys/") &&
           (path.ends_with("affinity_scope") || path.ends_with("/affinity_strict"));
}

std::string SimKernel::show(const std::string& path) const {
    const std::string line = first_line(path);
    if (!line.starts_with("default")) return line + "\n";
    return "default (" + first_line(root_ + kParameter) + ")\n";
}

std::string SimKernel::word_for(const std::string& text) const {
    const std::string word = text.substr(0, text.find('\n'));
    for (const char* known : {"default", "cpu", "smt", "cache", "numa", "system"})
        if (prefixes_ ? word.starts_with(known) : word == known) return known;
    return !prefixes_ && word == "cache_shard" ? word : "";
}

int SimKernel::store(int fd, const std::string& path, const std::string& text) const {
    std::string line = text.substr(0, 1) + "\n";
    if (path.ends_with("/affinity_strict")) {
        if (line != "0\n" && line != "1\n") return EINVAL;
    } else {
        line = word_for(text) + "\n";
        if (line == "\n" || (path == root_ + kParameter && line == "default\n")) return EINVAL;
    }
    ::syscall(SYS_pwrite64, fd, line.data(), line.size(), 0);
    return 0;
}

std::string_view name_of(Call call) {
    static constexpr std::string_view kNames[] = {"open",  "read",   "write", "fsync", "rename", "unlink",
                                                  "mkdir", "access", "stat",  "list",  "chmod"};
    return kNames[static_cast<int>(call)];
}

std::string Fault::text() const {
    static constexpr const char* kKinds[] = {"", "short", "torn "};
    static constexpr const char* kWheres[] = {"", " of the kernel's files", " of our own files"};
    return fmt::format("{}{}{}{}{}", kKinds[static_cast<int>(kind)], code == 0 ? "" : ::strerrorname_np(code),
                       lasting ? ", lasting" : "", writing ? ", what writes" : "",
                       kWheres[static_cast<int>(where)]);
}

void Edge::fail(unsigned at, const Fault& fault) {
    fault_ = fault;
    at_ = at;
    calls_ = 0;
    struck_.clear();
}

const Fault* Edge::count(Call call, const std::string& path, bool writing) {
    calls_++;
    if (at_ == 0 || (fault_.lasting ? calls_ < at_ : calls_ != at_)) return nullptr;
    const bool kernel = path.starts_with(root_ + "/sys/") || path.starts_with(root_ + "/proc/");
    if (fault_.where != Fault::Where::anywhere && kernel != (fault_.where == Fault::Where::kernel))
        return nullptr;
    if (fault_.writing && !writing) return nullptr;
    // A fault that does not apply to the call (a short rename) is ignored.
    if (fault_.kind != Fault::Kind::error && call != Call::write &&
        (call != Call::read || fault_.kind == Fault::Kind::torn))
        return nullptr;
    if (struck_.empty()) struck_ = fmt::format("{} {}", name_of(call), relative(path));
    return &fault_;
}

void Edge::tell(Call call, const std::string& path, const std::string& text) const {
    if (record) record({call, relative(path), text});
}

}  // namespace wq::faults
