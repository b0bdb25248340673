// SPDX-License-Identifier: LGPL-2.1-or-later
#include "temp_tree.h"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "base/cpu_set.h"

namespace wq::test {
namespace fs = std::filesystem;
static const auto kInterrupts = ::signal(SIGINT, SIG_DFL);  // a job in a script's background ignores it

Entry File(std::string name, std::string text, mode_t mode) {
    return {Entry::Kind::file, std::move(name), std::move(text), mode};
}

Entry Dir(std::string name, std::vector<Entry> entries) {
    return {Entry::Kind::dir, std::move(name), "", 0755, std::move(entries)};
}

Entry Link(std::string name, std::string target) {
    return {Entry::Kind::link, std::move(name), std::move(target)};
}

TempTree::TempTree(std::initializer_list<Entry> entries) : TempTree(std::vector<Entry>(entries)) {}

namespace {

// In memory if possible: a large machine has ten thousand files, which take a minute on a disk.
std::string new_folder() {
    const bool memory = ::getenv("TMPDIR") == nullptr && ::access("/dev/shm", W_OK | X_OK) == 0;
    const fs::path parent = memory ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string pattern = (parent / "wq-tuned-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
        throw std::system_error(errno, std::generic_category(), pattern);
    return pattern;
}

// "00000001,0000ffff\n": a mask as wide as the machine, as bitmap_print_to_pagebuf() writes it.
std::string mask_text(const CpuSet& set, unsigned width) {
    std::string text;
    for (unsigned word = (width + 31) / 32; word-- > 0;) {
        unsigned value = 0;
        for (unsigned bit = 0; bit < 32; bit++) value |= set.has(word * 32 + bit) ? 1U << bit : 0U;
        text += fmt::format("{}{:08x}", text.empty() ? "" : ",", value);
    }
    return text + "\n";
}

std::string line(const CpuSet& set) {
    return set.list() + "\n";
}

CpuSet must_parse(const std::string& list) {
    auto set = CpuSet::parse_list(list);
    if (!set) throw std::runtime_error(set.error().text);
    return *set;
}

// Writes the files of one CpuTree. A CPU's place is its socket, its core in the socket, its thread.
class CpuTreeBuilder {
  public:
    explicit CpuTreeBuilder(const CpuTree& machine)
        : m_(machine), offline_(must_parse(machine.offline)), isolated_(must_parse(machine.isolated)) {}

    [[nodiscard]] Entry build() const {
        std::vector<Entry> cpu = {File("present", line(all())), File("online", line(all() - offline_)),
                                  File("possible", line(CpuSet::range(0, cpus() + m_.extra_possible - 1))),
                                  File("isolated", line(isolated_))};
        for (unsigned i = 0; i < cpus(); i++) cpu.push_back(cpu_dir(i));
        std::vector<Entry> system = {Dir("cpu", std::move(cpu))};
        if (m_.nodes > 0) system.push_back(node_dir());
        std::vector<Entry> all = {Dir("sys/devices/system", std::move(system))};
        if (!m_.arch.empty()) all.push_back(File("proc/sys/kernel/arch", m_.arch + "\n"));
        if (!m_.vendor.empty())
            all.push_back(File("proc/cpuinfo", "processor\t: 0\nvendor_id\t: " + m_.vendor + "\n"));
        return Dir(".", std::move(all));
    }

  private:
    [[nodiscard]] unsigned cpus() const { return m_.sockets * m_.cores * m_.threads; }
    [[nodiscard]] CpuSet all() const { return CpuSet::range(0, cpus() - 1); }
    [[nodiscard]] unsigned core_of(unsigned cpu) const {  // over the whole machine
        if (m_.interleaved) return cpu % m_.sockets * m_.cores + cpu / m_.sockets % m_.cores;
        return m_.neighbours ? cpu / m_.threads : cpu % (m_.sockets * m_.cores);
    }
    [[nodiscard]] unsigned socket_of(unsigned cpu) const { return core_of(cpu) / m_.cores; }
    // Number of the CPU's part, if the cores of each socket are divided into PARTS.
    [[nodiscard]] unsigned part_of(unsigned cpu, unsigned parts) const {
        return socket_of(cpu) * parts + core_of(cpu) % m_.cores * parts / m_.cores;
    }
    // All CPUs for which GROUP returns the same as for CPU.
    template <class Group>
    [[nodiscard]] CpuSet alike(unsigned cpu, Group group) const {
        CpuSet set;
        for (unsigned i = 0; i < cpus(); i++)
            if (group(i) == group(cpu)) set.add(i);
        return m_.stale ? set : set - offline_;
    }

    [[nodiscard]] Entry cpu_dir(unsigned cpu) const {
        std::vector<Entry> files;
        const bool offline = offline_.has(cpu);
        if (cpu > 0) files.push_back(File("online", offline ? "0\n" : "1\n"));
        if (!offline) {
            files.push_back(topology_dir(cpu));
            if (m_.caches) files.push_back(cache_dir(cpu));
        }
        return Dir(fmt::format("cpu{}", cpu), std::move(files));
    }

    [[nodiscard]] std::vector<Entry> both(const std::string& map, const std::string& list,
                                          const CpuSet& set) const {
        return {File(map, mask_text(set, cpus())), File(list, line(set))};
    }

    [[nodiscard]] Entry topology_dir(unsigned cpu) const {
        const CpuSet threads = alike(cpu, [&](unsigned i) { return core_of(i); });
        const CpuSet package = alike(cpu, [&](unsigned i) { return socket_of(i); });
        std::vector<Entry> files = both("thread_siblings", "thread_siblings_list", threads);
        for (const auto& file : both("core_siblings", "core_siblings_list", package)) files.push_back(file);
        if (m_.clusters > 0) {
            const CpuSet cluster = alike(cpu, [&](unsigned i) { return part_of(i, m_.clusters); });
            for (const auto& file : both("cluster_cpus", "cluster_cpus_list", cluster)) files.push_back(file);
        }
        return Dir("topology", std::move(files));
    }

    [[nodiscard]] Entry cache_index(unsigned index, unsigned level, const char* type, const char* size,
                                    const CpuSet& shared) const {
        std::vector<Entry> files = {File("level", fmt::format("{}\n", level)),
                                    File("type", std::string(type) + "\n")};
        if (!m_.made_up) files.push_back(File("size", std::string(size) + "\n"));
        for (const auto& file : both("shared_cpu_map", "shared_cpu_list", shared)) files.push_back(file);
        return Dir(fmt::format("index{}", index), std::move(files));
    }

    [[nodiscard]] Entry cache_dir(unsigned cpu) const {
        const CpuSet core = alike(cpu, [&](unsigned i) { return core_of(i); });
        const CpuSet llc = alike(cpu, [&](unsigned i) { return part_of(i, m_.llcs); });
        const CpuSet pair = alike(cpu, [&](unsigned i) { return part_of(i, std::max(m_.l2s, 1U)); });
        const CpuSet l2 = m_.made_up ? (m_.stale ? all() : all() - offline_) : m_.l2s > 0 ? pair : core;
        std::vector<Entry> files = {cache_index(0, 1, "Data", "32K", core),
                                    cache_index(1, 1, "Instruction", "32K", core),
                                    cache_index(2, 2, "Unified", "1024K", l2)};
        if (m_.l3 && !m_.made_up) files.push_back(cache_index(3, 3, "Unified", "32768K", llc));
        return Dir("cache", std::move(files));
    }

    [[nodiscard]] Entry node_dir() const {
        const unsigned nodes = m_.sockets * m_.nodes;
        std::vector<Entry> files = {File("online", line(CpuSet::range(0, nodes - 1)))};  // for hwloc
        for (unsigned node = 0; node < nodes; node++) {
            CpuSet set;
            for (unsigned i = 0; i < cpus(); i++)
                if (part_of(i, m_.nodes) == node && !offline_.has(i)) set.add(i);
            files.push_back(Dir(fmt::format("node{}", node), both("cpumap", "cpulist", set)));
        }
        return Dir("node", std::move(files));
    }

    CpuTree m_;
    CpuSet offline_;
    CpuSet isolated_;
};

}  // namespace

TempTree::TempTree(const std::vector<Entry>& entries) : root_(new_folder()) {
    for (const auto& entry : entries) add(entry);
}

TempTree::~TempTree() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
}

std::string TempTree::path(const std::string& path) const {
    return root_ + "/" + path;
}

bool TempTree::exists(const std::string& path) const {
    return fs::exists(fs::symlink_status(this->path(path)));
}

std::string TempTree::read(const std::string& path) const {
    std::ifstream in(this->path(path), std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + this->path(path));
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

void TempTree::add(const Entry& entry) {
    put(root_, entry);
}

void TempTree::write(const std::string& path, const std::string& text) {
    const fs::path full = this->path(path);
    fs::create_directories(full.parent_path());
    std::ofstream out(full, std::ios::binary | std::ios::trunc);
    out << text;
    if (!out.flush()) throw std::runtime_error("cannot write " + full.string());
}

void TempTree::mode(const std::string& path, mode_t mode) {
    if (::chmod(this->path(path).c_str(), mode) != 0) throw std::runtime_error("cannot chmod " + path);
}

void TempTree::link(const std::string& path, const std::string& target) {
    const fs::path full = this->path(path);
    fs::create_directories(full.parent_path());
    fs::create_symlink(target, full);
}

void TempTree::remove(const std::string& path) {
    fs::remove_all(this->path(path));
}

void TempTree::put(const std::string& folder, const Entry& entry) {
    const std::string full = folder + "/" + entry.name;
    const std::string relative = full.substr(root_.size() + 1);
    switch (entry.kind) {
        case Entry::Kind::dir:
            fs::create_directories(full);
            for (const auto& child : entry.entries) put(full, child);
            break;
        case Entry::Kind::file:
            write(relative, entry.text);
            mode(relative, entry.mode);
            break;
        case Entry::Kind::link:
            link(relative, entry.text);
            break;
    }
}

Entry cpu_tree(const CpuTree& machine) {
    return CpuTreeBuilder(machine).build();
}

}  // namespace wq::test
