// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernel/probe.h"

#include <unistd.h>

#include <charconv>
#include <sstream>

#include "kernel/file.h"
#include "model/cpu_set.h"

namespace wq {
namespace {

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

std::string first_line(const std::string& path) {
    const auto text = read_file(path);
    return text ? text->substr(0, text->find('\n')) : "";
}

// nosmt does nothing where there are no siblings to keep offline; the kernel says so in smt/control.
bool has_smt(const Paths& paths) {
    const std::string control = first_line(paths.cpus() + "/smt/control");
    return control == "on" || control == "off" || control == "forceoff";
}

// maxcpus=N keeps CPUs offline only where there are more than N.
bool holds_back(const std::string& word, const Paths& paths) {
    if (word == "nosmt" || word == "nosmt=force") return has_smt(paths);
    if (!word.starts_with("maxcpus=")) return false;
    const auto present = CpuSet::parse_list(first_line(paths.cpus() + "/present"));
    std::size_t most = 0;
    const auto [end, error] = std::from_chars(word.data() + 8, word.data() + word.size(), most);
    return error == std::errc{} && present && present->count() > most;
}

void read_cmdline(const Paths& paths, KernelInfo& info) {
    std::istringstream words(first_line(paths.cmdline()));
    for (std::string word; words >> word;) {
        if (word == "--") break;  // the rest is for init
        if (word == "wq_tuned=off") info.switched_off = true;
        if (word.starts_with("workqueue.default_affinity_scope=")) info.default_on_cmdline = true;
        if (holds_back(word, paths)) info.cpus_held_back = word;
    }
}

// Since 7.1, with the scope itself (kernel/workqueue.c, module_param_named(cache_shard_size)).
std::optional<unsigned> shard_size(const Paths& paths) {
    const std::string text = first_line(paths.parameters() + "/cache_shard_size");
    unsigned size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return size == 0 ? 1 : size;  // precompute_cache_shard_ids(): 0 means 1
}

}  // namespace

std::vector<Scope> classic_scopes() {
    return {Scope::cpu, Scope::smt, Scope::cache, Scope::numa, Scope::system};
}

KernelInfo probe_kernel(const Paths& paths) {
    KernelInfo info;
    info.release = first_line(paths.osrelease());
    read_cmdline(paths, info);
    if (!exists(paths.parameters() + "/default_affinity_scope")) return info;
    info.scopes = classic_scopes();
    info.cache_shard_size = shard_size(paths);
    if (info.cache_shard_size) info.scopes.insert(info.scopes.begin() + 2, Scope::cache_shard);
    return info;
}

}  // namespace wq
