// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/hwloc_topology.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hwloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "machine/cpu_files.h"
#include "machine/host_facts.h"
#include "machine/llc_rule.h"
#include "machine/paths.h"
#include "machine/pods_file.h"

namespace wq {
namespace {
namespace fs = std::filesystem;

// hwloc reads configuration from the environment. While this object exists, only our HWLOC_* variables are
// set; the user's are saved and restored.
class HwlocEnvironment {
  public:
    // FSROOT: read this tree instead of this machine; "" for none.
    explicit HwlocEnvironment(const std::string& fsroot) : users_(taken()) {
        if (!fsroot.empty()) ::setenv("HWLOC_FSROOT", fsroot.c_str(), 1);
        // Only the Linux component: the x86 component runs CPUID on each CPU and binds the calling thread
        // there (hwloc.h at HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING, which is also set).
        ::setenv("HWLOC_COMPONENTS", "linux,stop", 1);
        ::setenv("HWLOC_HIDE_ERRORS", "2", 1);              // we report the errors
        ::setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);  // no CUDA or OpenCL plugins in a daemon
    }
    ~HwlocEnvironment() {
        taken();
        for (const auto& [name, value] : users_) ::setenv(name.c_str(), value.c_str(), 1);
    }
    HwlocEnvironment(const HwlocEnvironment&) = delete;
    HwlocEnvironment& operator=(const HwlocEnvironment&) = delete;

  private:
    using Variables = std::vector<std::pair<std::string, std::string>>;
    // Removes all from the environment.
    static Variables taken() {
        Variables out;
        for (char** entry = environ; *entry != nullptr; entry++)
            if (const std::string_view text = *entry; text.starts_with("HWLOC_"))
                out.emplace_back(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
        for (const auto& [name, value] : out) ::unsetenv(name.c_str());
        return out;
    }

    Variables users_;
};

// A tree of links to the valid CPU folders of another tree. hwloc trusts its input: a range above 2^31 makes
// it allocate gigabytes, an empty node folder fails an assertion, and garbage at a cache's first CPU hides
// the cache from all other CPUs.
class SaneTree {
  public:
    SaneTree() = default;
    ~SaneTree() {
        std::error_code ignored;
        if (!root_.empty()) fs::remove_all(root_, ignored);
    }
    SaneTree(const SaneTree&) = delete;
    SaneTree& operator=(const SaneTree&) = delete;

    [[nodiscard]] const std::string& root() const { return root_; }

    Status make(const std::string& original, const CpuSet& cpus) {
        std::error_code error;
        std::string pattern = (fs::temp_directory_path(error) / "wq-tuned-XXXXXX").string();
        if (error || ::mkdtemp(pattern.data()) == nullptr) return fail_errno(pattern, errno);
        root_ = pattern;
        const fs::path to = root_ + "/sys/devices/system/cpu";
        const fs::path from = fs::absolute(original + "/sys/devices/system/cpu", error);
        fs::create_directories(to, error);
        for (unsigned cpu : cpus.cpus()) {
            const std::string name = fmt::format("cpu{}", cpu);
            if (!error) fs::create_directory_symlink(from / name, to / name, error);
        }
        if (error) return fail(to.string() + ": " + error.message(), error.value());
        // POWER7's tree does not have this file, and in a copied tree it may not match the CPU folders. (Not
        // replace_file(), whose fsync waits for the disk.)
        const Fd fd(::open((to / "online").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (!fd) return fail_errno((to / "online").string(), errno);
        return write_all(fd.get(), cpus.list() + "\n");
    }

  private:
    std::string root_;
};

using Hwloc = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

// Which hwloc objects to keep besides caches, NUMA nodes and CPUs.
enum class Keep { caches, cores_too };

Result<Hwloc> new_hwloc(Keep keep) {
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
    if (keep == Keep::cores_too) {
        hwloc_topology_set_type_filter(raw, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
        hwloc_topology_set_type_filter(raw, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
        // hwloc attaches a NUMA node inside a cache to a group.
        hwloc_topology_set_type_filter(raw, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
    }
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

// For each online CPU, the data and unified caches that the LLC rule needs.
std::vector<Cache> caches_in(const Hwloc& hwloc, const CpuSet& online) {
    std::vector<Cache> out;
    std::map<hwloc_obj_t, std::size_t> number_of;
    for (hwloc_obj_t cpu = nullptr;
         (cpu = hwloc_get_next_obj_by_type(hwloc.get(), HWLOC_OBJ_PU, cpu)) != nullptr;) {
        if (!online.has(cpu->os_index)) continue;
        hwloc_obj_t outermost = nullptr;
        const auto add = [&](hwloc_obj_t cache) {
            const auto [known, is_new] = number_of.emplace(cache, out.size());
            if (is_new) out.push_back({cache->attr->cache.depth, cache->attr->cache.size > 0, {}});
            out[known->second].cpus.add(cpu->os_index);
        };
        for (hwloc_obj_t up = cpu->parent; up != nullptr; up = up->parent) {
            if (hwloc_obj_type_is_dcache(up->type) == 0) continue;
            outermost = up;
            if (up->attr->cache.depth == 2 || up->attr->cache.depth == 3) add(up);
        }
        if (outermost != nullptr) add(outermost);
    }
    return out;
}

// The CPUs whose outermost cache in the files is not in CACHES: hwloc omits a cache that partly overlaps
// another one.
CpuSet without_outermost(const std::vector<Cache>& caches, const CpuFiles& files) {
    std::multimap<unsigned, const CpuSet*> by_first;
    for (const Cache& cache : caches) by_first.emplace(cache.cpus.first(), &cache.cpus);
    CpuSet out;
    for (const CpuSet& group : files.outermost) {
        const CpuSet known = group & files.cache_known;
        if (known.empty()) continue;
        const auto [begin, end] = by_first.equal_range(known.first());
        if (std::none_of(begin, end, [&](const auto& cache) { return *cache.second == known; })) out |= known;
    }
    return out;
}

// Reads the caches of the CPUs in `cache_known` below ROOT with hwloc. hwloc may not find them if the tree
// has caches but not the topology files that it needs.
Result<std::vector<Cache>> read_caches(const std::string& root, CpuFiles& files, bool through_links) {
    if (files.cache_known.empty()) return std::vector<Cache>{};
    SaneTree links;
    if (through_links)
        if (auto made = links.make(root, files.cache_known); !made) return tl::unexpected(made.error());
    const HwlocEnvironment environment(links.root());
    const auto hwloc = new_hwloc(Keep::caches);
    if (!hwloc) return tl::unexpected(hwloc.error());
    CpuSet unseen = files.cache_known;
    std::vector<Cache> caches;
    if (hwloc_topology_load(hwloc->get()) == 0) {
        caches = caches_in(*hwloc, files.online);
        unseen -= to_cpu_set(hwloc_topology_get_topology_cpuset(hwloc->get()));
    }
    unseen |= without_outermost(caches, files);
    if (!unseen.empty() && files.warnings.empty())  // one line says that the tree contradicts itself
        files.warnings.push_back(fmt::format("CPUs {}: hwloc does not see their caches", unseen.list()));
    return caches;
}

// A CPU without known caches gets those of its thread siblings, because a core is never divided.
void complete(std::vector<Cache>& caches, const CpuFiles& files) {
    for (const CpuSet& core : files.cores) {
        const CpuSet missing = core - files.cache_known;
        if (missing.empty() || missing == core) continue;
        for (Cache& cache : caches)
            if (cache.cpus.intersects(core)) cache.cpus |= missing;
    }
}

// Reads the kernel's files first, strictly. Then hwloc sees only CPUs whose cache files are valid. A tree is
// always read through links. This machine is read directly if there are no warnings, so the daemon needs no
// temporary folder.
Result<Topology> read_tree(const std::string& root) {
    auto files = read_cpu_files(root);
    if (!files) return tl::unexpected(files.error());
    const bool through_links = !root.empty() || !files->warnings.empty();
    auto caches = read_caches(root, *files, through_links);
    if (!caches) return tl::unexpected(caches.error());
    complete(*caches, *files);
    const Paths paths{root};
    const LlcFacts facts{read_arch(paths), std::move(*caches), std::move(files->clusters),
                         [&] { return read_cpu_vendor(paths); }, [&] { return read_sched_levels(paths); }};
    auto topology = static_cast<Topology&&>(*files);  // the rest was for the LLCs
    topology.first = read_first_cpus(paths);
    set_llcs(topology, facts);
    return topology;
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
    const LlcFacts facts{is_xml ? info_in(hwloc, "Architecture") : "", caches_in(hwloc, topology.online),
                         std::move(clusters), [&] { return info_in(hwloc, "CPUVendor"); }};
    set_llcs(topology, facts);
    if (std::string why = is_xml ? missing_in_xml(topology, facts) : ""; !why.empty())
        topology.llc_unknown = std::move(why);
    return topology;
}

// The text of an XML file; "-" is standard input.
Result<std::string> read_xml_text(const std::string& path) {
    constexpr std::size_t kMost = std::size_t{256} << 20;  // for 8,192 CPUs it needs some tens of megabytes
    if (path != "-" && exists(path) && !fs::is_regular_file(path)) return fail("not a file");
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
        const auto hwloc = new_hwloc(Keep::cores_too);
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

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// The value of ATTRIBUTE in the first tag of TAG's name; "" if it has none.
std::string_view attribute_of(std::string_view tag, std::string_view attribute) {
    tag = tag.substr(0, tag.find('>'));
    const auto at = tag.find(attribute);
    if (at == std::string_view::npos) return "";
    tag.remove_prefix(at + attribute.size());
    return tag.substr(0, tag.find('"'));
}

// Why hwloc (2.x, with its own parser) cannot load the XML text TEXT, and what to run instead, as far as it
// can be told. Never empty.
std::string why_no_xml(std::string_view text) {
    if (text.empty()) return "it is empty";
    if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
        return "it is UTF-16; convert it with `iconv -f UTF-16 -t UTF-8`, then remove the byte order mark";
    const auto root = text.find("<topology");
    if (root == std::string_view::npos) return "it has no <topology>: `lstopo --of xml FILE` writes one";
    const std::string version(attribute_of(text.substr(root), " version=\""));
    if (number_of<unsigned>(version.substr(0, version.find('.'))).value_or(0) > 2)
        return fmt::format(
            "its export version is {}, and hwloc 2 reads 2.x; export it with `lstopo --of xml "
            "--export-xml-flags v2 FILE`",
            printable(version.substr(0, 16)));
    std::vector<std::string_view> faults;
    if (text.starts_with(kByteOrderMark))
        faults.emplace_back(
            "it begins with a byte order mark (remove it with `sed -i '1s/^\\xEF\\xBB\\xBF//' FILE`)");
    if (text.find("\r\n") != std::string_view::npos)
        faults.emplace_back("its lines end in CRLF (convert them with `sed -i 's/\\r$//' FILE`)");
    if (text.substr(0, root).find("<!--") != std::string_view::npos)
        faults.emplace_back("it has a comment before <topology> (remove it)");
    if (version.empty() && text.find("\"MemorySideCache\"") != std::string_view::npos)
        faults.emplace_back(
            "it is in the format of hwloc 1.x, which has no MemorySideCache (export it in that of 2.x "
            "with `lstopo --of xml FILE`)");
    if (faults.empty()) return "it is damaged, or not an XML of hwloc; `lstopo --of xml FILE` writes one";
    return fmt::format("{}", fmt::join(faults, ", and "));
}

// XML: the text of the description if it is an XML.
Result<Topology> read_described(const Describe& describe, const std::string* xml) {
    const auto refused = [&] {
        return xml != nullptr
                   ? fail("hwloc cannot load this topology: " + why_no_xml(*xml), EINVAL)
                   : fail("not a synthetic topology of hwloc (such as \"package:2 l3:1 core:8 pu:2\")",
                          EINVAL);
    };
    const HwlocEnvironment environment("");
    if (auto sane = survives(describe); !sane) return tl::unexpected(sane.error());
    const auto hwloc = new_hwloc(Keep::cores_too);
    if (!hwloc) return tl::unexpected(hwloc.error());
    if (describe(hwloc->get()) != 0 || hwloc_topology_load(hwloc->get()) != 0) return refused();
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

// Number of CPUs in DESCRIPTION, parsed like hwloc does (topology-synthetic.c): levels "TYPE:N" or "N",
// attributes in (), memory in []. More than kMaxCpus if there are more, because hwloc would then create
// objects until memory is full. For text that hwloc rejects, the result is undefined.
unsigned long synthetic_cpus(const std::string& description) {
    unsigned long cpus = 1;
    const char* at = description.c_str();
    while (at != nullptr && *at != '\0' && cpus <= CpuSet::kMaxCpus) {
        if (std::strchr(" \t\v\f\r\n)]:", *at) != nullptr) {
            at++;
        } else if (*at == '[' || *at == '(') {
            at = std::strchr(at, *at == '[' ? ']' : ')');
        } else if (std::isdigit(static_cast<unsigned char>(*at)) == 0 && *at != '+' && *at != '-') {
            at = std::strchr(at, ':');
        } else {
            char* end = nullptr;
            const unsigned long arity = std::strtoul(at, &end, 0);
            if (end != at) cpus *= std::min(arity, CpuSet::kMaxCpus + 1UL);
            at = end == at ? at + 1 : end;
        }
    }
    return cpus;
}

// Whether an "indexes=0,2,1,3" has a CPU number that is too large: hwloc would allocate sets of that size.
bool has_absurd_indexes(const std::string& description) {
    static constexpr std::string_view kKey = "indexes=";
    for (auto at = description.find(kKey); at != std::string::npos; at = description.find(kKey, at + 1)) {
        const char* text = description.c_str() + at + kKey.size();
        while (std::isdigit(static_cast<unsigned char>(*text)) != 0) {
            char* end = nullptr;
            if (std::strtoul(text, &end, 10) >= CpuSet::kMaxCpus) return true;
            text = *end == ',' ? end + 1 : end;
        }
    }
    return false;
}

Result<Topology> read_synthetic(const std::string& description) {
    if (synthetic_cpus(description) > CpuSet::kMaxCpus || has_absurd_indexes(description))
        return fail(fmt::format("more than {} CPUs", CpuSet::kMaxCpus), EOVERFLOW);
    return read_described(
        [&](hwloc_topology_t hwloc) { return hwloc_topology_set_synthetic(hwloc, description.c_str()); },
        nullptr);
}

Result<Topology> read_any(const std::string& source, const std::string& root) {
    if (source == "live") return read_tree(root);
    const auto colon = source.find(':');
    const std::string kind = source.substr(0, colon);
    const std::string rest = colon == std::string::npos ? "" : source.substr(colon + 1);
    if (rest.empty()) return fail("must be live, fsroot:DIR, xml:FILE, xml:- or synthetic:DESC", EINVAL);
    if (kind == "fsroot") return read_tree(rest);
    if (kind == "xml") return read_xml(rest);
    if (kind == "synthetic") return read_synthetic(rest);
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
