// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/host_facts.h"

#include <sys/utsname.h>
#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace wq {
namespace {

std::size_t cores_in(const CpuSet& cpus, const Topology& topology) {
    return static_cast<std::size_t>(
        std::ranges::count_if(topology.cores, [&](const CpuSet& core) { return cpus.intersects(core); }));
}

// Isolated CPUs are in no LLC, so there may be no LLC at all.
std::optional<unsigned> largest_llc(const Topology& topology) {
    if (!topology.llc_unknown.empty()) return std::nullopt;
    std::size_t most = 0;
    for (const Llc& llc : topology.llcs)
        if (llc.cpus.count() > most) most = std::max(most, cores_in(llc.cpus, topology));
    return most == 0 ? std::nullopt : std::optional(static_cast<unsigned>(most));
}

constexpr std::size_t kCpuinfo = 8192;  // enough for the first CPU; thousands may follow
constexpr std::size_t kMaxSmbios = 4096;
constexpr const char* kDeviceTreeModel = "/sys/firmware/devicetree/base/model";

using Name = std::pair<std::string_view, std::string_view>;

// "CPU implementer" of arm64, with lscpu's names.
constexpr Name kImplementers[] = {{"0x41", "ARM"},       {"0x42", "Broadcom"},  {"0x43", "Cavium"},
                                  {"0x46", "FUJITSU"},   {"0x48", "HiSilicon"}, {"0x4e", "NVIDIA"},
                                  {"0x50", "APM"},       {"0x51", "Qualcomm"},  {"0x61", "Apple"},
                                  {"0x6d", "Microsoft"}, {"0x70", "Phytium"},   {"0xc0", "Ampere"}};
// "CPU implementer" and "CPU part" of servers.
constexpr Name kParts[] = {
    {"0x41 0xd0c", "Neoverse-N1"},  {"0x41 0xd40", "Neoverse-V1"},   {"0x41 0xd49", "Neoverse-N2"},
    {"0x41 0xd4f", "Neoverse-V2"},  {"0x41 0xd83", "Neoverse-V3AE"}, {"0x41 0xd84", "Neoverse-V3"},
    {"0x41 0xd8e", "Neoverse-N3"},  {"0x46 0x001", "A64FX"},         {"0x48 0xd01", "TaiShan-v110"},
    {"0x48 0xd02", "TaiShan-v120"}, {"0xc0 0xac3", "Ampere-1"},      {"0xc0 0xac4", "Ampere-1a"}};

std::string trimmed(std::string_view text) {
    constexpr std::string_view kSpace{" \t\r\n\0", 5};
    const auto begin = text.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) return "";
    return std::string(text.substr(begin, text.find_last_not_of(kSpace) - begin + 1));
}

// Firmware pads its names with spaces, and a device tree ends them with a NUL.
std::string trimmed_line(const std::string& path) {
    return trimmed(read_first_line(path));
}

template <std::size_t N>
std::string name_in(const Name (&names)[N], std::string_view word) {
    for (const auto& [key, name] : names)
        if (key == word) return std::string(name);
    return "";
}

using Cpuinfo = std::map<std::string, std::string>;

Cpuinfo read_cpuinfo(const Paths& paths) {
    std::istringstream lines(read_first_cpuinfo(paths));
    Cpuinfo out;
    for (std::string line; std::getline(lines, line);) {
        const auto colon = line.find(':');
        if (colon == std::string::npos) break;
        out.emplace(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
    }
    return out;
}

std::string value(const Cpuinfo& cpuinfo, const char* key) {
    const auto found = cpuinfo.find(key);
    return found == cpuinfo.end() ? "" : found->second;
}

// "Processor Version" of an SMBIOS type 4 structure. The byte at 0x10 is the number of a string. The strings
// follow the structure, whose length is at offset 1, and each ends with a NUL.
std::string smbios_processor(const Paths& paths) {
    constexpr std::size_t kVersion = 0x10;
    const auto raw = read_file(paths.root + "/sys/firmware/dmi/entries/4-0/raw", kMaxSmbios);
    if (!raw || raw->size() <= kVersion) return "";
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>((*raw)[at]); };
    std::size_t at = byte(1);
    for (unsigned number = byte(kVersion); number > 1 && at < raw->size(); number--)
        at = std::min(raw->find('\0', at), raw->size()) + 1;
    if (byte(kVersion) == 0 || at >= raw->size()) return "";
    return trimmed(raw->substr(at, raw->find('\0', at) - at));
}

std::string vendor(const Cpuinfo& cpuinfo) {
    if (auto id = value(cpuinfo, "vendor_id"); !id.empty()) return id;
    return name_in(kImplementers, value(cpuinfo, "CPU implementer"));
}

std::vector<std::string> models(const Paths& paths, const Cpuinfo& cpuinfo) {
    const std::string part = value(cpuinfo, "CPU implementer") + " " + value(cpuinfo, "CPU part");
    std::vector<std::string> out;
    for (const std::string& name : {value(cpuinfo, "model name"), smbios_processor(paths),
                                    name_in(kParts, part), trimmed_line(paths.root + kDeviceTreeModel)})
        if (!name.empty() && std::ranges::find(out, name) == out.end()) out.push_back(name);
    return out;
}

// Whether NAME, the DMI vendor or product, or the device tree's model, is that of a virtual machine that is
// not x86.
bool is_hypervisor(const std::string& name) {
    for (const char* known :
         {"QEMU", "KVM", "VMware", "VMW", "OpenStack", "KubeVirt", "Parallels", "Virtual Machine",
          "Google Compute Engine", "Hetzner vServer", "Apple Virtualization"})
        if (name.starts_with(known)) return true;
    return false;
}

std::optional<bool> is_virtual(const Paths& paths, const Cpuinfo& cpuinfo) {
    if (!trimmed_line(paths.root + "/run/systemd/container").empty()) return true;
    if (trimmed_line(paths.root + "/proc/xen/capabilities").find("control_d") != std::string::npos)
        return false;
    const std::string flags = " " + value(cpuinfo, "flags") + " ";
    const std::string vendor = trimmed_line(paths.root + "/sys/class/dmi/id/sys_vendor");
    const std::string product = trimmed_line(paths.root + "/sys/class/dmi/id/product_name");
    const std::string model = trimmed_line(paths.root + kDeviceTreeModel);
    if (flags.find(" hypervisor ") != std::string::npos) return true;
    if (is_hypervisor(vendor) || is_hypervisor(product) || is_hypervisor(model)) return true;
    if (model == "linux,dummy-virt" || model.find("qemu") != std::string::npos) return true;
    // Amazon's bare-metal machines have the same vendor.
    if (vendor == "Amazon EC2") return product.find(".metal") == std::string::npos;
    if (cpuinfo.contains("flags") || !vendor.empty() || !model.empty()) return false;
    return std::nullopt;
}

// The file says "uninitialized" until the image's first boot.
std::string machine_id(const Paths& paths) {
    const std::string id = trimmed_line(paths.root + "/etc/machine-id");
    const bool whole = id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
    return whole ? id : "";
}

}  // namespace

void take_counts(const Topology& topology, HostFacts& facts) {
    if (topology.cores.empty()) return;
    facts.llc_cores = largest_llc(topology);
    facts.cores = static_cast<unsigned>(topology.cores.size());
    if (!topology.nodes.empty()) facts.numa_nodes = static_cast<unsigned>(topology.nodes.size());
    facts.smt = std::ranges::any_of(topology.cores, [](const CpuSet& core) { return core.count() > 1; });
}

FleetMachine fleet_machine(HostFacts facts, const Topology& topology) {
    take_counts(topology, facts);
    FleetMachine out{facts.arch, facts.cpu_vendor, "", {}, facts.cores, facts.llc_cores};
    if (!facts.cpu_models.empty()) out.model = facts.cpu_models.front();
    if (!topology.packages.empty()) out.packages = topology.packages.size();
    return out;
}

double canary_position(const std::string& machine_id, const std::string& name) {
    return 0x1p-64 * static_cast<double>(hash_of(machine_id + "/" + name));
}

std::string read_first_cpuinfo(const Paths& paths) {
    std::string text(kCpuinfo, '\0');
    std::ifstream file(paths.root + "/proc/cpuinfo", std::ios::binary);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    return text.substr(0, text.find("\n\n"));
}

std::string read_arch(const Paths& paths) {
    if (auto word = trimmed_line(paths.root + "/proc/sys/kernel/arch"); !word.empty() || !paths.root.empty())
        return word;
    utsname names{};
    return ::uname(&names) == 0 ? names.machine : "";
}

std::string read_cpu_vendor(const Paths& paths) {
    return vendor(read_cpuinfo(paths));
}

HostFacts read_host_facts(const Paths& paths, const Result<Topology>& topology) {
    const Cpuinfo cpuinfo = read_cpuinfo(paths);
    HostFacts facts;
    facts.arch = read_arch(paths);
    facts.cpu_vendor = vendor(cpuinfo);
    facts.cpu_models = models(paths, cpuinfo);
    facts.kernel = trimmed_line(paths.osrelease());
    facts.hostname = read_hostname(paths);
    facts.machine_id = machine_id(paths);
    facts.is_virtual = is_virtual(paths, cpuinfo);
    if (topology) take_counts(*topology, facts);
    return facts;
}

std::string read_hostname(const Paths& paths) {
    return trimmed_line(paths.proc() + "/sys/kernel/hostname");
}

}  // namespace wq
