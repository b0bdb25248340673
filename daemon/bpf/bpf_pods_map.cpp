// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/bpf_pods_map.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <cstdint>
#include <vector>

namespace wq {
namespace {

static_assert(kAllScopes.size() == WQ_SCOPES);

std::size_t record_bytes(const MaskLayout& layout) {
    return sizeof(wq_pod) + layout.mask_bytes;
}

Result<KernelPod> read_pod(int map, std::uint32_t key, const MaskLayout& layout) {
    std::vector<__u64> record(record_bytes(layout) / sizeof(__u64));
    if (bpf_map_lookup_elem(map, &key, record.data()) != 0)
        return fail_errno("reading the kernel's pods", errno);
    return KernelPod{cpus_of_mask(&record[1], layout.mask_bytes), static_cast<int>(record[0])};
}

}  // namespace

void make_room_for_pods(bpf_map* map, const MaskLayout& layout) {
    bpf_map__set_value_size(map, static_cast<unsigned>(record_bytes(layout)));
    bpf_map__set_max_entries(map, WQ_SCOPES * layout.nr_cpus);
}

Result<KernelPods> read_pods_map(const bpf_map* map, const __s32 (&nr_pods)[WQ_SCOPES],
                                 const MaskLayout& layout) {
    KernelPods out;
    for (std::uint32_t scope = 0; scope < WQ_SCOPES; scope++) {
        const auto count = static_cast<std::uint32_t>(nr_pods[scope]);
        for (std::uint32_t i = 0; i < count; i++) {
            auto pod = read_pod(bpf_map__fd(map), scope * layout.nr_cpus + i, layout);
            if (!pod) return tl::unexpected(pod.error());
            out[kAllScopes[scope]].push_back(std::move(*pod));
        }
    }
    return out;
}

}  // namespace wq
