// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cerrno>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "machine/workqueue_fs.h"

namespace wq::test {

// The files of a kernel, in memory. Records the calls, and fails as the test sets.
class FakeWorkqueueFiles : public wq::WorkqueueFiles {
  public:
    struct File {
        ino_t inode = 1;
        std::string word = "default";
        bool strict = false;
    };
    struct Mask {
        ino_t inode = 1;
        std::string text = "ff";
        std::string untouchable = {};
        CpuSet excluded = {};  // isolated CPUs, which the kernel removes from the default mask
    };
    std::map<std::string, File> files;
    std::map<std::string, Mask> masks;
    bool prefixes = false;        // like kernels before 7.1: 'cache_shard' is stored as 'cache'
    std::string possible = "ff";  // CPUs outside of it are dropped from a mask that is written

    // errno of the next calls of each kind; 0 or an empty list: the call succeeds.
    int names_error = 0;
    mutable std::deque<int> read_errors;
    mutable std::deque<int> read_strict_errors;
    std::deque<int> write_errors;  // of scopes and masks
    std::deque<int> write_strict_errors;
    std::function<void()> before_write;  // called at the start of every write of a scope or a mask
    std::function<void()> after_write;   // called after it has written

    // "read a", "write a smt", "read strict a", "write strict a 1", "write a ff"; reads of masks are left out
    mutable std::vector<std::string> asked;

    [[nodiscard]] Result<std::vector<std::string>> names() const override {
        if (names_error != 0) return fail_errno("workqueue", names_error);
        std::vector<std::string> out;
        for (const auto& [name, mask] : masks)
            if (name != kDefaultMask) out.push_back(name);
        return out;
    }
    [[nodiscard]] Result<ScopeFile> read_scope(const std::string& name, ino_t inode) const override {
        asked.push_back("read " + name);
        if (auto ok = check(files, name, inode, read_errors); !ok) return tl::unexpected(ok.error());
        const std::string& word = files.at(name).word;
        return ScopeFile{word, scope_named(word)};
    }
    [[nodiscard]] Result<bool> read_strict(const std::string& name, ino_t inode) const override {
        asked.push_back("read strict " + name);
        if (auto ok = check(files, name, inode, read_strict_errors); !ok) return tl::unexpected(ok.error());
        return files.at(name).strict;
    }
    [[nodiscard]] Result<MaskFile> read_mask(const std::string& name) const override {
        const auto found = masks.find(name);
        if (found == masks.end()) return fail_errno(name, ENOENT);
        const Mask& mask = found->second;
        const CpuSet cpus = CpuSet::parse_mask(mask.text).value();
        return MaskFile{mask.inode, cpus, cpus - mask.excluded, mask.text, mask.untouchable, mask.excluded};
    }
    [[nodiscard]] Status write_scope(const std::string& name, ino_t inode, const std::string& word) override {
        if (auto ok = begin_write(files, name, inode, word); !ok) return ok;
        files.at(name).word = prefixes && word == "cache_shard" ? "cache" : word;
        if (after_write) after_write();
        return {};
    }
    [[nodiscard]] Status write_strict(const std::string& name, ino_t inode, bool strict) override {
        asked.push_back("write strict " + name + (strict ? " 1" : " 0"));
        if (auto ok = check(files, name, inode, write_strict_errors); !ok) return ok;
        files.at(name).strict = strict;
        return {};
    }
    [[nodiscard]] Status write_mask(const std::string& name, ino_t inode, const std::string& text) override {
        if (auto ok = begin_write(masks, name, inode, text); !ok) return ok;
        masks.at(name).text =
            (CpuSet::parse_mask(text).value() & CpuSet::parse_mask(possible).value()).mask();
        if (after_write) after_write();
        return {};
    }

    // The writes in `asked`, including failed ones: "a smt", "strict a 1".
    [[nodiscard]] std::vector<std::string> writes() const {
        std::vector<std::string> out;
        for (const std::string& call : asked)
            if (call.starts_with("write ")) out.push_back(call.substr(6));
        return out;
    }

  private:
    template <class Files>
    Status check(const Files& all, const std::string& name, ino_t inode, std::deque<int>& errors) const {
        if (!errors.empty()) {
            const int error = errors.front();
            errors.pop_front();
            if (error != 0) return fail_errno(name, error);
        }
        const auto file = all.find(name);
        if (file == all.end()) return fail_errno(name, ENOENT);
        if (file->second.inode != inode) return fail_errno(name, ENODEV);
        return {};
    }
    template <class Files>
    Status begin_write(const Files& all, const std::string& name, ino_t inode, const std::string& text) {
        asked.push_back("write " + name + " " + text);
        if (before_write) before_write();
        return check(all, name, inode, write_errors);
    }
};

}  // namespace wq::test
