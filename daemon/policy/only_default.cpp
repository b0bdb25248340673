// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/only_default.h"

#include <fnmatch.h>

#include <algorithm>

namespace wq {
namespace {

struct Invisible {
    const char* glob;
    const char* owner;
};

// Of Linux 6.6 to 7.2.
constexpr Invisible kInvisible[] = {
    {"events_unbound", "the kernel's shared workqueue"},
    {"async", "the kernel's asynchronous functions"},
    {"rpciod", "NFS"},
    {"xprtiod", "NFS"},
    {"nfsiod", "NFS"},
    {"nfsd*", "the NFS server"},
    {"btrfs-*", "btrfs"},
    {"ext4-rsv-conversion", "ext4"},
    {"erofs*", "erofs"},
    {"ceph-*", "ceph"},
    {"loop*", "loop devices"},
    {"nbd*", "network block devices"},
    {"xfs-blockgc/*", "XFS"},
    {"xfs-cil/*", "XFS"},
};

constexpr std::size_t kTelling = 3;  // letters before the first wildcard: "nfs*" means NFS, "n*" does not

}  // namespace

std::string why_only_default(const std::string& name) {
    const bool tells = std::min(name.find_first_of("*?[\\"), name.size()) >= kTelling;
    for (const auto& [glob, owner] : kInvisible)
        if (::fnmatch(glob, name.c_str(), 0) == 0 || (tells && ::fnmatch(name.c_str(), glob, 0) == 0))
            return owner;
    return "";
}

}  // namespace wq
