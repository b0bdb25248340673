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

// The masks of a kernel, in memory. Records the writes, and fails as the test sets.
class FakeMaskFiles : public MaskFiles {
  public:
    struct File {
        ino_t inode = 1;
        std::string text = "ff";
        std::string untouchable = {};
        CpuSet excluded = {};  // isolated CPUs, which the kernel removes from the default mask
    };
    std::map<std::string, File> files;
    std::string possible = "ff";      // CPUs outside of it are dropped from a write
    int names_error = 0;              // errno of names()
    std::deque<int> write_errors;     // errno of the next writes; 0 or an empty list: the write succeeds
    std::function<void()> on_write;   // called at the start of every write
    std::vector<std::string> writes;  // "a=f3", including failed ones

    [[nodiscard]] Result<std::vector<std::string>> names() const override {
        if (names_error != 0) return fail_errno("workqueue", names_error);
        std::vector<std::string> out;
        for (const auto& [name, file] : files)
            if (name != kDefaultMask) out.push_back(name);
        return out;
    }
    [[nodiscard]] Result<MaskFile> read_mask(const std::string& name) const override {
        const auto found = files.find(name);
        if (found == files.end()) return fail_errno(name, ENOENT);
        const CpuSet cpus = CpuSet::parse_mask(found->second.text).value();
        return MaskFile{found->second.inode,           cpus,
                        cpus - found->second.excluded, found->second.text,
                        found->second.untouchable,     found->second.excluded};
    }
    [[nodiscard]] Status write_mask(const std::string& name, ino_t inode, const std::string& text) override {
        if (on_write) on_write();
        writes.push_back(name + "=" + text);
        if (!write_errors.empty()) {
            const int error = write_errors.front();
            write_errors.pop_front();
            if (error != 0) return fail_errno(name, error);
        }
        const auto found = files.find(name);
        if (found == files.end()) return fail_errno(name, ENOENT);
        if (found->second.inode != inode) return fail_errno(name, ENODEV);
        const CpuSet kept = CpuSet::parse_mask(text).value() & CpuSet::parse_mask(possible).value();
        found->second.text = kept.mask();
        return {};
    }
};

}  // namespace wq::test
