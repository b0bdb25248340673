// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace wq::test {

// One file, folder or symbolic link of a fake tree. Made by File(), Dir() and Link().
struct Entry {
    enum class Kind { file, dir, link };
    Kind kind = Kind::file;
    std::string name;  // may hold slashes: "sys/devices/system/cpu"
    std::string text;  // a file's text, a link's target
    mode_t mode = 0644;
    std::vector<Entry> entries = {};
};

Entry File(std::string name, std::string text = "", mode_t mode = 0644);
Entry Dir(std::string name, std::vector<Entry> entries = {});
Entry Link(std::string name, std::string target);

// A fake tree in a temporary directory, written as one nested initialiser:
//   TempTree tree{Dir("sys/devices/system/cpu", {File("online", "0-3\n"), File("present", "0-3\n")})};
// The destructor removes it. Paths are relative to root(); missing folders are made. An operation that fails
// throws std::runtime_error, which fails the test.
class TempTree {
  public:
    TempTree(std::initializer_list<Entry> entries = {});
    explicit TempTree(const std::vector<Entry>& entries);
    ~TempTree();
    TempTree(const TempTree&) = delete;
    TempTree& operator=(const TempTree&) = delete;

    [[nodiscard]] const std::string& root() const { return root_; }  // no slash at the end
    [[nodiscard]] std::string path(const std::string& path) const;   // absolute
    [[nodiscard]] bool exists(const std::string& path) const;
    [[nodiscard]] std::string read(const std::string& path) const;

    void add(const Entry& entry);
    // Overwrites in place, as sysfs does: the inode stays.
    void write(const std::string& path, const std::string& text);
    void mode(const std::string& path, mode_t mode);
    void link(const std::string& path, const std::string& target);
    void remove(const std::string& path);  // a folder with its contents; no error if absent

  private:
    void put(const std::string& folder, const Entry& entry);
    std::string root_;
};

// A machine for cpu_tree(): SOCKETS x CORES x THREADS CPUs, one NUMA node and one L3 per socket, numbered as
// Linux numbers x86: first threads of all cores, then second threads.
struct CpuTree {
    unsigned sockets = 1;
    unsigned cores = 4;           // per socket
    unsigned threads = 1;         // per core
    unsigned llcs = 1;            // L3 caches per socket
    unsigned nodes = 1;           // NUMA nodes per socket; 0: no node directory at all
    bool caches = true;           // false: no cache directories
    bool neighbours = false;      // number the threads of a core next to each other
    bool interleaved = false;     // CPU n is in socket n modulo SOCKETS
    std::string offline = {};     // CPU list: present, but not in `online`, no topology, no cache
    bool stale = false;           // siblings and shared lists still name the offline ones
    std::string isolated = {};    // CPU list: isolcpus=domain
    unsigned extra_possible = 0;  // CPUs that could be plugged in
    unsigned clusters = 0;        // per socket; 0: no cluster files, as before 5.16
    unsigned l2s = 0;             // L2 caches per socket; 0: one per core
    bool l3 = true;               // false: L2 is the outermost cache
    bool made_up = false;         // an arm64 whose firmware names no cache: an "L2" of all CPUs, no sizes
    std::string arch = {};        // proc/sys/kernel/arch
    std::string vendor = {};      // vendor_id in proc/cpuinfo
};

// sys/devices/system/{cpu,node} of such a machine, and the files with its architecture and its vendor.
Entry cpu_tree(const CpuTree& machine);

}  // namespace wq::test
