// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim_kernel.h"

namespace wq::faults {

// The calls of the C library by which the daemon reaches files. Those below a tree are counted, fail as told
// and are told of; all others pass. (close(2) is not among them: the daemon does not look at what it says.)
enum class Call { open, read, write, fsync, rename, unlink, mkdir, access, stat, list, chmod };
std::string_view name_of(Call call);

// How a call goes wrong.
struct Fault {
    enum class Kind {
        error,      // does nothing, fails with `code`
        short_one,  // of a read, one byte; of a write, half
        torn,       // of a write, half is written (by the kernel's own files, all is taken), then `code`
    };
    enum class Where { anywhere, kernel, stores };  // /sys and /proc; all else
    Kind kind = Kind::error;
    int code = 0;
    bool lasting = false;  // all calls from then on, where it applies
    Where where = Where::anywhere;
    bool writing = false;  // only what writes: ENOSPC, EROFS
    [[nodiscard]] std::string text() const;
};

// What was done, for those who record it.
struct Done {
    Call call{};
    std::string path;  // relative to the tree
    std::string text;  // what was written; where it was renamed to; "create" of an open that made a file
};

// The edge between the daemon and one tree. Only one may be at a time, since the C library's functions are
// replaced for the whole program.
class Edge {
  public:
    Edge(std::string root, const SimKernel& kernel);
    ~Edge();
    Edge(const Edge&) = delete;
    Edge& operator=(const Edge&) = delete;

    // The AT-th call from now on (1 is the next) fails so.
    void fail(unsigned at, const Fault& fault);
    void heal() { at_ = 0; }
    // Between a watch() and a rest(), calls are counted, fail and are recorded.
    void watch() { watching_ = true; }
    void rest() { watching_ = false; }

    [[nodiscard]] unsigned calls() const { return calls_; }
    [[nodiscard]] const std::string& struck() const { return struck_; }  // "write run/...": "" if none did
    std::function<void(const Done&)> record;

    // For the replaced functions.
    [[nodiscard]] bool has(const std::string& path) const { return path.starts_with(root_ + "/"); }
    [[nodiscard]] bool covers(const std::string& path) const { return watching_ && has(path); }
    [[nodiscard]] std::string relative(const std::string& path) const {
        return path.substr(root_.size() + 1);
    }
    // The fault that is due at this call, or nullptr.
    const Fault* count(Call call, const std::string& path, bool writing);
    void tell(Call call, const std::string& path, const std::string& text) const;
    [[nodiscard]] const SimKernel& kernel() const { return kernel_; }

  private:
    std::string root_;
    SimKernel kernel_;
    Fault fault_;
    unsigned at_ = 0;
    unsigned calls_ = 0;
    bool watching_ = false;
    std::string struck_;
};

}  // namespace wq::faults
