// SPDX-License-Identifier: LGPL-2.1-or-later
#include "edge.h"

#include <fmt/format.h>

#include <cstring>

namespace wq::faults {

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
