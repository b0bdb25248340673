// SPDX-License-Identifier: LGPL-2.1-or-later
// Replaces the functions of the C library that the daemon uses on files, for this whole program: the linker
// finds these first, also for the calls of the C++ library. They make the same system calls.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>

#include "edge.h"

namespace wq::faults {
namespace {

Edge* the_edge = nullptr;

// The path of each open file below the tree, by file descriptor.
std::array<std::string, 256>& names() {
    static std::array<std::string, 256> all;
    return all;
}

std::string name_of_fd(int fd) {
    return fd >= 0 && static_cast<std::size_t>(fd) < names().size() ? names()[fd] : "";
}

// Also while the edge rests: the lock stays open for long.
void remember(int fd, const std::string& path) {
    if (the_edge == nullptr || fd < 0 || static_cast<std::size_t>(fd) >= names().size()) return;
    names()[static_cast<std::size_t>(fd)] = the_edge->has(path) ? path : "";
}

std::string path_at(int dir, const char* path) {
    if (the_edge == nullptr || *path == '/' || dir == AT_FDCWD) return path;
    return name_of_fd(dir) + "/" + path;
}

bool is_ours(const std::string& path) {
    return the_edge != nullptr && the_edge->covers(path);
}

template <class... Args>
long sys(long number, Args... args) {
    return ::syscall(number, args...);
}

template <class Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// Returns whether the call must fail, and then sets errno.
bool fails(Call call, const std::string& path, bool writing) {
    if (!is_ours(path)) return false;
    const Fault* fault = the_edge->count(call, path, writing);
    if (fault != nullptr) errno = fault->code;
    return fault != nullptr;
}

template <class Do>
int call(Call which, const std::string& path, bool writing, const Do& run, const std::string& told = "") {
    if (fails(which, path, writing)) return -1;
    const int out = static_cast<int>(run());
    if (out >= 0 && is_ours(path)) the_edge->tell(which, path, told);
    return out;
}

int open_file(int dir, const char* name, int flags, mode_t mode) {
    const std::string path = path_at(dir, name);
    // O_TRUNC does nothing in sysfs.
    if (is_ours(path) && the_edge->kernel().plays(path)) flags &= ~O_TRUNC;
    const bool makes = (flags & (O_CREAT | O_TRUNC)) != 0;
    const int fd = call(
        Call::open, path, (flags & O_ACCMODE) != O_RDONLY,
        [&] { return sys(SYS_openat, dir, name, flags, mode); }, makes ? "create" : "");
    remember(fd, path);
    return fd;
}

ssize_t write_kernel(int fd, const std::string& path, const std::string& text, const Fault* fault) {
    const bool half = fault != nullptr && fault->kind == Fault::Kind::short_one;
    const std::string taken = half ? text.substr(0, (text.size() + 1) / 2) : text;
    if (const int error = the_edge->kernel().store(fd, path, taken); error != 0) {
        errno = error;
        return -1;
    }
    the_edge->tell(Call::write, path, taken);
    return static_cast<ssize_t>(taken.size());
}

ssize_t write_file(int fd, const std::string& path, const std::string& text, const Fault* fault) {
    const std::string taken = fault != nullptr ? text.substr(0, (text.size() + 1) / 2) : text;
    const auto n = sys(SYS_write, fd, taken.data(), taken.size());
    if (n > 0) the_edge->tell(Call::write, path, taken.substr(0, static_cast<std::size_t>(n)));
    return n;
}

ssize_t write_ours(int fd, const std::string& path, const std::string& text) {
    const Fault* fault = the_edge->count(Call::write, path, true);
    ssize_t n = -1;
    if (fault == nullptr || fault->kind != Fault::Kind::error)
        n = the_edge->kernel().plays(path) ? write_kernel(fd, path, text, fault)
                                           : write_file(fd, path, text, fault);
    if (fault == nullptr || fault->kind == Fault::Kind::short_one) return n;
    errno = fault->code;
    return -1;
}

ssize_t read_ours(int fd, const std::string& path, char* data, std::size_t size) {
    const Fault* fault = the_edge->count(Call::read, path, false);
    if (fault != nullptr && fault->kind == Fault::Kind::error) {
        errno = fault->code;
        return -1;
    }
    if (fault != nullptr) size = std::min<std::size_t>(size, 1);
    if (!the_edge->kernel().plays(path)) return sys(SYS_read, fd, data, size);
    const std::string text = the_edge->kernel().show(path);
    const auto at = static_cast<std::size_t>(::lseek(fd, 0, SEEK_CUR));
    if (at >= text.size()) return 0;
    const std::size_t n = text.copy(data, size, at);
    ::lseek(fd, static_cast<off_t>(at + n), SEEK_SET);
    return static_cast<ssize_t>(n);
}

}  // namespace

Edge::Edge(std::string root, const SimKernel& kernel) : root_(std::move(root)), kernel_(kernel) {
    names();
    the_edge = this;
}

Edge::~Edge() {
    the_edge = nullptr;
}

}  // namespace wq::faults

using wq::faults::Call;
namespace ours = wq::faults;

extern "C" {

int open(const char* path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const mode_t mode = va_arg(list, mode_t);
    va_end(list);
    return ours::open_file(AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char* path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const mode_t mode = va_arg(list, mode_t);
    va_end(list);
    return ours::open_file(dir, path, flags, mode);
}

ssize_t read(int fd, void* data, size_t size) {
    const std::string path = ours::the_edge == nullptr ? "" : ours::name_of_fd(fd);
    if (!ours::is_ours(path)) return ours::sys(SYS_read, fd, data, size);
    return ours::read_ours(fd, path, static_cast<char*>(data), size);
}

ssize_t write(int fd, const void* data, size_t size) {
    const std::string path = ours::the_edge == nullptr ? "" : ours::name_of_fd(fd);
    if (!ours::is_ours(path)) return ours::sys(SYS_write, fd, data, size);
    return ours::write_ours(fd, path, {static_cast<const char*>(data), size});
}

int close(int fd) {
    ours::remember(fd, "");
    return static_cast<int>(ours::sys(SYS_close, fd));
}

int fsync(int fd) {
    const std::string path = ours::the_edge == nullptr ? "" : ours::name_of_fd(fd);
    return ours::call(Call::fsync, path, true, [&] { return ours::sys(SYS_fsync, fd); });
}

int rename(const char* from, const char* to) noexcept {
    const std::string told = ours::is_ours(to) ? ours::the_edge->relative(to) : "";
    return ours::call(
        Call::rename, from, true, [&] { return ours::sys(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0); },
        told);
}

int unlink(const char* path) noexcept {
    return ours::call(Call::unlink, path, true, [&] { return ours::sys(SYS_unlinkat, AT_FDCWD, path, 0); });
}

int mkdir(const char* path, mode_t mode) noexcept {
    return ours::call(Call::mkdir, path, true, [&] { return ours::sys(SYS_mkdirat, AT_FDCWD, path, mode); });
}

int access(const char* path, int mode) noexcept {
    return ours::call(Call::access, path, false,
                      [&] { return ours::sys(SYS_faccessat, AT_FDCWD, path, mode); });
}

int faccessat(int dir, const char* path, int mode, int) noexcept {
    return ours::call(Call::access, ours::path_at(dir, path), false,
                      [&] { return ours::sys(SYS_faccessat, dir, path, mode); });
}

int fstat(int fd, struct stat* st) noexcept {
    const std::string path = ours::the_edge == nullptr ? "" : ours::name_of_fd(fd);
    return ours::call(Call::stat, path, false, [&] { return ours::next<decltype(fstat)>("fstat")(fd, st); });
}

int fstatat(int dir, const char* path, struct stat* st, int flags) noexcept {
    return ours::call(Call::stat, ours::path_at(dir, path), false,
                      [&] { return ours::next<decltype(fstatat)>("fstatat")(dir, path, st, flags); });
}

int fchmod(int fd, mode_t mode) noexcept {
    const std::string path = ours::the_edge == nullptr ? "" : ours::name_of_fd(fd);
    return ours::call(Call::chmod, path, true, [&] { return ours::sys(SYS_fchmod, fd, mode); });
}

DIR* opendir(const char* path) {
    if (ours::fails(Call::list, path, false)) return nullptr;
    DIR* dir = ours::next<decltype(opendir)>("opendir")(path);
    if (dir != nullptr) ours::remember(::dirfd(dir), path);
    return dir;
}

struct dirent* readdir(DIR* dir) {
    const std::string path = ours::the_edge == nullptr ? "" : ours::name_of_fd(::dirfd(dir));
    if (ours::fails(Call::list, path, false)) return nullptr;
    return ours::next<decltype(readdir)>("readdir")(dir);
}

}  // extern "C"
