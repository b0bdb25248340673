// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace wq::faults {

// Simulates the kernel for the files of a tree that the daemon writes. It refuses a word that is not a scope,
// takes a write as a whole, and shows `default (cache)` with the current module parameter. Only the first
// line of a file in the tree counts; the rest is left over from longer lines before.
class SimKernel {
  public:
    // PREFIXES: before 7.1 a scope's name was matched by its beginning (parse_affn_scope()).
    SimKernel(std::string root, bool prefixes) : root_(std::move(root)), prefixes_(prefixes) {}

    // Whether PATH is one of those files.
    [[nodiscard]] bool plays(const std::string& path) const;
    // What PATH shows now, with a newline at the end.
    [[nodiscard]] std::string show(const std::string& path) const;
    // Stores TEXT as if written to PATH, which is open as FD. Returns 0 or an errno. Makes one system call,
    // so that a kill cannot leave half of it.
    [[nodiscard]] int store(int fd, const std::string& path, const std::string& text) const;

  private:
    [[nodiscard]] std::string word_for(const std::string& text) const;
    std::string root_;
    bool prefixes_;
};

// The calls of the C library with which the daemon uses files. Calls on files below a tree are counted, fail
// on request and are recorded; all others pass. (close(2) is left out: the daemon does not check its result.)
enum class Call { open, read, write, fsync, rename, unlink, mkdir, access, stat, list, chmod };
std::string_view name_of(Call call);

// How a call goes wrong.
struct Fault {
    enum class Kind {
        error,      // does nothing, fails with `code`
        short_one,  // a read gets one byte, a write writes half
        torn,       // a write writes half (the kernel's files: all), then fails with `code`
    };
    enum class Where { anywhere, kernel, stores };  // kernel: /sys and /proc; stores: all else
    Kind kind = Kind::error;
    int code = 0;
    bool lasting = false;  // also all later calls to which it applies
    Where where = Where::anywhere;
    bool writing = false;  // only calls that write
    [[nodiscard]] std::string text() const;
};

// A call that was made, for Edge::record.
struct Done {
    Call call{};
    std::string path;  // relative to the tree
    std::string text;  // text written; new name of a rename; "create" if an open made or truncated a file
};

// The edge between the daemon and one tree. Only one may exist at a time, because the functions of the C
// library are replaced for the whole program.
class Edge {
  public:
    Edge(std::string root, const SimKernel& kernel);
    ~Edge();
    Edge(const Edge&) = delete;
    Edge& operator=(const Edge&) = delete;

    // The AT-th call from now on (1 is the next) fails with FAULT.
    void fail(unsigned at, const Fault& fault);
    void heal() { at_ = 0; }
    // Between a watch() and a rest(), calls are counted, fail and are recorded.
    void watch() { watching_ = true; }
    void rest() { watching_ = false; }

    [[nodiscard]] unsigned calls() const { return calls_; }
    [[nodiscard]] const std::string& struck() const { return struck_; }  // "write run/..."; "" if none failed
    std::function<void(const Done&)> record;

    // For the replaced functions.
    [[nodiscard]] bool has(const std::string& path) const { return path.starts_with(root_ + "/"); }
    [[nodiscard]] bool covers(const std::string& path) const { return watching_ && has(path); }
    [[nodiscard]] std::string relative(const std::string& path) const {
        return path.substr(root_.size() + 1);
    }
    // Counts the call. Returns the fault that it gets, or nullptr.
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
