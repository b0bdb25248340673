// SPDX-License-Identifier: LGPL-2.1-or-later
// Only in a coverage build: exit() writes gcov's counts, but a process that ends by _exit() or exec does not
// call it. The linker replaces the C library's functions by these (--wrap, daemon/CMakeLists.txt).
// These functions are not async-signal-safe, but a signal handler calls them when the alarm ends `top`: such
// a build can hang there.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <vector>

// NOLINTBEGIN(bugprone-reserved-identifier): the names are libgcov's and the linker's
extern "C" {
void __gcov_dump();
void __gcov_reset();
pid_t __real_fork();
[[noreturn]] void __real__exit(int code);
int __real_execvp(const char* file, char* const words[]);

// Other processes, which may not be root, add to the same files.
static void write_counts() {
    const mode_t mask = ::umask(0);
    __gcov_dump();
    ::umask(mask);
}

[[gnu::destructor]] static void at_exit() {  // before libgcov's own destructor, which finds it done
    write_counts();
}

// The child must not write again what the parent has counted so far.
pid_t __wrap_fork() {
    const pid_t pid = __real_fork();
    if (pid == 0) __gcov_reset();
    return pid;
}

[[noreturn]] void __wrap__exit(int code) {
    write_counts();
    __real__exit(code);
}

int __wrap_execvp(const char* file, char* const words[]) {
    write_counts();
    __real_execvp(file, words);
    __gcov_reset();  // exec failed: the next dump must write only what follows
    return -1;
}

int __wrap_execlp(const char* file, const char* word, ...) {
    std::vector<char*> words;
    std::va_list more;
    va_start(more, word);
    for (const char* one = word; one != nullptr; one = va_arg(more, const char*))
        words.push_back(const_cast<char*>(one));
    va_end(more);
    words.push_back(nullptr);
    return __wrap_execvp(file, words.data());
}
}
// NOLINTEND(bugprone-reserved-identifier)
