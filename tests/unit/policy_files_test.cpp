// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <thread>

#include "as_nobody.h"
#include "policy/load_policy.h"
#include "temp_tree.h"

namespace wq {
namespace {

using test::as_nobody;
using test::Dir;
using test::Entry;
using test::File;
using test::Link;
using test::TempTree;
using testing::HasSubstr;

const char* const kText = "[shard]\n";

// The files in force below TREE, without its root.
std::vector<std::string> in_force(const TempTree& tree) {
    std::vector<std::string> files = policy_files(tree.root());
    for (std::string& file : files) file.erase(0, tree.root().size());
    return files;
}

std::string only_error(const TempTree& tree) {
    const auto policy = load_policy(policy_files(tree.root()));
    return policy ? "no error" : policy.error().size() > 1 ? "several" : policy.error()[0].text();
}

TEST(PolicyFiles, NoneAtAllMeansDefaultsAndNoRule) {
    const TempTree tree;
    EXPECT_THAT(in_force(tree), testing::IsEmpty());
    const auto policy = load_policy({});
    ASSERT_TRUE(policy);
    EXPECT_EQ(policy->mode, Mode::tune);
    EXPECT_EQ(policy->shard_size, 8U);
    EXPECT_FALSE(policy->keep_on_exit);
    EXPECT_TRUE(policy->default_scope.manage);
    EXPECT_EQ(policy->default_scope.origin.text(), "built-in");
    EXPECT_EQ(policy->rule_for("kcryptd"), nullptr);
}

// The main file is the first one; drop-ins are sorted by name and hide each other; empty files and links to
// /dev/null mask; other names are passed over.
TEST(PolicyFiles, AreThoseOfEtcRunAndUsrLib) {
    const std::string main = "/wq-tuned/wq-tuned.toml", drop_ins = "/wq-tuned/wq-tuned.toml.d/";
    using Files = std::vector<std::string>;  // with "=" behind those of which the tree has an empty one
    const std::vector<std::pair<Files, Files>> cases = {
        {{"usr/lib" + main}, {"/usr/lib" + main}},
        {{"usr/lib" + main, "run" + main}, {"/run" + main}},
        {{"usr/lib" + main, "run" + main, "etc" + main}, {"/etc" + main}},
        {{"usr/lib" + main, "etc" + main + "="}, {}},
        {{"etc" + drop_ins + "20-b.toml", "run" + drop_ins + "10-a.toml", "run" + drop_ins + "20-b.toml",
          "usr/lib" + main, "usr/lib" + drop_ins + "10-a.toml", "usr/lib" + drop_ins + "30-c.toml"},
         {"/usr/lib" + main, "/run" + drop_ins + "10-a.toml", "/etc" + drop_ins + "20-b.toml",
          "/usr/lib" + drop_ins + "30-c.toml"}},
        {{"etc" + drop_ins + "a.toml=", "usr/lib" + drop_ins + "a.toml", "usr/lib" + drop_ins + "c.toml"},
         {"/usr/lib" + drop_ins + "c.toml"}},
        {{"etc" + drop_ins + ".a.toml", "etc" + drop_ins + "a.toml~", "etc" + drop_ins + "a.toml.dpkg-new",
          "etc" + drop_ins + ".toml", "etc" + drop_ins + "README"},
         {}},
    };
    for (const auto& [files, found] : cases) {
        TempTree empty, null;
        for (std::string file : files) {
            const bool masks = file.ends_with('=');
            if (masks) file.pop_back();
            empty.add(File(file, masks ? "" : kText));
            if (masks)
                null.add(Link(file, "/dev/null"));
            else
                null.add(File(file, kText));
        }
        EXPECT_EQ(in_force(empty), found) << files.front();
        EXPECT_EQ(in_force(null), found) << files.front();
    }
}

TEST(PolicyFiles, WhatIsThereButCannotBeReadIsAnErrorThatNamesIt) {
    const std::string drop_ins = "etc/wq-tuned/wq-tuned.toml.d";
    const std::vector<std::pair<Entry, std::string>> cases = {
        {Link("etc/wq-tuned/wq-tuned.toml", "wq-tuned.toml"),
         "wq-tuned.toml: cannot be read: Too many levels"},
        {Link("etc/wq-tuned/wq-tuned.toml", "gone"), "wq-tuned.toml: cannot be read: No such file"},
        {Dir("etc/wq-tuned/wq-tuned.toml"), "wq-tuned.toml: not a regular file"},
        {Link("etc/wq-tuned/wq-tuned.toml", "/dev/zero"), "wq-tuned.toml: not a regular file"},
        {File("etc/wq-tuned/wq-tuned.toml", kText, 0646), "wq-tuned.toml: everyone may write to it"},
        {File("etc/wq-tuned/wq-tuned.toml", std::string((1 << 20) + 1, '\n')), "larger than 1 MiB"},
        {Link("etc/wq-tuned", "wq-tuned"), "Too many levels"},
        {Link(drop_ins + "/a.toml", "a.toml"), "a.toml: cannot be read: Too many levels"},
        {File(drop_ins, kText), "wq-tuned.toml.d/: cannot be read: Not a directory"},
        {Link(drop_ins, "gone"), "wq-tuned.toml.d/: cannot be read: No such file"},
    };
    for (const auto& [entry, message] : cases) {
        const TempTree tree{entry};
        const auto policy = load_policy(policy_files(tree.root()));
        ASSERT_FALSE(policy) << message;
        EXPECT_THAT(policy.error()[0].text(), HasSubstr(message));
        EXPECT_EQ(policy.error()[0].line, 0U);
    }
}

TEST(PolicyFiles, AFolderThatEveryoneMayWriteToIsAnErrorThatNamesIt) {
    const std::string drop_ins = "etc/wq-tuned/wq-tuned.toml.d";
    TempTree tree{File("etc/wq-tuned/wq-tuned.toml", kText), Dir(drop_ins)};
    EXPECT_EQ(only_error(tree), "no error");
    for (const mode_t mode : {0757U, 01777U}) {  // the sticky bit does not prevent a new file
        tree.mode(drop_ins, mode);
        EXPECT_EQ(only_error(tree),
                  tree.path(drop_ins) + "/: everyone may write to it, so it is not trusted (chmod o-w)");
    }
    tree.mode(drop_ins, 0755);
    tree.mode("etc/wq-tuned", 0777);
    EXPECT_EQ(only_error(tree), tree.path("etc/wq-tuned/wq-tuned.toml") +
                                    ": everyone may write to its folder, so it is not trusted (chmod o-w)");
    tree.mode("etc/wq-tuned", 01777);
    EXPECT_EQ(only_error(tree), "no error");
}

TEST(PolicyFiles, WhatMayNotBeReadIsAnErrorThatNamesIt) {
    const std::string main = "etc/wq-tuned/wq-tuned.toml";
    const std::string folder = "etc/wq-tuned/wq-tuned.toml.d";
    TempTree tree{File(main, kText), Dir(folder, {File("a.toml", kText)})};
    tree.mode(".", 0755);  // mkdtemp(3) makes it 0700, closed to the user nobody
    const auto read = [&] { return only_error(tree); };
    EXPECT_EQ(as_nobody(read), "no error");
    for (const std::string& file : {main, folder + "/a.toml"}) {
        tree.mode(file, 0000);
        EXPECT_EQ(as_nobody(read), tree.path(file) + ": cannot be read: Permission denied");
        tree.mode(file, 0644);
    }
    tree.mode(folder, 0000);
    EXPECT_EQ(as_nobody(read), tree.path(folder) + "/: cannot be read: Permission denied");
    tree.mode(folder, 0744);  // may be listed, but not entered
    EXPECT_EQ(as_nobody(read), tree.path(folder) + "/a.toml: cannot be read: Permission denied");
    tree.mode(folder, 0755);
    tree.mode("etc/wq-tuned", 0000);
    EXPECT_EQ(as_nobody(read), "several") << "the main file and the folder";
    tree.mode("etc/wq-tuned", 0755);
}

// Changes all the time: drop-ins come, go, change their names and modes; links loop and are swapped.
class RestlessFolder {
  public:
    explicit RestlessFolder(const std::string& root)
        : base_(root + "/etc/wq-tuned/"), at_(base_ + "wq-tuned.toml.d") {
        thread_ = std::thread([this] {
            for (unsigned step = 0; !done_; ++step) change(step);
        });
    }
    ~RestlessFolder() {
        done_ = true;
        thread_.join();
    }
    RestlessFolder(const RestlessFolder&) = delete;
    RestlessFolder& operator=(const RestlessFolder&) = delete;

  private:
    void change(unsigned step) {
        const unsigned size = 10 + step % 50;
        switch (step % 9) {
            case 0:
                return put("10-a.toml",
                           fmt::format("[shard]\nsize = {0}\n[[workqueue]]\nmatch = \"{0}\"\n", size));
            case 1:
                ::rename((at_ + "/10-a.toml").c_str(), (at_ + "/30-c.toml").c_str());
                return;
            case 2:
                return link(base_ + (step % 2 == 0 ? "one" : "two"), at_);  // another folder, atomically
            case 3:
                return put("20-b.toml", "[shard]\nsize = 7\n[shard\n");
            case 4:
                return link("20-b.toml", at_ + "/20-b.toml");  // to itself
            case 5:
                return link("/dev/null", at_ + "/20-b.toml");
            case 6:
                ::chmod((at_ + "/30-c.toml").c_str(), step % 4 == 0 ? 0666 : 0644);
                return;
            case 7:
                ::unlink((at_ + "/20-b.toml").c_str());
                return;
            default:
                ::unlink((at_ + "/30-c.toml").c_str());
        }
    }

    void put(const std::string& name, const std::string& text) {
        std::ofstream(base_ + "new") << text;
        ::rename((base_ + "new").c_str(), (at_ + "/" + name).c_str());
    }

    void link(const std::string& target, const std::string& path) {
        ::unlink((base_ + "new").c_str());
        if (::symlink(target.c_str(), (base_ + "new").c_str()) == 0)
            ::rename((base_ + "new").c_str(), path.c_str());
    }

    std::string base_;
    std::string at_;
    std::atomic<bool> done_ = false;
    std::thread thread_;
};

// Each file counts as a whole or not at all, and the rules of the last file come first.
void expect_a_state_of(const Policy& policy) {
    if (policy.rules.empty())
        EXPECT_EQ(policy.shard_size, 8U);
    else
        EXPECT_EQ(policy.rules[0].match.at(0), std::to_string(policy.shard_size));
}

void expect_places_below(const std::string& folder, const PolicyErrors& errors) {
    EXPECT_FALSE(errors.empty());
    for (const PolicyError& error : errors) {
        EXPECT_THAT(error.file, testing::StartsWith(folder));
        if (error.line == 0)
            EXPECT_THAT(error.message, testing::AnyOf(HasSubstr("No such file"), HasSubstr("Too many levels"),
                                                      HasSubstr("everyone may write to it")));
        else
            EXPECT_THAT(error.text(), HasSubstr("20-b.toml:3:"));
    }
}

TEST(PolicyFiles, AFolderThatChangesWhileItIsReadGivesAStateOfItOrAnErrorWithItsPlace) {
    const TempTree tree{Dir("etc/wq-tuned", {Dir("one"), Dir("two"), Link("wq-tuned.toml.d", "one")})};
    const RestlessFolder restless(tree.root());
    std::set<unsigned> sizes;
    std::set<std::string> messages;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (int i = 0; i < 500 || sizes.size() < 10 || messages.size() < 4; ++i) {
        ASSERT_LT(std::chrono::steady_clock::now(), end)
            << sizes.size() << " policies, " << messages.size() << " errors";
        const auto policy = load_policy(policy_files(tree.root()));
        if (policy) {
            expect_a_state_of(*policy);
            sizes.insert(policy->shard_size);
        } else {
            expect_places_below(tree.path("etc/wq-tuned/wq-tuned.toml.d"), policy.error());
            for (const PolicyError& error : policy.error()) messages.insert(error.message);
        }
        if (testing::Test::HasFailure()) break;
    }
}

TEST(PolicyFiles, AFifoDoesNotBlockAndLinksToFilesAreFollowed) {
    TempTree tree{Dir("etc/wq-tuned")};
    ASSERT_EQ(::mkfifo(tree.path("etc/wq-tuned/wq-tuned.toml").c_str(), 0600), 0);
    EXPECT_THAT(only_error(tree), HasSubstr("not a regular file"));
    const TempTree linked{File("elsewhere.toml", "[shard]\nsize = 4\n"),
                          Link("etc/wq-tuned/wq-tuned.toml", "../../elsewhere.toml")};
    EXPECT_EQ(load_policy(policy_files(linked.root()))->shard_size, 4U);
}

// Without a main file there is the rule of the shipped one, after those of drop-ins.
TEST(InstalledPolicy, HasABuiltInRuleUnlessThereIsAMainFile) {
    const auto rules = [](const TempTree& tree) {
        std::string out;
        const auto policy = load_installed_policy(tree.root(), {}, {});
        for (const WorkqueueRule& rule : policy.value().rules)
            out += rule.match.at(0) + (rule.origin.file.empty() ? " built-in;" : ";");
        return out;
    };
    const Entry drop_in =
        Dir("etc/wq-tuned/wq-tuned.toml.d", {File("a.toml", "[[workqueue]]\nmatch = \"w\"\n")});
    EXPECT_EQ(rules(TempTree{}), "* built-in;");
    EXPECT_EQ(rules(TempTree{drop_in}), "w;* built-in;");
    EXPECT_EQ(rules(TempTree{Dir("etc/wq-tuned", {Link("wq-tuned.toml", "/dev/null")})}), "");
    EXPECT_EQ(rules(TempTree{Dir("etc/wq-tuned", {File("wq-tuned.toml")}), drop_in}), "w;");
}

}  // namespace
}  // namespace wq
