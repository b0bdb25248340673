// SPDX-License-Identifier: LGPL-2.1-or-later
// The arms of a comparison: how they are switched, and that whatever they left is put back.
#include "ctl/lab/arms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <syslog.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <set>

#include "base/file.h"
#include "fake_bench.h"
#include "fake_log.h"
#include "fake_machine.h"
#include "temp_tree.h"

namespace wq::lab {
namespace {

using test::File;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kPath = "/sys/value";

// Kernel files. A read may show the written value in another format.
class FakeFiles : public ValueFiles {
  public:
    std::map<std::string, Content> files{{kPath, {"8\n", 1}}};
    std::function<std::string(const std::string& value)> shows = [](const std::string& v) {
        return v + "\n";
    };
    std::function<void()> before_write = [] {};
    std::vector<std::string> writes;
    std::string refuses;            // writing this value fails with EINVAL
    std::vector<int> write_errors;  // of the next writes
    int read_error = 0;

    std::string& content() { return files[kPath].text; }
    [[nodiscard]] Result<Content> read(const std::string& path) const override {
        if (read_error != 0) return fail_errno(path, read_error);
        const auto found = files.find(path);
        if (found == files.end()) return fail_errno(path, ENOENT);
        return found->second;
    }
    Status write(const std::string& path, ino_t inode, const std::string& value) override {
        before_write();
        int error = value == refuses ? EINVAL : files[path].inode != inode ? ENODEV : 0;
        if (!write_errors.empty()) {
            error = write_errors.front();
            write_errors.erase(write_errors.begin());
        }
        if (error != 0) return fail_errno(path + ": writing '" + value + "'", error);
        writes.push_back(value);
        files[path].text = shows(value);
        return {};
    }
};

// Each test switches, and then puts back as the guardian or the next run does.
class Switching : public testing::Test {
  protected:
    [[nodiscard]] std::vector<Left> on_disk() const {
        const auto left = store_.load();
        EXPECT_TRUE(left) << left.error().text;
        return left ? *left : std::vector<Left>{};
    }
    bool put_back(bool again = false) {
        return lab::put_back(store_, {files_, devices_, shell_}, log_, again);
    }
    // Puts back, and then kPath has CONTENT.
    void expect_back(const std::string& content, const std::string& where = "") {
        EXPECT_TRUE(put_back()) << where;
        EXPECT_EQ(files_.content(), content) << where;
        EXPECT_THAT(on_disk(), IsEmpty()) << where;
    }
    ArmSwitcher of(const Subject& subject) {
        return {{files_, shell_, shell_, [this] { return signal_; }}, store_, subject};
    }
    ArmSwitcher switcher(std::vector<std::string> values) {
        return of({"", {}, {{kPath, std::move(values)}}});
    }

    test::TempTree tree_;
    FakeFiles files_;
    test::FakeDevices devices_{tree_};
    LeftStore store_{tree_.path("lab.json")};
    test::FakeLog log_;
    std::vector<std::string> ran_;
    std::string fails_;  // the command that fails
    Status signal_;      // received during a command
    const Shell shell_ = [this](const std::string& command) {
        ran_.push_back(command);
        return command == fails_ ? Status(fail("'" + command + "': exit code 3: no such thing")) : Status{};
    };
};

class FileSwitching : public Switching {};

TEST_F(FileSwitching, TheOriginalIsOnDiskBeforeTheFirstWrite) {
    auto s = switcher({"16", "32"});
    unsigned seen = 0;
    files_.before_write = [&] {
        ASSERT_EQ(on_disk().size(), 1U);
        const auto left = std::get<LeftFile>(on_disk().front());
        EXPECT_EQ(left.path, kPath);
        EXPECT_EQ(left.original, "8\n");
        EXPECT_EQ(left.inode, 1U);
        seen++;
    };
    ASSERT_TRUE(s.begin());
    EXPECT_EQ(seen, 3U);
    EXPECT_THAT(files_.writes, ElementsAre("8", "16", "32")) << "its own first: it can be put back";
    for (const unsigned arm : {0U, 0U, 1U}) ASSERT_TRUE(s.to(arm));
    EXPECT_THAT(files_.writes, ElementsAre("8", "16", "32", "16", "16", "32")) << "what is in place too";
    EXPECT_TRUE(s.check());
    expect_back("8\n");
}

// How the kernel shows the values, and what then stands in the file after the last arm and afterwards.
TEST_F(FileSwitching, ValuesAreComparedAsTheKernelShowsThem) {
    std::set<std::string> loaded;  // schedulers: writing one loads its module, and then the file shows it
    const auto scheduler = [&](const std::string& value) {
        loaded.insert(value);
        std::string out;
        for (const std::string& word : loaded) out += (word == value ? "[" + word + "]" : word) + " ";
        return out + "\n";
    };
    const auto yes_or_no = [](const std::string& v) { return v == "1" || v == "Y" ? "Y\n" : "N\n"; };
    const auto as_written = [](const std::string& v) { return v + "\n"; };
    const struct {
        std::function<std::string(const std::string&)> shows;
        std::string original;
        std::vector<std::string> values;
        std::string last, back;
    } cases[] = {
        {as_written, "8\n", {"16", "32", "64", "128"}, "128\n", "8\n"},
        {as_written, "core [%p]\n", {"a", "b"}, "b\n", "core [%p]\n"},
        {yes_or_no, "N\n", {"0", "1"}, "Y\n", "N\n"},
        {scheduler,
         "[mq-deadline] none \n",
         {"none", "bfq"},
         "[bfq] mq-deadline none \n",
         "bfq [mq-deadline] none \n"},
    };
    for (const auto& each : cases) {
        loaded = {"mq-deadline", "none"};
        files_.shows = each.shows;
        files_.content() = each.original;
        auto s = switcher(each.values);
        ASSERT_TRUE(s.begin()) << each.original;
        for (std::size_t arm = 0; arm < each.values.size(); arm++) ASSERT_TRUE(s.to(arm)) << each.original;
        EXPECT_TRUE(s.check());
        EXPECT_EQ(files_.content(), each.last);
        expect_back(each.back, each.original);
    }
}

TEST_F(FileSwitching, WhatAFileDoesNotTakeEndsItBeforeTheFirstRun) {
    const auto yes_or_no = [](const std::string& v) { return v == "1" || v == "Y" ? "Y\n" : "N\n"; };
    const auto as_written = [](const std::string& v) { return v + "\n"; };
    const struct {
        std::string original, refuses;
        std::function<std::string(const std::string&)> shows;
        std::vector<std::string> values;
        std::string says;
    } cases[] = {
        {"N\n", "", yes_or_no, {"1", "Y"}, "'1' and 'Y' are the same setting: it shows 'Y' after each"},
        {"8\n", "many", as_written, {"16", "many"}, "writing 'many': Invalid argument"},
        {"default (cache)\n", "default (cache)", as_written, {"smt", "cpu"}, "writing 'default (cache)'"},
        {"\xff\xfe", "", as_written, {"16", "32"}, "not UTF-8"},
    };
    for (const auto& each : cases) {
        files_.shows = each.shows;
        files_.refuses = each.refuses;
        files_.content() = each.original;
        const auto begun = switcher(each.values).begin();
        ASSERT_FALSE(begun) << each.original;
        EXPECT_THAT(begun.error().text, HasSubstr(each.says));
        expect_back(each.original);
    }
    files_.content() = "8\n";
    files_.shows = [](const std::string& v) { return v + v + "\n"; };
    const auto begun = switcher({"16", "32"}).begin();
    ASSERT_FALSE(begun);
    EXPECT_THAT(begun.error().text, HasSubstr("writing the original value '8' does not restore it"));
    EXPECT_FALSE(put_back());
    EXPECT_EQ(on_disk().size(), 1U) << "for `ab --restore`";
    EXPECT_EQ(log_.at_least(LOG_ERR), 1U);
}

// An arm's own value is an external writer's if we did not write it last.
TEST_F(FileSwitching, AForeignValueEndsItAndStays) {
    for (const std::string foreign : {"99", "32", "8"})
        for (const bool crash : {false, true}) {
            files_.content() = "8\n";
            auto s = switcher({"16", "32"});
            ASSERT_TRUE(s.begin());
            ASSERT_TRUE(s.to(0));
            files_.content() = foreign + "\n";
            if (!crash) {
                const auto to = s.to(1);
                ASSERT_FALSE(to);
                EXPECT_EQ(to.error().text,
                          "/sys/value: an external writer wrote '" + foreign + "', which is left as it is");
                EXPECT_THAT(on_disk(), IsEmpty());
            }
            expect_back(foreign + "\n");
        }
    EXPECT_EQ(log_.count(Event::external), 2U);
}

// `ab` and its guardian are killed before a write, or between a write and the next read.
TEST_F(FileSwitching, ACrashAtAnyWriteLeavesNothing) {
    struct Crash {};
    for (const bool written : {false, true})
        for (const unsigned write : {1U, 2U, 3U, 4U, 5U}) {
            unsigned n = 0;
            files_.content() = "8\n";
            files_.before_write = [&] {
                if (!written && ++n == write) throw Crash();
            };
            files_.shows = [&](const std::string& v) {
                files_.content() = v + "\n";
                if (written && ++n == write) throw Crash();
                return v + "\n";
            };
            auto s = switcher({"16", "32"});
            EXPECT_THROW(
                {
                    (void)s.begin();
                    (void)s.to(0);
                    (void)s.to(1);
                },
                Crash);
            EXPECT_EQ(on_disk().size(), 1U);
            EXPECT_EQ(files_.content() == "8\n", write < 2 + (written ? 0U : 1U));
            files_.before_write = [] {};
            files_.shows = [](const std::string& v) { return v + "\n"; };
            expect_back("8\n", std::to_string(write));
        }
}

TEST_F(FileSwitching, AFileThatWentOrIsAnotherOneNeedsNothing) {
    for (const int how : {ENOENT, EIO, 0}) {
        files_.files[kPath] = {"8\n", 1};
        files_.read_error = 0;
        auto s = switcher({"16", "32"});
        ASSERT_TRUE(s.begin());
        files_.read_error = how;
        if (how == 0) files_.files[kPath].inode = 2;
        EXPECT_FALSE(s.to(0));
        EXPECT_EQ(put_back(), how != EIO);
        EXPECT_EQ(on_disk().empty(), how != EIO) << "what cannot be read stays on disk";
        files_.read_error = 0;
        expect_back(how == EIO ? "8\n" : "32\n");
    }
}

TEST_F(Switching, AFileOfLeftThatIsBrokenIsToldOfAndKept) {
    unsigned told = 0;
    for (const std::string text :
         {"nonsense\n", "{}", R"({"version": 2, "entries": []})",
          R"({"version": 1, "entries": [{"kind": "x"}]})",
          R"({"version": 1, "entries": [{"kind": "device", "name": "../x", "driver": false}]})"}) {
        tree_.add(File("lab.json", text));
        EXPECT_FALSE(put_back()) << text;
        EXPECT_FALSE(switcher({"16", "32"}).begin()) << text;
        EXPECT_EQ(tree_.read("lab.json"), text);
        EXPECT_EQ(log_.at_least(LOG_ERR), ++told);
    }
    EXPECT_THAT(files_.writes, IsEmpty());
}

// Scopes: the first word of a file is its value.
class ScopeSwitching : public Switching {
  protected:
    const Topology machine_ = test::machine({.cores = 4, .threads = 2});
    ScopeSwitching() { content("kcryptd") = "default (cache)\n"; }
    [[nodiscard]] std::string path(const std::string& name, const char* file = "affinity_scope") const {
        return tree_.root() + (name == kDefaultTarget
                                   ? "/sys/module/workqueue/parameters/default_affinity_scope"
                                   : "/sys/devices/virtual/workqueue/" + name + "/" + file);
    }
    std::string& content(const std::string& name) {
        files_.files[path(name)].inode = 1;
        return files_.files[path(name)].text;
    }
    std::string& strict() {
        files_.files[path("kcryptd", "affinity_strict")].inode = 1;
        return files_.files[path("kcryptd", "affinity_strict")].text;
    }
    ArmSwitcher scopes(const std::string& arms, const std::string& name = "kcryptd") {
        Workqueue target = name == kDefaultTarget ? test::default_target(machine_, Scope::cache)
                                                  : test::unbound(machine_, Scope::cache);
        target.name = name;
        return of(*scope_arms({tree_.root()}, {machine_, test::kernel_612()}, target, *parse_arms(arms)));
    }
};

TEST_F(ScopeSwitching, IsWrittenOnceForEachRunAndPutBack) {
    auto s = scopes("smt,cache");
    ASSERT_TRUE(s.begin());
    EXPECT_THAT(files_.writes, IsEmpty()) << "how a scope is shown is known";
    content("kcryptd") = "default (smt)\n";  // an external writer wrote @default: still the baseline
    files_.before_write = [&] { EXPECT_EQ(on_disk().size(), 1U); };
    for (const unsigned arm : {0U, 0U, 1U}) ASSERT_TRUE(s.to(arm));
    EXPECT_THAT(files_.writes, ElementsAre("smt", "smt", "cache"));
    EXPECT_TRUE(put_back());
    EXPECT_EQ(content("kcryptd"), "default\n");
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(ScopeSwitching, TheParameterGoesThroughAScopeOfNoArm) {
    content(kDefaultTarget) = "cache\n";
    auto s = scopes("cache,smt", kDefaultTarget);
    ASSERT_TRUE(s.begin());
    for (const unsigned arm : {0U, 1U, 1U}) ASSERT_TRUE(s.to(arm));
    EXPECT_THAT(files_.writes, ElementsAre("cpu", "cache", "cpu", "smt", "cpu", "smt"));
    files_.write_errors = {0, EPERM};  // the second write fails
    EXPECT_FALSE(s.to(0));
    EXPECT_EQ(content(kDefaultTarget), "cpu\n");
    EXPECT_TRUE(put_back());
    EXPECT_EQ(content(kDefaultTarget), "cache\n");

    files_.writes = {"cache"};
    auto all = scopes("cpu,smt,cache,numa,system", kDefaultTarget);
    ASSERT_TRUE(all.begin());
    for (const unsigned arm : {2U, 2U, 0U, 4U, 4U}) ASSERT_TRUE(all.to(arm));
    EXPECT_EQ(files_.writes.size(), 11U);
    EXPECT_EQ(std::ranges::adjacent_find(files_.writes), files_.writes.end()) << "a write that moves nothing";
}

TEST_F(ScopeSwitching, ABusyKernelGetsThreeTriesAndOneThatStoresAnotherWordNone) {
    files_.shows = [](const std::string& v) { return (v == "numa" ? "smt" : v) + "\n"; };
    auto s = scopes("smt,numa");
    ASSERT_TRUE(s.begin());
    files_.write_errors = {ENOMEM, ENOMEM, 0};
    EXPECT_TRUE(s.to(0));
    files_.write_errors = {ENOMEM, ENOMEM, ENOMEM};
    EXPECT_FALSE(s.to(0));
    const auto to = s.to(1);
    ASSERT_FALSE(to);
    EXPECT_THAT(to.error().text, HasSubstr("shows 'smt' now"));
    EXPECT_TRUE(put_back());
    EXPECT_EQ(content("kcryptd"), "default\n");
}

TEST_F(ScopeSwitching, NothingIsWrittenWhereTheBaselineCannotBeSavedOrIsNotThereAnyMore) {
    auto s = scopes("smt,cache");
    ASSERT_TRUE(s.begin());
    content("kcryptd") = "system\n";
    EXPECT_FALSE(s.to(0));
    tree_.add(File("no-folder"));
    store_ = LeftStore(tree_.path("no-folder/lab.json"));
    EXPECT_FALSE(scopes("smt,cache").begin());
    EXPECT_THAT(files_.writes, IsEmpty());
}

// Each file is its own entry: what is foreign in one stays, and the other goes back.
TEST_F(ScopeSwitching, StrictnessAndScopeAreForeignEachForItself) {
    const struct {
        std::string before, arms, scope,
            strict;  // SCOPE, STRICT: what an external writer writes; "" = nothing
        std::string scope_after, strict_after;
    } cases[] = {
        {"0", "smt,smt:strict", "", "", "default\n", "0\n"},
        {"1", "smt,smt:strict", "", "", "default\n", "1\n"},
        {"0", "smt:strict,smt", "", "1\n", "default\n", "1\n"},
        {"0", "smt,smt:strict", "numa\n", "", "numa\n", "0\n"},
        {"0", "smt,cache:strict", "smt\n", "", "smt\n", "0\n"},
        {"1", "smt:strict,smt", "numa\n", "1\n", "numa\n", "1\n"},
    };
    for (const auto& each : cases) {
        content("kcryptd") = "default (cache)\n";
        strict() = each.before + "\n";
        auto s = scopes(each.arms);
        ASSERT_TRUE(s.begin());
        for (const unsigned arm : {0U, 1U}) ASSERT_TRUE(s.to(arm));
        EXPECT_EQ(strict(), each.arms.ends_with("strict") ? "1\n" : "0\n");
        if (!each.scope.empty()) content("kcryptd") = each.scope;
        if (!each.strict.empty()) strict() = each.strict;
        EXPECT_EQ(s.check().has_value(), each.scope.empty() && each.strict.empty()) << each.arms;
        EXPECT_TRUE(put_back());
        EXPECT_EQ(content("kcryptd"), each.scope_after) << each.arms;
        EXPECT_EQ(strict(), each.strict_after) << each.arms;
        EXPECT_THAT(on_disk(), IsEmpty());
    }
}

class CommandSwitching : public Switching {
  protected:
    ArmSwitcher commands(std::vector<CommandArm> arms) { return of({"", {}, {}, std::move(arms)}); }
    const std::vector<CommandArm> kReferenceAndOne{{"reference", "", ""}, {"fast", "do", "undo"}};
};

TEST_F(CommandSwitching, AnArmIsUndoneBeforeTheNextBegins) {
    auto s = commands({{"one", "do 1", "undo 1"}, {"two", "do 2", "undo 2"}});
    ASSERT_TRUE(s.begin());
    for (const unsigned arm : {0U, 1U, 1U}) ASSERT_TRUE(s.to(arm));
    EXPECT_THAT(ran_, ElementsAre("do 1", "undo 1", "do 2", "undo 2", "do 2"));
    ASSERT_EQ(on_disk().size(), 1U);
    EXPECT_EQ(std::get<LeftCommand>(on_disk().front()).undo, "undo 2");
    EXPECT_TRUE(put_back());
    EXPECT_EQ(ran_.back(), "undo 2");
    EXPECT_THAT(on_disk(), IsEmpty());

    ran_.clear();
    auto reference = commands(kReferenceAndOne);
    for (const unsigned arm : {0U, 1U, 0U, 0U}) ASSERT_TRUE(reference.to(arm));
    EXPECT_THAT(ran_, ElementsAre("do", "undo"));
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(CommandSwitching, TheUndoIsOnDiskBeforeTheCommandRuns) {
    std::vector<Left> seen;
    const auto look = [&](const std::string&) {
        seen = on_disk();
        return Status{};
    };
    ArmSwitcher s({files_, look, shell_, [] { return Status{}; }}, store_, {"", {}, {}, kReferenceAndOne});
    ASSERT_TRUE(s.to(1));
    ASSERT_EQ(seen.size(), 1U);
    const auto left = std::get<LeftCommand>(seen.front());
    EXPECT_EQ(left.name, "fast");
    EXPECT_EQ(left.undo, "undo");
    EXPECT_FALSE(left.failed);
}

TEST_F(CommandSwitching, AfterASignalDuringAnUndoNothingIsUndoneThatDidNotRun) {
    auto s = commands(kReferenceAndOne);
    ASSERT_TRUE(s.to(1));
    signal_ = fail("interrupted by SIGINT", EINTR);
    const auto to = s.to(1);
    ASSERT_FALSE(to);
    EXPECT_EQ(to.error().code, EINTR);
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_TRUE(put_back());
    EXPECT_THAT(ran_, ElementsAre("do", "undo"));
}

TEST_F(CommandSwitching, AFailedCommandIsUndone) {
    fails_ = "do";
    auto s = commands(kReferenceAndOne);
    const auto to = s.to(1);
    ASSERT_FALSE(to);
    EXPECT_EQ(to.error().text, "arm fast: 'do': exit code 3: no such thing");
    EXPECT_TRUE(put_back());
    EXPECT_THAT(ran_, ElementsAre("do", "undo"));
}

TEST_F(CommandSwitching, AFailedUndoIsLeftOnDiskForRestore) {
    fails_ = "undo";
    auto s = commands(kReferenceAndOne);
    ASSERT_TRUE(s.to(1));
    const auto to = s.to(0);
    ASSERT_FALSE(to);
    EXPECT_EQ(
        to.error().text,
        "arm fast IS NOT UNDONE: 'undo': exit code 3: no such thing; `wq-tunectl ab --restore` tries again");
    ASSERT_EQ(on_disk().size(), 1U);
    EXPECT_TRUE(std::get<LeftCommand>(on_disk().front()).failed);
    ran_.clear();
    EXPECT_FALSE(put_back()) << "the guardian";
    EXPECT_THAT(ran_, IsEmpty()) << "it does not fail twice by itself";
    EXPECT_FALSE(put_back(true));
    EXPECT_THAT(ran_, ElementsAre("undo"));
    EXPECT_THAT(log_.lines.back().text, HasSubstr("IS NOT UNDONE"));
    EXPECT_EQ(log_.at_least(LOG_ERR), 1U);
    fails_.clear();
    EXPECT_TRUE(put_back(true));
    EXPECT_THAT(on_disk(), IsEmpty());
}

// Several kinds of entries are put back, the last first; one that stays does not keep the others.
TEST_F(Switching, EachEntryGoesBackForItself) {
    const std::string name = new_device_name();
    ASSERT_TRUE(store_.put(LeftDevice{name, true}));
    ASSERT_TRUE(store_.put(LeftCommand{"on", "off"}));
    auto s = switcher({"16", "32"});
    ASSERT_TRUE(s.begin());
    tree_.add(File("dev/ram", name));
    fails_ = "off";
    EXPECT_FALSE(put_back());
    EXPECT_EQ(files_.content(), "8\n");
    EXPECT_FALSE(tree_.exists("dev/ram"));
    ASSERT_EQ(on_disk().size(), 1U);
    EXPECT_EQ(std::get<LeftCommand>(on_disk().front()).name, "on");
    EXPECT_EQ(log_.lines.front().text, "/sys/value: back to '8'");
}

TEST(ParseArms, ReadsScopesAndStrictness) {
    EXPECT_THAT(*parse_arms("cache,smt"),
                ElementsAre(Arm{Scope::cache, "cache", {}}, Arm{Scope::smt, "smt", {}}));
    EXPECT_THAT(*parse_arms("smt,smt:strict"),
                ElementsAre(Arm{Scope::smt, "smt", false}, Arm{Scope::smt, "smt", true}));
    for (const char* bad : {"", "smt", "smt,", ",smt", "smt,smt", "smt,bogus", "smt,default",
                            "smt,cache:Strict", "smt,cache:strict:strict", "smt, cache"})
        EXPECT_FALSE(parse_arms(bad)) << bad;
}

// The names of the arms, or why there are none.
std::string arms_of(Workqueue target, const std::string& arms,
                    const KernelInfo& kernel = test::kernel_612()) {
    const Topology machine = test::machine({.sockets = 2, .cores = 4, .threads = 2});
    const test::TempTree tree;
    const auto found = scope_arms({tree.root()}, {machine, kernel}, std::move(target),
                                  arms.empty() ? std::vector<Arm>{} : *parse_arms(arms));
    if (!found) return found.error().text;
    std::string out;
    for (const Row& row : found->rows)
        out += row.arm + " " + (row.pools ? std::to_string(*row.pools) : "-") + " ";
    return out;
}

TEST(ScopeArms, OneOfEachPartitionAgainstWhatIsInPlaceOrThoseThatAreNamed) {
    const Topology machine = test::machine({.sockets = 2, .cores = 4, .threads = 2});
    Workqueue target = test::unbound(machine, Scope::smt);
    const auto parameter = test::default_target(machine, Scope::cache);
    KernelInfo fixed = test::kernel_612();
    fixed.default_writable = false;
    EXPECT_EQ(arms_of(target, ""), "smt 8 system 1 numa 2 cpu 16 ");
    EXPECT_EQ(arms_of(target, "smt,cache"), "smt 8 cache 2 ");
    EXPECT_THAT(arms_of(target, "smt,cache_shard"), HasSubstr(": this kernel has no cache_shard"));
    EXPECT_THAT(arms_of(target, "smt,cache_shard", test::kernel_72()), HasSubstr("smt 8 cache_shard "));
    EXPECT_THAT(arms_of(parameter, "smt,cache"), HasSubstr("smt 8 cache 2 "));
    EXPECT_THAT(arms_of(parameter, "smt,cache:strict"), HasSubstr("the module parameter has no strictness"));
    EXPECT_THAT(arms_of(parameter, "smt,cache", fixed), HasSubstr("the module parameter cannot be written"));
    target.untouchable = "ordered";
    EXPECT_THAT(arms_of(target, "smt,cache"), HasSubstr(": ordered"));
}

TEST(ValueIn, IsWhatAWriteTakes) {
    for (const auto& [content, value] : {std::pair{"8\n", "8"},
                                         {"always [madvise] never\n", "madvise"},
                                         {"[none]\n", "none"},
                                         {"4 4 1 7\n", "4 4 1 7"},
                                         {"[a] [b]\n", "[a] [b]"},
                                         {"[]\n", "[]"},
                                         {"a[0] b\n", "a[0] b"},
                                         {"two\nlines\n", "two\nlines"},
                                         {"\n", ""}})
        EXPECT_EQ(value_in(Form::choice, content), value);
    EXPECT_EQ(value_in(Form::word, "default (cache)\n"), "default");
    EXPECT_EQ(value_in(Form::word, "smt"), "smt");
}

TEST(ValueFiles, WriteWithoutAnEndOfLine) {
    const test::TempTree tree{File("value", "a longer one\n")};
    ValueFiles files;
    ASSERT_TRUE(files.write(tree.path("value"), 0, "16"));
    EXPECT_EQ(files.read(tree.path("value"))->text, "16");
    ASSERT_TRUE(files.write(tree.path("value"), 0, ""));
    EXPECT_EQ(tree.read("value"), "\n");
    EXPECT_EQ(files.write(tree.path("nothing"), 0, "1").error().code, ENOENT);
    EXPECT_EQ(files.write(tree.path("value"), 7, "1").error().code, ENODEV) << "no file of sysfs";
    EXPECT_EQ(files.read("/proc/sys/kernel/osrelease")->inode, 0U);
    if (!exists("/sys/kernel/notes")) return;
    EXPECT_NE(files.read("/sys/kernel/notes")->inode, 0U);
}

TEST(ResolveValueFile, IsBelowSysOrProc) {
    test::TempTree tree{test::Dir("sys/block/sda", {File("nr", "8\n")}), File("proc/nr", "8\n"),
                        File("etc/nr", "8\n")};
    tree.link("sys/link", "block/sda/nr");
    tree.link("sys/out", "../etc/nr");
    tree.link("outside", "sys/block");
    const auto at = [&](const std::string& path) { return resolve_value_file(tree.root(), path); };
    for (const char* path : {"/sys/block/sda/nr", "/sys/link", "/outside/sda/nr"})
        EXPECT_EQ(*at(path), tree.path("sys/block/sda/nr")) << path;
    EXPECT_TRUE(at("/proc/nr"));
    for (const auto& [path, code, says] : {std::tuple{"/etc/nr", EPERM, "/etc/nr is not below /sys or /proc"},
                                           {"/sys/out", EPERM, ", which is "},
                                           {"/sys/../etc/nr", EPERM, "is not below /sys or /proc"},
                                           {"sys/block/sda/nr", EINVAL, "is not an absolute path"},
                                           {"/sys/block/sda", EINVAL, "is not a file"},
                                           {"/sys/nothing", ENOENT, "No such file or directory"}}) {
        const auto refused = at(path);
        ASSERT_FALSE(refused) << path;
        EXPECT_EQ(refused.error().code, code);
        EXPECT_THAT(refused.error().text, HasSubstr(says));
    }
}

}  // namespace
}  // namespace wq::lab
