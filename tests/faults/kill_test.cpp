// SPDX-License-Identifier: LGPL-2.1-or-later
// kill -9 as the daemon enters each of its system calls, by ptrace(2).
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>

#include "scenario.h"

namespace wq::faults {
namespace {

// QEMU's user emulation has no ptrace(2).
bool can_trace() {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1);
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Continues to the next entry or exit of a system call. Returns false if CHILD has ended.
bool next_stop(pid_t child) {
    int signal = 0;
    for (;;) {
        int status = 0;
        ::ptrace(PTRACE_SYSCALL, child, nullptr, signal);
        if (::waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return false;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) return true;
        signal = WSTOPSIG(status);
    }
}

// Runs SCENARIO in a child and kills it at its AT-th system call (counted from 1). Returns their number.
unsigned live_and_die(const Scenario& scenario, Host& host, unsigned at) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(1);
        ::raise(SIGSTOP);
        live(scenario, host);
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) throw std::runtime_error("cannot be traced");
    ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
    unsigned calls = 0;
    for (; calls < at && next_stop(child); calls++) {
        if (calls + 1 == at) {
            ::kill(child, SIGKILL);
            ::waitpid(child, &status, 0);
            if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) throw std::runtime_error("not killed");
            return at;
        }
        if (!next_stop(child)) break;  // the exit
    }
    return calls;
}

class Kills : public testing::TestWithParam<std::size_t> {
  protected:
    void SetUp() override {
        if (!can_trace()) GTEST_SKIP() << "no process can be traced here";
    }
    const Scenario& scenario_ = scenarios()[GetParam()];
};

TEST_P(Kills, AtEachSystemCall) {
    Host whole(scenario_.options());
    const unsigned calls = live_and_die(scenario_, whole, ~0U);
    ASSERT_GT(calls, 300U);
    const unsigned stride = is_long() ? 1 : std::max(1U, calls / 16);
    unsigned points = 0;
    unsigned not_at_baseline = 0;
    unsigned wrong = 0;
    for (unsigned at = 1; at <= calls; at += stride) {
        Host host(scenario_.options());
        live_and_die(scenario_, host, at);
        points++;
        std::string said = wrong_on_disk(host);
        not_at_baseline += wrong_at_the_end(host).empty() ? 0 : 1;
        if (at / stride % 2 != 0) {  // the daemon starts again before ExecStopPost= has run
            host.start();
            host.ticks(1);
            host.stop();
        }
        said += host.restore();
        said += wrong_at_the_end(host);
        if (!said.empty() && ++wrong <= 10) ADD_FAILURE() << "killed at call " << at << ":\n" << said;
    }
    std::cout << scenario_.name << ": " << calls << " system calls, killed at " << points << " points, at "
              << not_at_baseline << " with something to restore, wrong " << wrong << "\n";
    EXPECT_EQ(wrong, 0U);
    EXPECT_GT(not_at_baseline, 0U);
}

// All scenarios but `foreign`: only the killed process knows what its external writer wrote.
std::vector<std::size_t> with_a_trace() {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < scenarios().size(); i++)
        if (scenarios()[i].name != "foreign") out.push_back(i);
    return out;
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Kills, testing::ValuesIn(with_a_trace()),
                         [](const auto& info) { return scenarios()[info.param].name; });

}  // namespace
}  // namespace wq::faults
