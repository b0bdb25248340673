// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/bpf_pods.h"

#include <cerrno>

#include "all_pods.skel.h"
#include "bpf/bpf_masks.h"
#include "bpf/bpf_pods_map.h"
#include "bpf/skeleton.h"

namespace wq {
namespace {

constexpr auto kWhat = "the kernel's own pods were not read";

using Skeleton = OwnedSkeleton<all_pods_bpf>;

Result<Skeleton> loaded(const MaskLayout& layout) {
    const BpfErrors errors;
    Skeleton skeleton(all_pods_bpf::open());
    if (!skeleton) return errors.fail(kWhat, errno);
    skeleton->rodata->nr_cpus = layout.nr_cpus;
    skeleton->rodata->mask_bytes = layout.mask_bytes;
    make_room_for_pods(skeleton->maps.pods, layout);
    if (int code = all_pods_bpf::load(skeleton.get())) return errors.fail(kWhat, code);
    return skeleton;
}

}  // namespace

Result<KernelPods> read_kernel_pods() {
    const auto layout = read_mask_layout();
    if (!layout) return tl::unexpected(layout.error().in(kWhat));
    const auto skeleton = loaded(*layout);
    if (!skeleton) return tl::unexpected(skeleton.error());
    if (auto ran = run_once((*skeleton)->progs.wqt_pods, kWhat); !ran) return tl::unexpected(ran.error());
    return read_pods_map((*skeleton)->maps.pods, (*skeleton)->bss->nr_pods, *layout);
}

}  // namespace wq
