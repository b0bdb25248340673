// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fake_kernel.h"

#include "fake_machine.h"

namespace wq::test {

Result<ScopeFile> FakeKernel::read_scope(const std::string& name, ino_t inode) const {
    if (const int error = on_read ? on_read(name) : 0; error != 0) return fail_errno(name, error);
    return WorkqueueFs::read_scope(name, inode);
}

Status FakeKernel::write_scope(const std::string& name, ino_t inode, const std::string& word) {
    asked.push_back(name + "=" + word);
    if (const int error = on_write ? on_write(name, word) : 0; error != 0) return fail_errno(name, error);
    auto done = WorkqueueFs::write_scope(name, inode, prefixes && word == "cache_shard" ? "cache" : word);
    if (done && (word == "default" || name == kDefaultTarget)) show_defaults();
    return done;
}

Status FakeKernel::write_strict(const std::string& name, ino_t inode, bool strict) {
    asked.push_back(name + " strict=" + (strict ? "1" : "0"));
    if (const int error = on_write_strict ? on_write_strict(name) : 0; error != 0)
        return fail_errno(name, error);
    return WorkqueueFs::write_strict(name, inode, strict);
}

void FakeKernel::show_defaults() {
    std::string meaning = tree_.read(kDefaultPath);
    meaning.pop_back();
    const auto all = names();
    for (const std::string& name : *all) {
        const std::string path = wq_path(name);
        if (!tree_.exists(path)) continue;
        const auto now = parse_scope_file(tree_.read(path));
        if (now && now->word == "default") tree_.write(path, "default (" + meaning + ")\n");
    }
}

}  // namespace wq::test
