// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk.h"

namespace wq::faults {
namespace {

// Up to this number of pending name changes all subsets are tried; with more, only all prefixes.
constexpr std::size_t kMostSubsets = 8;

std::string folder_of(const std::string& path) {
    return path.substr(0, path.rfind('/'));
}

}  // namespace

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

}  // namespace wq::faults
