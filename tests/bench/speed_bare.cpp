// SPDX-License-Identifier: LGPL-2.1-or-later
#include "speed_bare.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace wq::test {
namespace {

constexpr const char* kRead[] = {"per_cpu", "affinity_scope", "max_active", "affinity_strict", "cpumask"};

void must(bool done) {
    if (done) return;
    std::perror("a bare loop");
    std::exit(1);
}

int opened(int dir, const char* file, int flags) {
    const int fd = ::openat(dir, file, flags | O_CLOEXEC | O_NOFOLLOW);
    must(fd >= 0);
    return fd;
}

void read_to_end(int dir, const char* file) {
    char buffer[4096];
    const int fd = opened(dir, file, O_RDONLY);
    ssize_t n = 0;
    do n = ::read(fd, buffer, sizeof buffer);
    while (n > 0);
    must(n == 0);
    ::close(fd);
}

void write_smt(int dir) {
    const int fd = opened(dir, "affinity_scope", O_WRONLY | O_TRUNC);
    must(::write(fd, "smt\n", 4) == 4);
    ::close(fd);
}

// Opens the folder of a workqueue, with the calls that check that it is one, and the same one.
int folder(const std::string& parent, const std::string& name) {
    const int dir = opened(AT_FDCWD, (parent + "/" + name).c_str(), O_RDONLY | O_DIRECTORY);
    must(::faccessat(dir, "per_cpu", F_OK, 0) == 0);
    struct stat st;
    must(::fstat(dir, &st) == 0);
    return dir;
}

void list(const std::string& parent) {
    DIR* dir = ::opendir(parent.c_str());
    must(dir != nullptr);
    while (const dirent* entry = ::readdir(dir)) {
        char file[300];
        std::snprintf(file, sizeof file, "%s/per_cpu", entry->d_name);
        (void)::faccessat(::dirfd(dir), file, F_OK, 0);
    }
    ::closedir(dir);
}

void save(const std::string& path, const std::string& text) {
    const std::string temporary = path + ".new";
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    must(fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    must(::fsync(fd) == 0 && ::close(fd) == 0);
    must(::rename(temporary.c_str(), path.c_str()) == 0);
}

void bare_look(const std::string& parent, const std::vector<std::string>& folders) {
    list(parent);
    read_to_end(AT_FDCWD, (parent + "/cpumask").c_str());
    for (const std::string& name : folders) {
        const int dir = folder(parent, name);
        for (const char* file : kRead) read_to_end(dir, file);
        struct stat st;
        must(::fstatat(dir, "max_active", &st, AT_SYMLINK_NOFOLLOW) == 0);
        ::close(dir);
    }
}

}  // namespace

void bare_same(const std::string& parent, const std::vector<std::string>& folders, const std::string& text,
               const std::string& path) {
    bare_look(parent, folders);
    save(path, text);
    for (const std::string& name : folders) {
        int dir = folder(parent, name);
        read_to_end(dir, "affinity_scope");
        ::close(dir);
        dir = folder(parent, name);
        write_smt(dir);
        ::close(dir);
        dir = folder(parent, name);
        read_to_end(dir, "affinity_scope");
        ::close(dir);
    }
}

}  // namespace wq::test
