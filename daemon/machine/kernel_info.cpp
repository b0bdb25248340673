// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/kernel_info.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <memory>
#include <sstream>

#include "base/file.h"
#include "base/text.h"
#include "machine/bpf_errors.h"

namespace wq {

bool KernelInfo::has(Scope scope) const {
    return std::ranges::find(scopes, scope) != scopes.end();
}

std::string lacks_scopes(const KernelInfo& kernel) {
    if (!kernel.scopes.empty()) return "";
    const std::string which = kernel.release.empty() ? "this kernel" : "Linux " + kernel.release;
    return fmt::format("{} has no affinity scopes: 6.6 or later is needed", which);
}

namespace {

// Checks the mode bits: access(2) always succeeds for root, but the write would then fail.
bool is_writable(const std::string& path) {
    struct stat st {};
    return ::stat(path.c_str(), &st) == 0 && (st.st_mode & 0222) != 0;
}

// One parameter of the kernel command line.
struct Parameter {
    std::string name;  // with '_' for '-': the kernel treats them alike (kernel/params.c, parameq())
    std::optional<std::string> value;
    std::string text;  // as written, without quotes
};

// Splits like next_arg() of lib/cmdline.c: a space in quotes does not end a parameter. Words after "--" are
// for init.
std::vector<Parameter> parameters_of(std::string cmdline) {
    bool quoted = false;
    for (char& c : cmdline) {
        if (c == '"') quoted = !quoted;
        if (quoted && c == ' ') c = '_';
    }
    std::erase(cmdline, '"');
    std::istringstream words(cmdline);
    std::vector<Parameter> out;
    for (std::string text; words >> text && text != "--";) {
        const auto equals = text.find('=');
        Parameter next{text.substr(0, equals), {}, text};
        std::ranges::replace(next.name, '-', '_');
        if (equals != std::string::npos) next.value = text.substr(equals + 1);
        out.push_back(std::move(next));
    }
    return out;
}

// Whether PARAMETER is a mitigation option that turns SMT off on CPUs with the flaw: "mds=full,nosmt",
// "mitigations=auto,nosmt;no_user_user", or L1TF's "full", which implies nosmt.
bool may_turn_smt_off(const Parameter& parameter) {
    std::string value = *parameter.value;
    if (parameter.name == "l1tf" && (value == "full" || value == "full,force")) return true;
    std::ranges::replace(value, ';', ',');
    return (value + ",").find(",nosmt,") != std::string::npos;
}

// Whether PARAMETER kept CPUs offline at boot. nosmt has no effect without siblings; smt/control shows that.
// A mitigation has no effect on a CPU without the flaw, and SMT is then on. (A number in smt/control:
// powerpc with only some of the threads online.) maxcpus=N has no effect with N or fewer CPUs.
bool holds_back(const Parameter& parameter, const Paths& paths) {
    const std::string control = read_first_line(paths.cpus() + "/smt/control");
    const bool off = control == "off" || control == "forceoff" ||
                     (!control.empty() && std::isdigit(static_cast<unsigned char>(control[0])) != 0);
    if (parameter.name == "nosmt" && (!parameter.value || parameter.value == "force"))
        return off || control == "on";
    if (!parameter.value) return false;
    if (parameter.name != "maxcpus") return off && may_turn_smt_off(parameter);
    const auto present = CpuSet::parse_list(read_first_line(paths.cpus() + "/present"));
    const auto most =
        number_of<std::size_t>(parameter.value->substr(0, parameter.value->find_first_not_of("0123456789")));
    return most && present && present->count() > *most;
}

void read_cmdline(const Paths& paths, KernelInfo& info) {
    for (const Parameter& parameter : parameters_of(read_file(paths.cmdline()).value_or(""))) {
        if (parameter.name == "wq_tuned" && parameter.value == "off") info.switched_off = true;
        if (parameter.name == "workqueue.default_affinity_scope" && parameter.value)
            info.default_on_cmdline = true;
        if (!holds_back(parameter, paths)) continue;
        if (!info.cpus_held_back.empty()) info.cpus_held_back += " and ";
        info.cpus_held_back += parameter.text;
    }
}

// Since 7.1, together with the scope (kernel/workqueue.c, module_param_named(cache_shard_size)).
std::optional<unsigned> shard_size(const Paths& paths) {
    const auto size = number_of<unsigned>(read_first_line(paths.parameters() + "/cache_shard_size"));
    return size == 0U ? 1U : size;  // precompute_cache_shard_ids(): 0 means 1
}

}  // namespace

std::vector<Scope> classic_scopes() {
    return {Scope::cpu, Scope::smt, Scope::cache, Scope::numa, Scope::system};
}

KernelInfo probe_kernel(const Paths& paths) {
    KernelInfo info;
    info.release = read_first_line(paths.osrelease());
    read_cmdline(paths, info);
    if (!exists(paths.parameters() + "/default_affinity_scope")) return info;
    info.scopes = classic_scopes();
    info.default_writable = is_writable(paths.parameters() + "/default_affinity_scope");
    info.cache_shard_size = shard_size(paths);
    if (info.cache_shard_size) info.scopes.insert(info.scopes.begin() + 2, Scope::cache_shard);
    return info;
}

// ---- the types of the kernel

namespace {

class Types {
  public:
    explicit Types(const std::string& path) : types_(btf__parse(path.c_str(), nullptr), btf__free) {}
    explicit operator bool() const { return types_ != nullptr; }
    [[nodiscard]] bool has_function(const char* name) const {
        return btf__find_by_name_kind(types_.get(), name, BTF_KIND_FUNC) > 0;
    }

  private:
    BpfErrors silent_;
    std::unique_ptr<btf, void (*)(btf*)> types_;
};

// These functions are only called through pointers, so compilers keep them (kernel/sched/topology.c,
// default_topology). Every kernel has those of the package level; they show that BTF lists such functions at
// all. (tl_*_mask: since 6.18.)
SchedLevels levels_in_types(const std::string& path) {
    const Types types(path);
    if (!types) return {};
    const auto has = [&](const char* flags, const char* mask) {
        return types.has_function(flags) || types.has_function(mask);
    };
    const bool clusters = has("cpu_cluster_flags", "tl_cls_mask");
    const bool mc = has("cpu_core_flags", "tl_mc_mask");
    if (!clusters && !mc && !has("cpu_cpu_mask", "tl_pkg_mask")) return {};
    return {clusters, mc};
}

constexpr std::size_t kMostConfig = std::size_t{2} << 20;

bool is_set(const std::string& config, const std::string& option) {
    const std::string line = option + "=y\n";
    return config.starts_with(line) || config.find("\n" + line) != std::string::npos;
}

// Empty: no such file, or not a kernel configuration.
std::optional<SchedLevels> in_config(const std::string& path) {
    const auto text = read_file(path, kMostConfig);
    if (!text || text->find("CONFIG_SMP=") == std::string::npos) return std::nullopt;
    return SchedLevels{is_set(*text, "CONFIG_SCHED_CLUSTER"), is_set(*text, "CONFIG_SCHED_MC")};
}

SchedLevels read_levels(const Paths& paths) {
    const std::string release = read_first_line(paths.osrelease());
    if (!release.empty() && release.find('/') == std::string::npos)
        for (const std::string& path : {"/boot/config-" + release, "/lib/modules/" + release + "/config"})
            if (const auto found = in_config(paths.root + path)) return *found;
    return levels_in_types(paths.btf());
}

}  // namespace

// A kernel without CONFIG_PWLOCKS has the types of linux/pwlocks.h too, but not this function.
KernelFeatures read_features(const Paths& paths, const KernelInfo& kernel) {
    KernelFeatures out{kernel.has(Scope::cache_shard), {}};
    if (const Types types(paths.btf()); types) out.pwlocks = types.has_function("pwlocks_setup");
    return out;
}

SchedLevels read_sched_levels(const Paths& paths) {
    if (!paths.root.empty()) return read_levels(paths);
    static SchedLevels running;
    if (running == SchedLevels{}) running = read_levels(paths);
    return running;
}

// ---- the file of the kernel's pods

namespace {

constexpr std::size_t kMaxPods = 16U << 20;  // bytes; 65536 CPUs, each a pod in six scopes, need half
constexpr std::string_view kWhy = "why ";

// TEXT of PATH: "why ERROR", or "SCOPE NODE CPUS" for each pod, and a line "end".
Result<KernelPods> pods_from(const std::string& text, const std::string& path) {
    if (text.starts_with(kWhy)) return fail(text.substr(kWhy.size(), text.find('\n') - kWhy.size()));
    KernelPods out;
    std::istringstream in(text);
    int node = 0;
    for (std::string word, cpus; in >> word && word != "end";) {
        in >> node >> cpus;
        const auto scope = scope_named(word);
        auto set = CpuSet::parse_list(cpus);
        if (!in || !scope || !set) return fail(path + ": not a list of pods", EBADMSG);
        out[*scope].push_back({std::move(*set), node});
    }
    if (!text.ends_with("\nend\n")) return fail(path + ": cut off", EBADMSG);
    return out;
}

}  // namespace

std::string pods_path(const Paths& paths) {
    return paths.run() + "/pods";
}

Status leave_pods(const std::string& path, const Result<KernelPods>& pods) {
    if (const auto there = find_pods(path); !pods && there && *there) return {};
    if (!pods) return replace_file(path, std::string(kWhy) + pods.error().text + "\n");
    std::string out;
    for (const auto& [scope, all] : *pods)
        for (const KernelPod& pod : all)
            out += fmt::format("{} {} {}\n", name_of(scope), pod.node, pod.cpus.list());
    return replace_file(path, out + "end\n");
}

std::optional<Result<KernelPods>> find_pods(const std::string& path) {
    auto text = read_if_there(path, kMaxPods);
    if (!text) return tl::unexpected(text.error());
    if (!*text) return std::nullopt;
    return pods_from(**text, path);
}

}  // namespace wq
