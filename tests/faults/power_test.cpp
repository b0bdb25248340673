// SPDX-License-Identifier: LGPL-2.1-or-later
// Power loss after each call of the daemon on its files (Disk is the model), and files that are truncated
// at each byte. After a power loss /sys is as at boot, and /run, a tmpfs, is empty; owned.json is checked
// anyway, as if /run were on a disk.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include "evidence/verdicts.h"
#include "scenario.h"

namespace wq::faults {
namespace {

// Up to this number of pending name changes all subsets are tried; with more, only all prefixes.
constexpr std::size_t kMostSubsets = 8;

std::string folder_of(const std::string& path) {
    return path.substr(0, path.rfind('/'));
}

// The states that a disk may have after a power loss, given the calls so far. The model guarantees less than
// any file system in use:
// - The data of a file is durable after an fsync of the file. Data added after that may be lost as a whole,
//   be there by half, have its full length with zeros in the second half, or be there.
// - A name (made, renamed, removed) is durable after an fsync of its folder. Any subset of the name changes
//   after that may be there. A single rename is there as a whole or not at all.
// - Folders themselves are durable.
class Disk {
  public:
    using Files = std::map<std::string, std::string>;  // text by path

    void add(const Done& done);
    [[nodiscard]] std::set<Files> after_power_loss() const;
    // The content that a reader sees now.
    [[nodiscard]] Files now() const;

  private:
    struct Inode {
        std::string durable;
        std::string text;
    };
    using InodePtr = std::shared_ptr<Inode>;
    using Names = std::map<std::string, InodePtr>;
    struct Change {  // of names
        std::string removed, made;
        InodePtr inode;
    };
    void change(const Change& change);
    static void apply(Names& names, const Change& change);

    Names names_;
    Names durable_;
    std::vector<Change> pending_;
};

void Disk::apply(Names& names, const Change& change) {
    if (!change.removed.empty()) names.erase(change.removed);
    if (!change.made.empty()) names[change.made] = change.inode;
}

void Disk::change(const Change& change) {
    apply(names_, change);
    pending_.push_back(change);
}

void Disk::add(const Done& done) {
    const auto found = names_.find(done.path);
    const InodePtr inode = found == names_.end() ? nullptr : found->second;
    if (done.call == Call::open && done.text == "create") {
        if (inode)
            inode->text.clear();
        else
            change({"", done.path, std::make_shared<Inode>()});
    } else if (done.call == Call::write && inode) {
        inode->text += done.text;
    } else if (done.call == Call::rename) {
        change({done.path, done.text, inode});
    } else if (done.call == Call::unlink) {
        change({done.path, "", nullptr});
    } else if (done.call == Call::fsync && inode) {
        inode->durable = inode->text;
    } else if (done.call == Call::fsync) {
        std::erase_if(pending_, [&](const Change& each) {
            const bool here = folder_of(each.made.empty() ? each.removed : each.made) == done.path;
            if (here) apply(durable_, each);
            return here;
        });
    }
}

Disk::Files Disk::now() const {
    Files out;
    for (const auto& [path, inode] : names_) out[path] = inode->text;
    return out;
}

std::set<Disk::Files> Disk::after_power_loss() const {
    std::set<Files> out;
    const auto texts = [](const Inode& inode) -> std::vector<std::string> {
        const std::size_t kept = inode.text.starts_with(inode.durable) ? inode.durable.size() : 0;
        const std::string half = inode.text.substr(0, kept + (inode.text.size() - kept) / 2);
        return {inode.durable, half, half + std::string(inode.text.size() - half.size(), '\0'), inode.text};
    };
    const bool all = pending_.size() <= kMostSubsets;
    const std::size_t choices = all ? std::size_t{1} << pending_.size() : pending_.size() + 1;
    for (std::size_t choice = 0; choice < choices; choice++) {
        Names names = durable_;
        for (std::size_t i = 0; i < pending_.size(); i++)
            if (all ? (choice >> i & 1) != 0 : i < choice) apply(names, pending_[i]);
        for (std::size_t variant = 0; variant < 4; variant++) {
            Files files;
            for (const auto& [path, inode] : names)
                files[path] = inode->text == inode->durable ? inode->text : texts(*inode)[variant];
            out.insert(std::move(files));
        }
    }
    return out;
}

const std::string kBaseline = "run/wq-tuned/owned.json";
const std::string kVerdicts = "var/lib/wq-tuned/verdicts.log";

// The texts that a file was given, in order. After a power loss it must not have a text that is older than
// the last one known to be durable.
class Versions {
  public:
    explicit Versions(std::string path) : path_(std::move(path)) {}

    void add(const Done& done, const Disk& disk) {
        if (done.call == Call::rename && done.text == path_) texts_.push_back(disk.now().at(path_));
        if (done.call == Call::fsync && path_.starts_with(done.path + "/") &&
            done.path.find('.') == std::string::npos)
            durable_ = texts_.size();
    }
    [[nodiscard]] bool may_be(const Disk::Files& files) const {
        const auto found = files.find(path_);
        if (found == files.end()) return durable_ == 0;
        for (std::size_t i = durable_ == 0 ? 0 : durable_ - 1; i < texts_.size(); i++)
            if (texts_[i] == found->second) return true;
        return false;
    }
    // The last text known to be durable.
    [[nodiscard]] std::string durable() const { return durable_ == 0 ? "" : texts_[durable_ - 1]; }
    [[nodiscard]] std::size_t size() const { return texts_.size(); }

  private:
    std::string path_;
    std::vector<std::string> texts_;
    std::size_t durable_ = 0;
};

std::vector<Done> record(const Scenario& scenario) {
    std::vector<Done> out;
    Host host(scenario.options());
    host.edge.record = [&](const Done& done) { out.push_back(done); };
    live(scenario, host);
    return out;
}

// Boots a machine with FILES and starts the daemon. Returns what is wrong.
std::string wrong_after_boot(const Scenario& scenario, const Disk::Files& files) {
    Host host(scenario.options());
    for (const auto& [path, text] : files)
        if (path.starts_with("var/")) host.tree.write(path, text);
    VerdictStore verdicts(host.tree.path(kVerdicts));
    if (const auto loaded = verdicts.load(); !loaded) return loaded.error().text + "\n";
    host.edge.watch();
    host.start();
    host.ticks(1);
    host.edge.rest();
    std::string out = wrong_on_disk(host) + wrong_in_status(host);
    host.stop();
    out += host.restore();
    return out + wrong_at_the_end(host);
}

// Whether the durable text BASELINE has an entry that covers this write to one of the kernel's files.
bool is_covered(const Done& done, const std::string& baseline) {
    test::TempTree tree;
    tree.write("owned.json", baseline);
    OwnedStore store(tree.path("owned.json"));
    if (!store.load()) return false;
    const std::string folder = done.path.substr(0, done.path.rfind('/'));
    const bool parameter = folder.ends_with("/parameters");
    const auto* entry = store.find(parameter ? kDefaultTarget : folder.substr(folder.rfind('/') + 1));
    const std::string word = done.text.substr(0, done.text.find('\n'));
    if (entry == nullptr) return false;
    const Attribute& attribute = done.path.ends_with("_strict") ? entry->strict.value() : entry->main;
    return word == attribute.baseline || attribute.is_claimed(word);
}

class Power : public testing::TestWithParam<std::size_t> {
  protected:
    const Scenario& scenario_ = scenarios()[GetParam()];
};

TEST_P(Power, MayBeLostBehindEachStep) {
    Disk disk;
    Versions baseline(kBaseline);
    std::string verdicts;
    std::set<Disk::Files> booted;
    unsigned cuts = 0;
    unsigned disks = 0;
    unsigned writes = 0;
    for (const Done& done : record(scenario_)) {
        if (done.path.starts_with("sys/") && done.call == Call::write) {
            writes++;
            EXPECT_TRUE(is_covered(done, baseline.durable())) << done.path << " = " << done.text;
        }
        if (done.path.starts_with("sys/") || done.call == Call::read || done.call == Call::stat) continue;
        disk.add(done);
        baseline.add(done, disk);
        // Lines are added to a log: what is durable stays as it is.
        if (done.call == Call::fsync && (done.path == kVerdicts || kVerdicts.starts_with(done.path + "/")))
            if (const auto now = disk.now(); now.contains(kVerdicts)) verdicts = now.at(kVerdicts);
        cuts++;
        for (const Disk::Files& files : disk.after_power_loss()) {
            disks++;
            ASSERT_TRUE(baseline.may_be(files)) << "cut " << cuts << ": owned.json is torn or out of date";
            ASSERT_TRUE(verdicts.empty() || files.at(kVerdicts).starts_with(verdicts))
                << "cut " << cuts << ": verdicts.log lacks a line";
            Disk::Files kept = files;
            std::erase_if(kept, [](const auto& file) { return !file.first.starts_with("var/"); });
            if (!booted.insert(kept).second) continue;
            ASSERT_EQ(wrong_after_boot(scenario_, kept), "") << "cut " << cuts;
        }
    }
    std::cout << scenario_.name << ": " << cuts << " cuts, " << disks << " disks, " << booted.size()
              << " boots; " << baseline.size() << " baselines, " << writes << " covered writes\n";
    EXPECT_GT(baseline.size(), 1U);
    EXPECT_GT(writes, 1U);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Power, testing::Range<std::size_t>(0, scenarios().size()),
                         [](const auto& info) { return scenarios()[info.param].name; });

// The files of the scenario `trials` when owned.json and verdicts.log together are largest.
Disk::Files stores_of_trials() {
    Disk disk;
    Disk::Files best;
    for (const Done& done : record(scenarios()[0])) {
        if (!done.path.starts_with("sys/")) disk.add(done);
        const auto now = disk.now();
        if (now.contains(kVerdicts) && now.contains(kBaseline) &&
            now.at(kBaseline).size() + now.at(kVerdicts).size() >
                best[kBaseline].size() + best[kVerdicts].size())
            best = now;
    }
    return best;
}

TEST(Cut, VerdictsAtAnyByteLoseTheirTornLineAlone) {
    const std::string whole = stores_of_trials().at(kVerdicts);
    ASSERT_GT(whole.size(), 500U);
    for (std::size_t size = 0; size < whole.size(); size += is_long() ? 1 : 37) {
        test::TempTree tree;
        tree.write(kVerdicts, whole.substr(0, size));
        VerdictStore store(tree.path(kVerdicts));
        EXPECT_TRUE(store.load()) << "cut at " << size;
        EXPECT_EQ(store.records().size(), std::ranges::count(whole.substr(0, size), '\n'));
    }
}

TEST(Cut, ABaselineAtAnyByteIsNotTrustedAndNotReplaced) {
    const std::string whole = stores_of_trials().at(kBaseline);
    ASSERT_GT(whole.size(), 200U);
    for (std::size_t size = 0; size + 2 < whole.size(); size += is_long() ? 1 : 37) {
        test::TempTree tree;
        tree.write(kBaseline, whole.substr(0, size));
        OwnedStore store(tree.path(kBaseline));
        EXPECT_FALSE(store.load()) << "cut at " << size;
        EXPECT_TRUE(store.entries().empty());
        store.put({"kcryptd", 1, {Knob::scope, "default", {"smt"}}});
        EXPECT_FALSE(store.save());
        EXPECT_EQ(tree.read(kBaseline), whole.substr(0, size));
    }
}

}  // namespace
}  // namespace wq::faults
