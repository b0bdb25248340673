// SPDX-License-Identifier: LGPL-2.1-or-later
#include "counters/bpf_pods.h"

#include <bpf/bpf.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <vector>

#include "counters/bpf_errors.h"
#include "counters/bpf_masks.h"
#include "counters/bpf_shared.h"
#include "pods.skel.h"

namespace wq {
namespace {

constexpr auto kWhat = "reading the kernel's pods";

struct Destroy {
    void operator()(pods_bpf* skeleton) const { pods_bpf::destroy(skeleton); }
};
using Skeleton = std::unique_ptr<pods_bpf, Destroy>;

static_assert(kAllScopes.size() == WQ_SCOPES);

std::size_t record_bytes(const MaskLayout& layout) {
    return sizeof(wq_pod) + layout.mask_bytes;
}

Result<Skeleton> loaded(const MaskLayout& layout) {
    const BpfErrors errors;
    Skeleton skeleton(pods_bpf::open());
    if (!skeleton) return errors.fail(kWhat, errno);
    skeleton->rodata->nr_cpus = layout.nr_cpus;
    skeleton->rodata->mask_bytes = layout.mask_bytes;
    bpf_map__set_value_size(skeleton->maps.pods, static_cast<unsigned>(record_bytes(layout)));
    bpf_map__set_max_entries(skeleton->maps.pods, WQ_SCOPES * layout.nr_cpus);
    if (int code = pods_bpf::load(skeleton.get())) return errors.fail(kWhat, code);
    return skeleton;
}

Result<KernelPod> read_pod(int map, std::uint32_t key, const MaskLayout& layout) {
    std::vector<__u64> record(record_bytes(layout) / sizeof(__u64));
    if (bpf_map_lookup_elem(map, &key, record.data()) != 0) return fail_errno(kWhat, errno);
    return KernelPod{cpus_of_mask(&record[1], layout.mask_bytes), static_cast<int>(record[0])};
}

}  // namespace

Result<KernelPods> read_kernel_pods() {
    const auto layout = read_mask_layout();
    if (!layout) return tl::unexpected(layout.error().in(kWhat));
    const auto skeleton = loaded(*layout);
    if (!skeleton) return tl::unexpected(skeleton.error());
    if (auto ran = run_once((*skeleton)->progs.wqt_pods, kWhat); !ran) return tl::unexpected(ran.error());

    const int map = bpf_map__fd((*skeleton)->maps.pods);
    KernelPods out;
    for (std::uint32_t scope = 0; scope < WQ_SCOPES; scope++) {
        const auto count = static_cast<std::uint32_t>((*skeleton)->bss->nr_pods[scope]);
        for (std::uint32_t i = 0; i < count; i++) {
            auto pod = read_pod(map, scope * layout->nr_cpus + i, *layout);
            if (!pod) return tl::unexpected(pod.error());
            out[kAllScopes[scope]].push_back(std::move(*pod));
        }
    }
    return out;
}

}  // namespace wq
