// SPDX-License-Identifier: LGPL-2.1-or-later
// The arms of a comparison: how they are switched, and that whatever they left is put back.
#include "ctl/lab/arms.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <syslog.h>

#include <set>

#include "ctl/lab/lab.h"
#include "fake_bench.h"
#include "fake_log.h"

namespace wq::lab {
namespace {

using test::Dir;
using test::File;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kPath = "/sys/value";

// The files of a tree, and one value that is shown as the test says.
class FakeFiles : public LabFiles {
  public:
    using LabFiles::LabFiles;
    std::optional<Content> value = Content{"8\n", 1};
    std::function<std::string(const std::string& value)> shows = [](const std::string& v) { return v; };
    std::function<void()> before_write = [] {};
    std::vector<std::string> writes;
    std::string refuses = "?";      // writing this value fails with EINVAL
    std::vector<int> write_errors;  // of the next writes
    int read_error = 0;

    [[nodiscard]] Result<Content> read_content(const std::string& path) const override {
        if (read_error != 0) return fail_errno(path, read_error);
        if (!value) return fail_errno(path, ENOENT);
        return *value;
    }
    Status write_content(const std::string& path, ino_t inode, const std::string& text) override {
        before_write();
        if (text == refuses || inode != value->inode)
            return fail_errno(path + ": writing '" + text + "'", text == refuses ? EINVAL : ENODEV);
        writes.push_back(text);
        value->text = shows(text) + "\n";
        return {};
    }
    Status write_scope(const std::string& name, ino_t inode, const std::string& word) override {
        before_write();
        int error = 0;
        if (!write_errors.empty()) {
            error = write_errors.front();
            write_errors.erase(write_errors.begin());
        }
        if (error != 0) return fail_errno(name, error);
        writes.push_back(word);
        return LabFiles::write_scope(name, inode, shows(word));
    }
};

// Each test switches, and then puts back as the guardian or the next run does.
class Switching : public testing::Test {
  protected:
    [[nodiscard]] OwnedEntries on_disk() const {
        return test::saved_entries(tree_, "lab.json", OwnedStore::Of::lab);
    }
    bool put_back() {
        OwnedStore store(left_, OwnedStore::Of::lab);
        if (!store.load()) return false;
        return restore_all(files_, store, log_) == 0 && !exists(left_);
    }
    // Puts back, and then kPath has CONTENT.
    void expect_back(const std::string& content, const std::string& where = "") {
        EXPECT_TRUE(put_back()) << where;
        EXPECT_EQ(files_.value->text, content) << where;
    }
    ArmSwitcher of(Subject subject) {
        subject_ = std::move(subject);
        store_ = OwnedStore(left_, OwnedStore::Of::lab);
        return {files_, store_, processes_, subject_};
    }
    ArmSwitcher switcher(const std::vector<std::string>& values) {
        Subject subject{"", {}, Owned{kPath, files_.value->inode, {Knob::value, files_.value->text}}};
        for (const std::string& value : values) subject.values.push_back({value, {}});
        return of(std::move(subject));
    }

    test::TempTree tree_{test::kernel_tree({test::workqueue("kcryptd")})};
    const std::string left_ = tree_.path("lab.json");
    Processes processes_;
    test::FakeDevices devices_{tree_};
    FakeFiles files_{Paths{tree_.root()}, processes_, devices_};
    OwnedStore store_{left_, OwnedStore::Of::lab};
    test::FakeLog log_;
    Subject subject_;
};

class ValueSwitching : public Switching {};

TEST_F(ValueSwitching, TheBaselineIsOnDiskBeforeTheFirstWrite) {
    auto s = switcher({"16", "32"});
    unsigned seen = 0;
    files_.before_write = [&] {
        EXPECT_EQ(on_disk().at(kPath).main.baseline, "8\n");
        EXPECT_EQ(on_disk().at(kPath).inode, 1U);
        EXPECT_TRUE(on_disk().at(kPath).main.may_be_ours());
        seen++;
    };
    ASSERT_TRUE(s.begin());
    EXPECT_EQ(seen, 3U);
    EXPECT_THAT(files_.writes, ElementsAre("8", "16", "32")) << "its own first: it can be put back";
    for (const unsigned arm : {0U, 0U, 1U}) ASSERT_TRUE(s.to(arm));
    EXPECT_THAT(files_.writes, ElementsAre("8", "16", "32", "16", "16", "32")) << "what is in place too";
    EXPECT_TRUE(s.check());
    struct stat st {};
    ASSERT_EQ(::stat(left_.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777U, 0600U);
    EXPECT_FALSE(OwnedStore(left_).load()) << "owned.json that has a value is refused";
    expect_back("8\n");
}

// How the kernel shows the values, and what then stands in the file after the last arm and afterwards.
TEST_F(ValueSwitching, ValuesAreComparedAsTheKernelShowsThem) {
    std::set<std::string> loaded;  // schedulers: writing one loads its module, and then the file shows it
    const auto scheduler = [&](const std::string& value) {
        loaded.insert(value);
        std::string out;
        for (const std::string& word : loaded) out += (word == value ? "[" + word + "]" : word) + " ";
        return out;
    };
    const auto yes_or_no = [](const std::string& v) { return v == "1" || v == "Y" ? "Y" : "N"; };
    const auto as_written = [](const std::string& v) { return v; };
    const struct {
        std::function<std::string(const std::string&)> shows;
        std::string original;
        std::vector<std::string> values;
        std::string last, back;
    } cases[] = {
        {as_written, "8\n", {"16", "32", "64", "128"}, "128\n", "8\n"},
        {as_written, "\n", {"a", "b"}, "b\n", "\n"},
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
        files_.value->text = each.original;
        auto s = switcher(each.values);
        ASSERT_TRUE(s.begin()) << each.original;
        for (std::size_t arm = 0; arm < each.values.size(); arm++) ASSERT_TRUE(s.to(arm)) << each.original;
        EXPECT_TRUE(s.check());
        EXPECT_EQ(files_.value->text, each.last);
        expect_back(each.back, each.original);
    }
}

TEST_F(ValueSwitching, WhatAFileDoesNotTakeEndsItBeforeTheFirstRun) {
    const struct {
        std::string original, refuses;
        std::vector<std::string> values;
        std::string says;
    } cases[] = {
        {"8\n", "many", {"16", "many"}, "writing 'many': Invalid argument"},
        {"default (cache)\n", "default (cache)", {"smt", "cpu"}, "writing 'default (cache)'"},
        {"\xff\xfe\n", "?", {"16", "32"}, "UTF-8"},
    };
    for (const auto& each : cases) {
        files_.refuses = each.refuses;
        files_.value->text = each.original;
        const auto begun = switcher(each.values).begin();
        ASSERT_FALSE(begun) << each.original;
        EXPECT_THAT(begun.error().text, HasSubstr(each.says));
        expect_back(each.original);
    }
    files_.value->text = "8\n";
    files_.shows = [](const std::string& v) { return v + v; };
    const auto begun = switcher({"16", "32"}).begin();
    ASSERT_FALSE(begun);
    EXPECT_THAT(begun.error().text, HasSubstr("the kernel stored '88'"));
    EXPECT_FALSE(put_back());
    EXPECT_EQ(on_disk().size(), 1U) << "for `ab --restore`";
    EXPECT_EQ(log_.at_least(LOG_ERR), 1U);
}

// An arm's own value is an external writer's if we did not write it last.
TEST_F(ValueSwitching, AForeignValueEndsItAndStays) {
    for (const std::string foreign : {"99", "32", "8", ""})
        for (const bool crash : {false, true}) {
            files_.value->text = "8\n";
            auto s = switcher({"16", "32"});
            ASSERT_TRUE(s.begin());
            ASSERT_TRUE(s.to(0));
            files_.value->text = foreign + "\n";
            if (!crash) {
                const auto to = s.to(1);
                ASSERT_FALSE(to);
                EXPECT_EQ(to.error().text,
                          "/sys/value: an external writer wrote '" + foreign + "', which is left as it is");
            }
            expect_back(foreign + "\n");
        }
    EXPECT_EQ(log_.count(Event::external), 6U) << "not what was the baseline";
}

TEST_F(ValueSwitching, WhatSomebodyWroteSinceTheBaselineWasReadStays) {
    auto s = switcher({"16", "32"});
    files_.value->text = "9\n";
    EXPECT_FALSE(s.begin());
    EXPECT_THAT(files_.writes, IsEmpty());
    expect_back("9\n");
}

// `ab` and its guardian are killed before a write, or between a write and the next read.
TEST_F(ValueSwitching, ACrashAtAnyWriteLeavesNothing) {
    struct Crash {};
    for (const bool written : {false, true})
        for (const unsigned write : {1U, 2U, 3U, 4U, 5U}) {
            unsigned n = 0;
            files_.value->text = "8\n";
            files_.before_write = [&] {
                if (!written && ++n == write) throw Crash();
            };
            files_.shows = [&](const std::string& v) {
                files_.value->text = v + "\n";
                if (written && ++n == write) throw Crash();
                return v;
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
            EXPECT_EQ(files_.value->text == "8\n", write < 2 + (written ? 0U : 1U));
            files_.before_write = [] {};
            files_.shows = [](const std::string& v) { return v; };
            expect_back("8\n", std::to_string(write));
        }
}

TEST_F(ValueSwitching, AFileThatWentOrIsAnotherOneNeedsNothing) {
    for (const int how : {ENOENT, EIO, 0}) {
        files_.value = Content{"8\n", 1};
        files_.read_error = 0;
        auto s = switcher({"16", "32"});
        ASSERT_TRUE(s.begin());
        files_.read_error = how;
        if (how == 0) files_.value->inode = 2;
        EXPECT_FALSE(s.to(0));
        EXPECT_EQ(put_back(), how != EIO);
        EXPECT_EQ(on_disk().empty(), how != EIO) << "what cannot be read stays on disk";
        files_.read_error = 0;
        expect_back(how == EIO ? "8\n" : "32\n");
    }
}

class ScopeSwitching : public Switching {
  protected:
    const Topology machine_ = test::machine({.cores = 4, .threads = 2});
    [[nodiscard]] std::string path(const std::string& name, const char* file = "affinity_scope") const {
        return name == kDefaultTarget ? "sys/module/workqueue/parameters/default_affinity_scope"
                                      : test::wq_path(name, file);
    }
    [[nodiscard]] std::string content(const std::string& name, const char* file = "affinity_scope") const {
        const std::string text = tree_.read(path(name, file));
        return text.substr(0, text.find('\n'));
    }
    void write(const std::string& text, const char* file = "affinity_scope") {
        tree_.write(path("kcryptd", file), text + "\n");
    }
    ArmSwitcher scopes(const std::string& arms, const std::string& name = "kcryptd") {
        return of(*scope_arms({tree_.root()}, {machine_, test::kernel_612()},
                              *WorkqueueFs(Paths{tree_.root()}).read(name), *parse_arms(arms)));
    }
};

TEST_F(ScopeSwitching, IsWrittenOnceForEachRunAndPutBack) {
    auto s = scopes("smt,cache");
    ASSERT_TRUE(s.begin());
    EXPECT_THAT(files_.writes, IsEmpty()) << "how a scope is shown is known";
    write("default (smt)");  // an external writer wrote @default: still the baseline
    files_.before_write = [&] { EXPECT_EQ(on_disk().size(), 1U); };
    for (const unsigned arm : {0U, 0U, 1U}) ASSERT_TRUE(s.to(arm));
    EXPECT_THAT(files_.writes, ElementsAre("smt", "smt", "cache"));
    EXPECT_TRUE(put_back());
    EXPECT_EQ(content("kcryptd"), "default");
}

TEST_F(ScopeSwitching, TheParameterGoesThroughAScopeOfNoArm) {
    auto s = scopes("cache,smt", kDefaultTarget);
    ASSERT_TRUE(s.begin());
    for (const unsigned arm : {0U, 1U, 1U}) ASSERT_TRUE(s.to(arm));
    EXPECT_THAT(files_.writes, ElementsAre("cpu", "cache", "cpu", "smt", "cpu", "smt"));
    files_.write_errors = {0, EPERM};  // the second write fails
    EXPECT_FALSE(s.to(0));
    EXPECT_EQ(content(kDefaultTarget), "cpu");
    EXPECT_TRUE(put_back());
    EXPECT_EQ(content(kDefaultTarget), "cache");

    files_.writes = {"cache"};
    auto all = scopes("cpu,smt,cache,numa,system", kDefaultTarget);
    ASSERT_TRUE(all.begin());
    for (const unsigned arm : {2U, 2U, 0U, 4U, 4U}) ASSERT_TRUE(all.to(arm));
    EXPECT_EQ(files_.writes.size(), 11U);
    EXPECT_EQ(std::ranges::adjacent_find(files_.writes), files_.writes.end()) << "a write that moves nothing";
}

TEST_F(ScopeSwitching, ABusyKernelGetsThreeTriesAndOneThatStoresAnotherWordNone) {
    files_.shows = [](const std::string& v) { return v == "numa" ? "smt" : v; };
    auto s = scopes("smt,numa");
    ASSERT_TRUE(s.begin());
    files_.write_errors = {ENOMEM, ENOMEM, 0};
    EXPECT_TRUE(s.to(0));
    files_.write_errors = {ENOMEM, ENOMEM, ENOMEM};
    EXPECT_FALSE(s.to(0));
    EXPECT_FALSE(s.to(1));
    EXPECT_TRUE(put_back());
    EXPECT_EQ(content("kcryptd"), "default");
}

TEST_F(ScopeSwitching, NothingIsWrittenWhereTheBaselineCannotBeSavedOrIsNotThereAnyMore) {
    auto s = scopes("smt,cache");
    ASSERT_TRUE(s.begin());
    write("system");
    EXPECT_FALSE(s.to(0));
    EXPECT_TRUE(put_back());
    write("default");
    ASSERT_EQ(::mkdir(left_.c_str(), 0755), 0);
    EXPECT_FALSE(scopes("smt,cache").begin());
    EXPECT_THAT(files_.writes, IsEmpty());
}

// What is foreign in one file stays, and the other goes back.
TEST_F(ScopeSwitching, StrictnessAndScopeAreForeignEachForItself) {
    const struct {
        std::string before, arms, scope,
            strict;  // SCOPE, STRICT: what an external writer writes; "" = nothing
        std::string scope_after, strict_after;
    } cases[] = {
        {"0", "smt,smt:strict", "", "", "default", "0"},  {"1", "smt,smt:strict", "", "", "default", "1"},
        {"0", "smt:strict,smt", "", "1", "default", "1"}, {"0", "smt,smt:strict", "numa", "", "numa", "0"},
        {"0", "smt,cache:strict", "smt", "", "smt", "0"}, {"1", "smt:strict,smt", "numa", "1", "numa", "1"},
    };
    for (const auto& each : cases) {
        write("default (cache)");
        write(each.before, "affinity_strict");
        auto s = scopes(each.arms);
        ASSERT_TRUE(s.begin());
        for (const unsigned arm : {0U, 1U}) ASSERT_TRUE(s.to(arm));
        EXPECT_EQ(content("kcryptd", "affinity_strict"), each.arms.ends_with("strict") ? "1" : "0");
        if (!each.scope.empty()) write(each.scope);
        if (!each.strict.empty()) write(each.strict, "affinity_strict");
        EXPECT_EQ(s.check().has_value(), each.scope.empty() && each.strict.empty()) << each.arms;
        EXPECT_TRUE(put_back());
        EXPECT_EQ(content("kcryptd"), each.scope_after) << each.arms;
        EXPECT_EQ(content("kcryptd", "affinity_strict"), each.strict_after) << each.arms;
    }
}

class CommandSwitching : public Switching {
  protected:
    // A command that notes WHAT and then does MORE.
    [[nodiscard]] std::string notes(const std::string& what, const std::string& more = "true") const {
        return "echo -n '" + what + ";' >>'" + tree_.path("ran") + "'; " + more;
    }
    [[nodiscard]] std::string ran() const { return tree_.exists("ran") ? tree_.read("ran") : ""; }
    ArmSwitcher commands(std::vector<CommandArm> arms) { return of({"", {}, {}, {}, {}, std::move(arms)}); }
    ArmSwitcher reference_and(const std::string& apply, const std::string& undo) {
        return commands({{"reference", "", ""}, {"fast", apply, undo}});
    }
};

TEST_F(CommandSwitching, AnArmIsUndoneBeforeTheNextBegins) {
    auto s = commands({{"one", notes("do 1"), notes("undo 1")}, {"two", notes("do 2"), notes("undo 2")}});
    ASSERT_TRUE(s.begin());
    for (const unsigned arm : {0U, 1U, 1U}) ASSERT_TRUE(s.to(arm));
    EXPECT_EQ(ran(), "do 1;undo 1;do 2;undo 2;do 2;");
    EXPECT_EQ(on_disk().at("arm two").main.baseline, notes("undo 2"));
    EXPECT_FALSE(OwnedStore(left_).load()) << "owned.json that has a command is refused";
    EXPECT_TRUE(put_back());
    EXPECT_EQ(ran(), "do 1;undo 1;do 2;undo 2;do 2;undo 2;");

    tree_.remove("ran");
    auto reference = reference_and(notes("do"), notes("undo"));
    for (const unsigned arm : {0U, 1U, 0U, 0U}) ASSERT_TRUE(reference.to(arm));
    EXPECT_EQ(ran(), "do;undo;");
    EXPECT_FALSE(exists(left_));
}

TEST_F(CommandSwitching, TheUndoIsOnDiskBeforeTheCommandRuns) {
    const std::string copy = tree_.path("copy");
    ASSERT_TRUE(reference_and("cp '" + left_ + "' '" + copy + "'", "the undo").to(1));
    OwnedStore seen(copy, OwnedStore::Of::lab);
    ASSERT_TRUE(seen.load());
    EXPECT_EQ(seen.entries().at("arm fast").main.baseline, "the undo");
    EXPECT_TRUE(seen.entries().at("arm fast").main.may_be_ours());
}

TEST_F(CommandSwitching, NothingIsUndoneThatDidNotRun) {
    auto s = reference_and(notes("do"), notes("undo", "kill -INT $PPID"));
    ASSERT_TRUE(s.to(1));
    const auto to = s.to(1);
    ASSERT_FALSE(to);
    EXPECT_EQ(to.error().code, EINTR);
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_TRUE(put_back());
    EXPECT_EQ(ran(), "do;undo;");
}

TEST_F(CommandSwitching, AFailedCommandIsUndone) {
    const auto to = reference_and("echo no such thing; exit 3", notes("undo")).to(1);
    ASSERT_FALSE(to);
    EXPECT_EQ(to.error().text, "arm fast: 'echo no such thing; exit 3': exit code 3: no such thing");
    EXPECT_TRUE(put_back());
    EXPECT_EQ(ran(), "undo;");
}

TEST_F(CommandSwitching, AFailedUndoStaysOnDiskUntilItSucceeds) {
    const std::string undo = "[ -e '" + tree_.path("free") + "' ] || { echo busy; exit 4; }";
    auto s = reference_and("true", undo);
    ASSERT_TRUE(s.to(1));
    const auto to = s.to(0);
    ASSERT_FALSE(to);
    EXPECT_THAT(to.error().text, HasSubstr("exit code 4: busy"));
    EXPECT_FALSE(put_back());
    EXPECT_THAT(log_.lines.back().text, testing::StartsWith("arm fast: NOT UNDONE: '"));
    ASSERT_EQ(on_disk().size(), 1U);
    tree_.add(File("free"));
    EXPECT_TRUE(put_back());
    EXPECT_EQ(log_.lines.back().text, "arm fast: undone");
}

// One entry that stays does not keep the others.
TEST_F(CommandSwitching, EachEntryGoesBackForItself) {
    const std::string name = new_device_name();
    store_.put({name, 0, {Knob::device, kRemovedWithDriver}}).announce({});
    store_.put({"arm on", 0, {Knob::command, "false"}}).announce({});
    files_.value->text = "9\n";
    store_.put({kPath, 1, {Knob::value, "8\n"}}).announce({});
    ASSERT_TRUE(store_.save());
    for (const char* file : {"dev/ram", "dev/crypt", "dev/driver"}) tree_.add(File(file, name));
    EXPECT_FALSE(put_back());
    EXPECT_EQ(files_.value->text, "8\n");
    for (const char* file : {"dev/ram", "dev/crypt", "dev/driver"}) EXPECT_FALSE(tree_.exists(file));
    EXPECT_THAT(on_disk(), ElementsAre(testing::Key("arm on")));
    std::vector<std::string> lines;
    for (const auto& line : log_.lines) lines.push_back(line.text);
    EXPECT_THAT(lines, ElementsAre("/sys/value: back to '8'", "arm on: NOT UNDONE: 'false': exit code 1",
                                   name + ": removed"));
}

TEST_F(Switching, ADeviceWithAnotherNameIsNotRemoved) {
    store_.put({"../x", 0, {Knob::device, kRemoved}}).announce({});
    ASSERT_TRUE(store_.save());
    EXPECT_FALSE(put_back());
    EXPECT_THAT(log_.lines.back().text, HasSubstr("not a name of ours"));
}

TEST(ParseArms, ReadsScopesAndStrictness) {
    EXPECT_THAT(*parse_arms("cache,smt"),
                ElementsAre(Arm{Scope::cache, false, {}}, Arm{Scope::smt, false, {}}));
    EXPECT_THAT(*parse_arms("smt,smt:strict"),
                ElementsAre(Arm{Scope::smt, false, false}, Arm{Scope::smt, false, true}));
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
        EXPECT_EQ(value_in(content), value);
}

TEST_F(Switching, AFileIsWrittenWithoutAnEndOfLine) {
    tree_.add(File("value", "a longer one\n"));
    const std::string path = tree_.path("value");
    LabFiles files(Paths{}, processes_, devices_);
    ASSERT_TRUE(files.write_content(path, 0, "16"));
    EXPECT_EQ(tree_.read("value"), "16");
    EXPECT_EQ(files.read_content(path)->text, "16\n") << "as the kernel's files end";
    ASSERT_TRUE(files.write_content(path, 0, ""));
    EXPECT_EQ(tree_.read("value"), "\n");
    EXPECT_EQ(files.write_content(tree_.path("nothing"), 0, "1").error().code, ENOENT);
    EXPECT_EQ(files.write_content(path, 7, "1").error().code, ENODEV) << "no file of sysfs";
    EXPECT_EQ(files.read_content("/proc/sys/kernel/osrelease")->inode, 0U);
    if (!exists("/sys/kernel/notes")) return;
    EXPECT_NE(files.read_content("/sys/kernel/notes")->inode, 0U);
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
