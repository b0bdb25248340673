// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/btf_types.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "machine/bpf_errors.h"

namespace wq {
namespace {

struct Free {
    void operator()(btf* types) const { btf__free(types); }
};

class Types {
  public:
    explicit Types(btf* types) : types_(types) {}

    [[nodiscard]] const btf_type* find(const char* name, unsigned kind) const {
        const int id = btf__find_by_name_kind(types_, name, kind);
        return id > 0 ? btf__type_by_id(types_, static_cast<unsigned>(id)) : nullptr;
    }
    [[nodiscard]] bool has_function(const char* name) const { return find(name, BTF_KIND_FUNC) != nullptr; }
    // Whether STRUCTURE has MEMBER; empty if there is no such structure.
    [[nodiscard]] std::optional<bool> has_member(const char* structure, std::string_view member) const {
        const btf_type* type = find(structure, BTF_KIND_STRUCT);
        if (type == nullptr) return std::nullopt;
        for (unsigned i = 0; i < btf_vlen(type); i++)
            if (name_at(btf_members(type)[i].name_off) == member) return true;
        return false;
    }
    [[nodiscard]] std::optional<int> value_in(const char* enumeration, std::string_view name) const {
        const btf_type* type = find(enumeration, BTF_KIND_ENUM);
        for (unsigned i = 0; type != nullptr && i < btf_vlen(type); i++)
            if (name_at(btf_enum(type)[i].name_off) == name) return btf_enum(type)[i].val;
        return std::nullopt;
    }

  private:
    [[nodiscard]] std::string_view name_at(unsigned offset) const {
        const char* name = btf__name_by_offset(types_, offset);
        return name != nullptr ? name : "";
    }

    btf* types_;
};

// The kernel searches names in the order of the enum. If it compared prefixes and `cache` came before
// `cache_shard`, `cache_shard` could never be selected; 7.1 made names exact for that reason. Without
// cache_shard, the parser function decides: the prefix version is a loop in its own function; the exact
// version is a single call, which compilers inline. (This is an indirect sign, so a missing function means
// unknown.)
std::optional<bool> exact_parsing(const Types& types) {
    const auto cache = types.value_in("wq_affn_scope", "WQ_AFFN_CACHE");
    const auto shard = types.value_in("wq_affn_scope", "WQ_AFFN_CACHE_SHARD");
    if (cache && shard) return *cache < *shard ? std::optional(true) : std::nullopt;
    return types.has_function("parse_affn_scope") ? std::optional(false) : std::nullopt;
}

// Without the option the structure exists too, but without a member that names a CPU (linux/pwlocks.h).
bool has_pwlocks(const Types& types) {
    return types.has_member("pw_struct", "cpu").value_or(false) || types.has_function("pwlocks_setup");
}

}  // namespace

Result<KernelFeatures> read_types(const std::string& path) {
    const BpfErrors errors;
    const std::unique_ptr<btf, Free> all(btf__parse(path.c_str(), nullptr));
    if (!all) return fail_errno(path, errno);
    const Types types(all.get());
    KernelFeatures out;
    out.exact_parsing = exact_parsing(types);
    // 7.3, "workqueue: shrink the lock time". An indirect sign.
    out.deferred_wakeups = types.has_member("worker_pool", "last_woken_worker");
    out.pwlocks = has_pwlocks(types);
    return out;
}

// These functions are only called through pointers, so compilers keep them (kernel/sched/topology.c,
// default_topology). Every kernel has those of the package level; they show that BTF lists such functions at
// all. (tl_*_mask: since 6.18.)
SchedLevels levels_in_types(const std::string& path) {
    const BpfErrors errors;
    const std::unique_ptr<btf, Free> all(btf__parse(path.c_str(), nullptr));
    if (!all) return {};
    const Types types(all.get());
    const auto has = [&](const char* flags, const char* mask) {
        return types.has_function(flags) || types.has_function(mask);
    };
    const bool clusters = has("cpu_cluster_flags", "tl_cls_mask");
    const bool mc = has("cpu_core_flags", "tl_mc_mask");
    if (!clusters && !mc && !has("cpu_cpu_mask", "tl_pkg_mask")) return {};
    return {clusters, mc};
}

bool kernel_offers(const char* name) {
    const BpfErrors errors;
    const std::unique_ptr<btf, Free> types(btf__load_vmlinux_btf());
    return types && Types(types.get()).has_function(name);
}

}  // namespace wq
