// SPDX-License-Identifier: LGPL-2.1-or-later
// Preloaded into the daemon by the check kill-each-step: KILL_AT=write:3 ends it by SIGKILL as it enters the
// third write(2). (strace can do the same, but stops at every system call, which takes ten times as long in
// an emulator.)
#include <dlfcn.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void count(const char* call) {
    static int calls = 0;
    static const char* at = std::getenv("KILL_AT");
    const std::size_t length = std::strlen(call);
    if (at == nullptr || std::strncmp(at, call, length) != 0 || at[length] != ':') return;
    if (++calls == std::atoi(at + length + 1)) ::kill(::getpid(), SIGKILL);
}

template <class Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" ssize_t write(int fd, const void* data, size_t size) {
    count("write");
    return next<ssize_t(int, const void*, size_t)>("write")(fd, data, size);
}

extern "C" int fsync(int fd) {
    count("fsync");
    return next<int(int)>("fsync")(fd);
}

extern "C" int rename(const char* from, const char* to) noexcept {
    count("rename");
    return next<int(const char*, const char*)>("rename")(from, to);
}
