// SPDX-License-Identifier: LGPL-2.1-or-later
// What wq-tunectl prints, word for word. golden/NAME.txt is a session of a shell in the root of a machine's
// tree:
// `## ` a comment, `$ ` a command, then its output and, unless it is 0, its exit code. `## machine: NAME`
// selects the tree. With WQ_TUNED_REWRITE_GOLDEN=1 the outputs are written again instead of compared.
#include <gtest/gtest.h>
#include <stdio.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "base/file.h"
#include "base/version.h"
#include "ctl/render/terminal.h"
#include "fake_machine.h"
#include "run_command.h"

namespace wq {
namespace {

namespace fs = std::filesystem;
using test::workqueue;

constexpr const char* kFolder = SOURCE_DIR "/tests/unit/golden/";

// The functions of a session. daemon_says JSON: status.json of a daemon that runs: this shell.
constexpr const char* kPrelude = R"sh(
export COLUMNS=160 LC_ALL=C.UTF-8 TZ=UTC TERM=dumb DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nowhere
wq-tunectl() { "$BIN" --root . "$@"; }
daemon_says() {
  mkdir -p "proc/$$" proc/sys/kernel/random run/wq-tuned
  cp "/proc/$$/stat" "proc/$$/stat"
  cp /proc/sys/kernel/random/boot_id proc/sys/kernel/random/boot_id
  printf '{"process":{"boot_id":"%s","pid":%s,"start_time":%s},%s\n' "$(cat /proc/sys/kernel/random/boot_id)" $$ \
    "$(cut -d ' ' -f 22 /proc/$$/stat)" "${1#?}" >run/wq-tuned/status.json
}
run() {
  printf '$ %s\n' "$1"
  eval "$1" </dev/null >"$OUT" 2>&1
  code=$?
  cat "$OUT"
  [ -z "$(tail -c 1 "$OUT")" ] || echo
  [ $code = 0 ] || echo "exit $code"
}
)sh";

// One LLC of 12 cores with two threads, and a kernel without shards: from `cache` the plan is smt, and cpu is
// finer. Or two sockets with four LLCs, and a kernel with shards.
std::vector<test::Entry> machine_called(const std::string& name) {
    const bool small = name == "small";
    const std::string mask = small ? "ffffff" : "ffffffff,ffffffff,ffffffff";
    const std::string word = small ? "default (cache)" : "default (cache_shard)";
    std::vector<test::Entry> workqueues;
    for (const char* each : {"kcryptd-254:0-1", "kcryptd-254:10-2", "writeback"})
        workqueues.push_back(workqueue(each, {.scope = word, .cpumask = mask}));
    workqueues.push_back(workqueue("ordered", {.scope = word, .cpumask = mask, .max_active = "1"}));
    auto out = small ? test::kernel_tree(workqueues, "cache", "", mask)
                     : test::kernel_tree(workqueues, "cache_shard", "8", mask);
    out.push_back(small ? test::cpu_tree({.cores = 12, .threads = 2})
                        : test::cpu_tree({.sockets = 2, .cores = 24, .threads = 2, .llcs = 2}));
    out.push_back(test::File("proc/sys/kernel/hostname", "a-host\n"));
    return out;
}

// The session TEXT with the outputs of today.
std::string played(const std::string& text) {
    std::string script = kPrelude;
    std::string machine;
    for (const std::string& line : test::lines_of(text)) {
        constexpr std::string_view kMachine = "## machine: ";
        if (line.starts_with(kMachine)) machine = line.substr(kMachine.size());
        if (line.starts_with("## ")) script += "echo " + ctl::shell_quoted(line) + "\n";
        if (line.starts_with("$ ")) script += "run " + ctl::shell_quoted(line.substr(2)) + "\n";
    }
    const test::TempTree tree(machine_called(machine));
    const test::TempTree scripts{test::File("session", script)};
    const char* other = ::getenv("WQ_TUNECTL");
    const fs::path program =
        other != nullptr ? fs::path(other)
                         : fs::read_symlink("/proc/self/exe").parent_path() / "../../daemon/wq-tunectl";
    const std::string command = "cd '" + tree.root() + "' && OUT='" + scripts.path("out") + "' BIN='" +
                                program.string() + "' bash '" + scripts.path("session") + "' 2>&1";
    FILE* output = ::popen(command.c_str(), "re");
    std::string out;
    std::array<char, 4096> part{};
    for (std::size_t n = 0; (n = ::fread(part.data(), 1, part.size(), output)) > 0;)
        out.append(part.data(), n);
    if (::pclose(output) != 0) throw std::runtime_error(command + " failed: " + out);
    return test::replaced(test::replaced(out, tree.root(), "ROOT"), version(), "VERSION");
}

// The first line in which NOW differs from BEFORE; "" if none does.
std::string unlike(const std::string& before, const std::string& now) {
    if (before == now) return "";
    const auto a = test::lines_of(before), b = test::lines_of(now);
    const auto [one, other] = std::ranges::mismatch(a, b);
    return "line " + std::to_string(one - a.begin() + 1) + "\n-" + (one == a.end() ? "" : *one) + "\n+" +
           (other == b.end() ? "" : *other);
}

std::vector<std::string> sessions() {
    std::vector<std::string> out;
    for (const auto& file : fs::directory_iterator(kFolder)) out.push_back(file.path().stem().string());
    std::sort(out.begin(), out.end());
    return out;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, Session) {
    const std::string file = kFolder + GetParam() + ".txt";
    const std::string before = read_file(file).value();
    const std::string now = played(before);
    if (::getenv("WQ_TUNED_REWRITE_GOLDEN") != nullptr)
        EXPECT_TRUE(replace_file(file, now));
    else
        EXPECT_EQ(unlike(before, now), "");
}

INSTANTIATE_TEST_SUITE_P(Text, Golden, testing::ValuesIn(sessions()),
                         [](const auto& session) { return session.param; });

}  // namespace
}  // namespace wq
