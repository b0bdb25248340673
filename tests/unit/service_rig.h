// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "fake_machine.h"
#include "service/restorer.h"
#include "service/service.h"

namespace wq::test {

using OnChange = std::function<void(Udev::Change)>;
using Events = std::function<void(sd_event*, OnChange)>;

// For a Daemon: its SIGUSR1 is an event CHANGE of udev.
inline Events usr1_is(Udev::Change change) {
    return [change](sd_event* event, OnChange on_change) {
        static std::function<void()> tell;
        tell = [change, on_change = std::move(on_change)] { on_change(change); };
        ::sd_event_add_signal(
            event, nullptr, SIGUSR1,
            [](sd_event_source* /*source*/, const signalfd_siginfo* /*info*/, void* /*self*/) {
                tell();
                return 0;
            },
            nullptr);
    };
}

// Runs `wq-tuned --root TREE`; the destructor kills it. Signals that are sent before the daemon listens stay
// pending.
class Daemon {
  public:
    explicit Daemon(const TempTree& tree, Events events = {}) {
        sigset_t ours;
        sigset_t before;
        ::sigemptyset(&ours);
        for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) ::sigaddset(&ours, signal);
        ::sigprocmask(SIG_BLOCK, &ours, &before);
        child_ = ::fork();
        if (child_ != 0) {
            ::sigprocmask(SIG_SETMASK, &before, nullptr);
            return;
        }
        const int log = ::open(tree.path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
        ::dup2(log, STDERR_FILENO);
        ::_exit(Service({tree.root(), std::nullopt, std::move(events)}).run() ? 0 : 1);
    }
    ~Daemon() {
        if (child_ > 0) (void)end(SIGKILL);
    }
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;

    [[nodiscard]] pid_t pid() const { return child_; }
    void send(int signal) const { ::kill(child_, signal); }
    // Returns the exit status, or minus the signal that ended it.
    int wait() {
        int status = 0;
        EXPECT_GT(::waitpid(std::exchange(child_, -1), &status, 0), 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    int end(int signal) {
        send(signal);
        return wait();
    }

  private:
    pid_t child_ = -1;
};

// A tree that stands for the machine: 4 cores of 2 threads, two workqueues, and a policy that applies `smt`.
class ServiceTest : public testing::Test {
  protected:
    static constexpr const char* kPolicy = "etc/wq-tuned/wq-tuned.toml";
    static constexpr const char* kApply = "[[workqueue]]\nmatch = \"*\"\nscope = \"smt\"\n";
    static constexpr const char* kKeep =
        "[daemon]\non_exit = \"keep\"\n"
        "[[workqueue]]\nmatch = \"*\"\nscope = \"smt\"\n";

    ServiceTest() {
        tree_.add(cpu_tree({.cores = 4, .threads = 2}));
        tree_.write(kPolicy, kApply);
    }
    // Returns whether SO becomes true within a minute.
    static bool eventually(const std::function<bool()>& so) {
        for (int i = 0; i < 6000; i++) {
            if (so()) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return false;
    }
    [[nodiscard]] std::string scope() const { return tree_.read(wq_path("kcryptd")); }
    [[nodiscard]] bool applied() const {
        return eventually([&] { return scope() == "smt\n"; });
    }
    [[nodiscard]] bool logged(const std::string& text) const {
        return eventually(
            [&] { return tree_.exists("log") && tree_.read("log").find(text) != std::string::npos; });
    }
    [[nodiscard]] OwnedEntries entries() const { return saved_entries(tree_); }
    [[nodiscard]] ino_t inode_of(const std::string& name) const {
        struct stat st {};
        EXPECT_EQ(::stat(tree_.path("sys/devices/virtual/workqueue/" + name).c_str(), &st), 0);
        return st.st_ino;
    }
    [[nodiscard]] Status restore() const { return restore_after_exit({tree_.root()}); }

    TempTree tree_{kernel_tree({workqueue("kcryptd"), workqueue("writeback")})};
};

}  // namespace wq::test
