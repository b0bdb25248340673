// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/topology_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <hwloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <regex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "machine/llc_rule.h"

namespace wq {
namespace {

// hwloc reads configuration from the environment. From here on this process has only our HWLOC_* variables.
void set_environment() {
    std::vector<std::string> names;
    for (char** entry = environ; *entry != nullptr; entry++)
        if (const std::string_view text = *entry; text.starts_with("HWLOC_"))
            names.emplace_back(text.substr(0, text.find('=')));
    for (const std::string& name : names) ::unsetenv(name.c_str());
    ::setenv("HWLOC_HIDE_ERRORS", "2", 1);              // we report the errors
    ::setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);  // no CUDA or OpenCL plugins
}

using Hwloc = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

Result<Hwloc> new_hwloc() {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) return fail_errno("hwloc_topology_init", errno);
    Hwloc hwloc(raw, hwloc_topology_destroy);
    hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED |
                                      HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING |
                                      HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
                                      HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
    hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_cache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_icache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(raw, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(raw, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    // hwloc attaches a NUMA node inside a cache to a group.
    hwloc_topology_set_type_filter(raw, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
    return hwloc;
}

CpuSet to_cpu_set(hwloc_const_bitmap_t bitmap) {
    CpuSet set;
    for (int cpu = hwloc_bitmap_first(bitmap); cpu >= 0; cpu = hwloc_bitmap_next(bitmap, cpu))
        set.add(static_cast<unsigned>(cpu));
    return set;
}

// The objects of TYPE with their CPUs.
std::vector<std::pair<hwloc_obj_t, CpuSet>> objects_of(const Hwloc& hwloc, hwloc_obj_type_t type) {
    std::vector<std::pair<hwloc_obj_t, CpuSet>> out;
    for (hwloc_obj_t one = nullptr; (one = hwloc_get_next_obj_by_type(hwloc.get(), type, one)) != nullptr;)
        out.emplace_back(one, to_cpu_set(one->cpuset));
    return out;
}

// The data and unified caches that the LLC rule needs.
std::vector<Cache> caches_in(const Hwloc& hwloc) {
    std::vector<Cache> out;
    for (const auto type :
         {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE})
        for (auto& [cache, cpus] : objects_of(hwloc, type))
            if (cache->attr->cache.depth > 1 || cache->attr->cache.size > 0)
                out.push_back({cache->attr->cache.depth, std::move(cpus)});
    return out;
}

// hwloc's Core of each CPU, or the CPU itself if it has none.
std::vector<CpuSet> cores_in(const Hwloc& hwloc) {
    std::vector<CpuSet> cores;
    CpuSet seen;
    for (auto& [cpu, set] : objects_of(hwloc, HWLOC_OBJ_PU)) {
        if (const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(hwloc.get(), HWLOC_OBJ_CORE, cpu))
            set = to_cpu_set(core->cpuset);
        if (seen.intersects(set)) continue;
        seen |= set;
        cores.push_back(std::move(set));
    }
    std::ranges::sort(cores, {}, &CpuSet::first);
    return cores;
}

std::vector<NumaNode> nodes_in(const Hwloc& hwloc) {
    std::vector<NumaNode> nodes;
    CpuSet seen;
    for (auto& [node, set] : objects_of(hwloc, HWLOC_OBJ_NUMANODE)) {
        set -= seen;  // high-bandwidth memory is a second node with the same CPUs
        if (set.empty()) continue;
        seen |= set;
        nodes.push_back({node->os_index, std::move(set)});
    }
    std::ranges::sort(nodes, {}, [](const NumaNode& node) { return node.cpus.first(); });
    return nodes;
}

// The info NAME of the machine or of its first package that has it; "" if there is none.
std::string info_in(const Hwloc& hwloc, const char* name) {
    for (const hwloc_obj_type_t type : {HWLOC_OBJ_MACHINE, HWLOC_OBJ_PACKAGE})
        for (const auto& [object, cpus] : objects_of(hwloc, type))
            if (const char* value = hwloc_obj_get_info_by_name(object, name)) return value;
    return "";
}

// What an XML does not tell, so that its LLCs may be wrong; "" if it tells everything.
std::string missing_in_xml(const Topology& topology, const LlcFacts& facts) {
    if (topology.cores.size() <= 1 || facts.arch.starts_with("s390")) return "";  // no cache counts there
    if (facts.caches.empty())
        return "the XML has no caches in it; export it with `lstopo --of xml --filter cache:all FILE`";
    if (facts.arch.empty() &&
        std::ranges::none_of(facts.caches, [](const Cache& cache) { return cache.level >= 3; }))
        return "the XML has no L3 in it, and does not tell the architecture (info \"Architecture\")";
    return "";
}

Result<Topology> topology_in(const Hwloc& hwloc, bool is_xml) {
    // All other sets are parts of these two. An XML can have the second without the first.
    const hwloc_const_bitmap_t complete = hwloc_topology_get_complete_cpuset(hwloc.get());
    for (const hwloc_const_bitmap_t set : {complete, hwloc_topology_get_topology_cpuset(hwloc.get())})
        if (hwloc_bitmap_last(set) >= static_cast<int>(CpuSet::kMaxCpus) || hwloc_bitmap_weight(set) < 0)
            return fail(fmt::format("CPU numbers beyond {}", CpuSet::kMaxCpus - 1), EOVERFLOW);
    Topology topology;
    topology.present = topology.possible = to_cpu_set(complete);
    topology.online = to_cpu_set(hwloc_topology_get_topology_cpuset(hwloc.get()));
    if (topology.online.empty()) return fail("no CPUs found");
    topology.cores = cores_in(hwloc);
    topology.nodes = nodes_in(hwloc);
    for (auto& [package, cpus] : objects_of(hwloc, HWLOC_OBJ_PACKAGE))
        if (!cpus.empty()) topology.packages.push_back(std::move(cpus));
    std::ranges::sort(topology.packages, {}, &CpuSet::first);
    std::vector<CpuSet> clusters;  // of cores
    for (auto& [group, cpus] : objects_of(hwloc, HWLOC_OBJ_GROUP))
        if (group->subtype != nullptr && std::string_view(group->subtype) == "Cluster")
            clusters.push_back(std::move(cpus));
    const LlcFacts facts{is_xml ? info_in(hwloc, "Architecture") : "", caches_in(hwloc), std::move(clusters),
                         info_in(hwloc, "CPUVendor")};
    set_llcs(topology, facts);
    if (std::string why = is_xml ? missing_in_xml(topology, facts) : ""; !why.empty())
        topology.llc_unknown = std::move(why);
    return topology;
}

// The text of an XML file; "-" is standard input.
Result<std::string> read_xml_text(const std::string& path) {
    constexpr std::size_t kMost = std::size_t{256} << 20;  // for 8,192 CPUs it needs some tens of megabytes
    if (path != "-" && exists(path) && !std::filesystem::is_regular_file(path)) return fail("not a file");
    return read_file(path == "-" ? "/dev/stdin" : path, kMost);
}

// Sets the description that a new hwloc topology loads. -1: rejected.
using Describe = std::function<int(hwloc_topology_t)>;

// Tests in a child process whether hwloc can load a description: its parsers crash on some malformed XML and
// fail assertions on some synthetic strings (2.9), and a flat machine of 65,536 CPUs takes it minutes.
Status survives(const Describe& describe) {
    static constexpr unsigned kPatience = 30;  // seconds
    const pid_t child = ::fork();
    if (child < 0) return fail_errno("fork", errno);
    if (child == 0) {
        const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
        ::dup2(null, STDERR_FILENO);
        const rlimit no_core = {0, 0};
        ::setrlimit(RLIMIT_CORE, &no_core);
        ::alarm(kPatience);
        const auto hwloc = new_hwloc();
        if (hwloc && describe(hwloc->get()) == 0) hwloc_topology_load(hwloc->get());
        ::_exit(0);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return fail_errno("waitpid", errno);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return fail(fmt::format("hwloc needs more than {} s for it", kPatience), ETIMEDOUT);
    return fail("hwloc cannot load this topology: hwloc crashes", EINVAL);
}

// Why hwloc (2.x, with its own parser) cannot load the XML text TEXT, and what to run instead, as far as it
// can be told.
std::string why_no_xml(const std::string& text) {
    const auto root = text.find("<topology");
    if (root == std::string::npos) return "it has no <topology>: `lstopo --of xml FILE` writes one";
    static const std::regex exported(R"(^<topology[^>]* version="([0-9][0-9.]{0,15}))");
    std::smatch version;
    if (std::regex_search(text.begin() + static_cast<std::ptrdiff_t>(root), text.end(), version, exported,
                          std::regex_constants::match_continuous) &&
        std::strtoul(version[1].str().c_str(), nullptr, 10) > 2)
        return fmt::format(
            "its export version is {}, and hwloc 2 reads 2.x; export it with `lstopo --of xml "
            "--export-xml-flags v2 FILE`",
            version[1].str());
    std::string faults;
    if (text.starts_with("\xef\xbb\xbf"))
        faults = "it begins with a byte order mark (remove it with `sed -i '1s/^\\xEF\\xBB\\xBF//' FILE`)";
    if (text.find("\r\n") != std::string::npos)
        faults += std::string(faults.empty() ? "" : ", and ") +
                  "its lines end in CRLF (convert them with `sed -i 's/\\r$//' FILE`)";
    if (!faults.empty()) return faults;
    if (text.substr(0, root).find("<!--") != std::string::npos)
        return "a comment stands before <topology>, which hwloc does not read: remove it";
    return "it is damaged, or not an XML of hwloc 2; `lstopo --of xml FILE` writes one";
}

// XML: the text of the description if it is an XML.
Result<Topology> read_described(const Describe& describe, const std::string* xml) {
    set_environment();
    if (auto sane = survives(describe); !sane) return tl::unexpected(sane.error());
    const auto hwloc = new_hwloc();
    if (!hwloc) return tl::unexpected(hwloc.error());
    if (describe(hwloc->get()) != 0 || hwloc_topology_load(hwloc->get()) != 0)
        return fail(xml != nullptr
                        ? "hwloc cannot load this topology: " + why_no_xml(*xml)
                        : "not a synthetic topology of hwloc (such as \"package:2 l3:1 core:8 pu:2\")",
                    EINVAL);
    return topology_in(*hwloc, xml != nullptr);
}

Result<Topology> read_xml(const std::string& path) {
    const auto text = read_xml_text(path);
    if (!text) return tl::unexpected(text.error());
    return read_described(
        [&](hwloc_topology_t hwloc) {
            return hwloc_topology_set_xmlbuffer(hwloc, text->c_str(), static_cast<int>(text->size()) + 1);
        },
        &*text);
}

// Whether DESCRIPTION has more than kMaxCpus CPUs, or the number of one in "indexes=0,2,1,3" is higher: hwloc
// would make objects until memory is full. Its levels are "TYPE:N" or "N", with attributes in () and [].
bool is_absurd(const std::string& description) {
    static const std::regex attributes(R"(\([^)]*\)|\[[^\]]*\])"), level(R"((?:^|[:\s])\s*([-+]?\d\w*))");
    static const std::regex large_index(R"(indexes=[^)]*\d{6})");
    if (std::regex_search(description, large_index)) return true;
    const std::string levels = std::regex_replace(description, attributes, " ");
    unsigned long cpus = 1;
    for (std::sregex_iterator at(levels.begin(), levels.end(), level), end; at != end; ++at)
        cpus *= std::clamp(std::strtoul((*at)[1].str().c_str(), nullptr, 0), 1UL, CpuSet::kMaxCpus + 1UL);
    return cpus > CpuSet::kMaxCpus;
}

Result<Topology> read_synthetic(const std::string& description) {
    if (is_absurd(description)) return fail(fmt::format("more than {} CPUs", CpuSet::kMaxCpus), EOVERFLOW);
    return read_described(
        [&](hwloc_topology_t hwloc) { return hwloc_topology_set_synthetic(hwloc, description.c_str()); },
        nullptr);
}

Result<Topology> read_any(const std::string& source, const std::string& root) {
    if (source == "live") return read_cpu_files(Paths{root});
    const auto colon = source.find(':');
    const std::string kind = source.substr(0, colon);
    const std::string rest = colon == std::string::npos ? "" : source.substr(colon + 1);
    if (!rest.empty() && kind == "fsroot") return read_cpu_files(Paths{rest});
    if (!rest.empty() && kind == "xml") return read_xml(rest);
    if (!rest.empty() && kind == "synthetic") return read_synthetic(rest);
    return fail("must be live, fsroot:DIR, xml:FILE, xml:- or synthetic:DESC", EINVAL);
}

}  // namespace

Result<Topology> read_topology(const std::string& source, const std::string& root) {
    auto topology = read_any(source, root);
    if (!topology) {
        const bool named = topology.error().text.starts_with(source.substr(source.find(':') + 1));
        return tl::unexpected(named ? topology.error() : topology.error().in(source));
    }
    topology->source = source;
    return topology;
}

}  // namespace wq
