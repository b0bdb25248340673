// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fake_scope_files.h"

#include <algorithm>
#include <cerrno>

namespace wq::test {

Status FakeScopeFiles::check(const std::string& name, ino_t inode, std::deque<int>& errors) const {
    if (!errors.empty()) {
        const int error = errors.front();
        errors.pop_front();
        if (error != 0) return fail_errno(name, error);
    }
    const auto file = files.find(name);
    if (file == files.end()) return fail_errno(name, ENOENT);
    if (file->second.inode != inode) return fail_errno(name, ENODEV);
    return {};
}

Result<ScopeFile> FakeScopeFiles::read_scope(const std::string& name, ino_t inode) const {
    asked.push_back("read " + name);
    if (auto ok = check(name, inode, read_errors); !ok) return tl::unexpected(ok.error());
    const std::string& word = files.at(name).word;
    return ScopeFile{word, scope_named(word)};
}

Result<bool> FakeScopeFiles::read_strict(const std::string& name, ino_t inode) const {
    asked.push_back("read strict " + name);
    if (auto ok = check(name, inode, read_strict_errors); !ok) return tl::unexpected(ok.error());
    return files.at(name).strict;
}

Status FakeScopeFiles::write_scope(const std::string& name, ino_t inode, const std::string& word) {
    asked.push_back("write " + name + " " + word);
    if (before_write) before_write();
    if (auto ok = check(name, inode, write_errors); !ok) return ok;
    files.at(name).word = prefixes && word == "cache_shard" ? "cache" : word;
    if (after_write) after_write();
    return {};
}

Status FakeScopeFiles::write_strict(const std::string& name, ino_t inode, bool strict) {
    asked.push_back("write strict " + name + (strict ? " 1" : " 0"));
    if (auto ok = check(name, inode, write_strict_errors); !ok) return ok;
    files.at(name).strict = strict;
    return {};
}

std::size_t FakeScopeFiles::writes() const {
    return static_cast<std::size_t>(std::count_if(
        asked.begin(), asked.end(), [](const std::string& call) { return call.starts_with("write"); }));
}

}  // namespace wq::test
