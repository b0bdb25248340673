// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "ctl/lab/ab.h"
#include "fake_machine.h"
#include "machine/workqueue_fs.h"
#include "owned/writer.h"
#include "run_command.h"

namespace wq::test {

// The machine on which `ab` runs: two workqueues, one of them with max_active 1, two kworkers of unbound
// pools, and a file of a block device.
inline std::vector<Entry> ab_tree() {
    auto out = kernel_tree({workqueue("kcryptd-1"), workqueue("one", {.max_active = "1"})});
    out.push_back(cpu_tree({.cores = 4, .threads = 2}));
    out.push_back(Dir("proc/1", {File("comm", "kworker/u16:0-events\n")}));
    out.push_back(Dir("proc/2", {File("comm", "kworker/2:0\n")}));
    out.push_back(Dir("proc/30", {File("comm", "kworker/u17:1\n")}));
    out.push_back(Dir("sys/block/sda/queue", {File("nr_requests", "64"), File("other", "none")}));
    out.push_back(File("etc/nr_requests", "64"));
    return out;
}

// Runs `wq-tunectl ab` on such a tree.
class AbCommand : public testing::Test {
  protected:
    static constexpr const char* kFile = "sys/block/sda/queue/nr_requests";
    static constexpr const char* kLeft = "run/wq-tuned/lab.json";
    static inline const std::vector<std::string> kValues{
        "--file", "/sys/block/sda/queue/nr_requests", "--values", "16,32", "--pairs", "3"};
    static inline const std::vector<std::string> kTwo{"--target",  "kcryptd-1", "--arms",
                                                      "cache,smt", "--pairs",   "3"};

    Ran ab(std::vector<std::string> words, const std::vector<std::string>& command) const {
        return captured([&] { return run(std::move(words), command); });
    }
    int run(std::vector<std::string> words, const std::vector<std::string>& command) const {
        return run_command(ctl::set_up_ab, std::move(words), {tree_.root(), command});
    }
    [[nodiscard]] std::string word() const {
        const auto file = parse_scope_file(tree_.read(wq_path("kcryptd-1")));
        return file ? file->word : "?";
    }
    [[nodiscard]] OwnedEntries on_disk() const { return saved_entries(tree_); }
    void expect_baseline() const {
        EXPECT_EQ(word(), "default");
        EXPECT_THAT(on_disk(), testing::IsEmpty());
        EXPECT_FALSE(tree_.exists(kLeft));
        EXPECT_EQ(tree_.read(kFile), "64");
        EXPECT_FALSE(tree_.exists("set"));
        EXPECT_TRUE(test::is_let_go(tree_.root())) << "somebody is left";
    }
    // Options for arms that are commands: the file "set" exists while the arm `on` is in place.
    [[nodiscard]] std::vector<std::string> on(const std::string& undo = "") const {
        const std::string set = tree_.path("set");
        return {"--arm",   "on",
                "--do",    "touch '" + set + "'",
                "--undo",  undo.empty() ? "rm '" + set + "'" : undo,
                "--pairs", "3"};
    }

    static std::vector<std::string> with(std::vector<std::string> words,
                                         const std::vector<std::string>& more) {
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }

    TempTree tree_{ab_tree()};
    // Command of a run: appends the scope of the target to "runs", one line per run.
    const std::string says_scope_ =
        "echo \"$(cat '" + tree_.path(wq_path("kcryptd-1")) + "')\" >>'" + tree_.path("runs") + "'";
};

}  // namespace wq::test
