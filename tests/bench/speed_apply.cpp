// SPDX-License-Identifier: LGPL-2.1-or-later
// Sets 1,000 targets with the daemon's own Engine and with a bare loop, on a tree in memory. A write to a
// real kernel takes far longer than one to memory, so the overhead of the daemon shows most here.
#include <benchmark/benchmark.h>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "fake_log.h"
#include "fake_machine.h"

namespace wq::test {
namespace {

constexpr unsigned kTargets = 1000;

// ---- the same work without decisions: loops of system calls and nothing else, as in C. A call that fails
// ends the program. FOLDERS: of the workqueues, in PARENT.

constexpr const char* kRead[] = {"per_cpu", "affinity_scope", "max_active", "affinity_strict", "cpumask"};

void must(bool done) {
    if (done) return;
    std::perror("a bare loop");
    std::exit(1);
}

int opened(int dir, const char* file, int flags) {
    const int fd = ::openat(dir, file, flags | O_CLOEXEC | O_NOFOLLOW);
    must(fd >= 0);
    return fd;
}

void read_to_end(int dir, const char* file) {
    char buffer[4096];
    const int fd = opened(dir, file, O_RDONLY);
    ssize_t n = 0;
    do n = ::read(fd, buffer, sizeof buffer);
    while (n > 0);
    must(n == 0);
    ::close(fd);
}

void write_smt(int dir) {
    const int fd = opened(dir, "affinity_scope", O_WRONLY | O_TRUNC);
    must(::write(fd, "smt\n", 4) == 4);
    ::close(fd);
}

// Opens the folder of a workqueue, with the calls that check that it is one, and the same one.
int folder(const std::string& parent, const std::string& name) {
    const int dir = opened(AT_FDCWD, (parent + "/" + name).c_str(), O_RDONLY | O_DIRECTORY);
    must(::faccessat(dir, "per_cpu", F_OK, 0) == 0);
    struct stat st;
    must(::fstat(dir, &st) == 0);
    return dir;
}

void list(const std::string& parent) {
    DIR* dir = ::opendir(parent.c_str());
    must(dir != nullptr);
    while (const dirent* entry = ::readdir(dir)) {
        char file[300];
        std::snprintf(file, sizeof file, "%s/per_cpu", entry->d_name);
        (void)::faccessat(::dirfd(dir), file, F_OK, 0);
    }
    ::closedir(dir);
}

void save(const std::string& path, const std::string& text) {
    const std::string temporary = path + ".new";
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    must(fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    must(::fsync(fd) == 0 && ::close(fd) == 0);
    must(::rename(temporary.c_str(), path.c_str()) == 0);
}

// The calls of one look of the daemon.
void bare_look(const std::string& parent, const std::vector<std::string>& folders) {
    list(parent);
    read_to_end(AT_FDCWD, (parent + "/cpumask").c_str());
    for (const std::string& name : folders) {
        const int dir = folder(parent, name);
        for (const char* file : kRead) read_to_end(dir, file);
        struct stat st;
        must(::fstatat(dir, "max_active", &st, AT_SYMLINK_NOFOLLOW) == 0);
        ::close(dir);
    }
}

// The calls of the daemon, in its order: reads each target (checks that its folder is the right one, reads
// each file to its end), saves TEXT to PATH, and then compares, writes and reads back each target.
void bare_same(const std::string& parent, const std::vector<std::string>& folders, const std::string& text,
               const std::string& path) {
    bare_look(parent, folders);
    save(path, text);
    for (const std::string& name : folders) {
        int dir = folder(parent, name);
        read_to_end(dir, "affinity_scope");
        ::close(dir);
        dir = folder(parent, name);
        write_smt(dir);
        ::close(dir);
        dir = folder(parent, name);
        read_to_end(dir, "affinity_scope");
        ::close(dir);
    }
}

// ---- the daemon

// The log lines are made and dropped: writing the journal is not measured.
class NoLog : public Log {
  public:
    void write(const LogLine& line) override { benchmark::DoNotOptimize(&line); }
};

class Host {
  public:
    Host() {
        std::vector<Entry> entries;
        for (unsigned i = 0; i < kTargets; i++) {
            folders_.push_back(fmt::format("kcryptd-254:{}-1", i));
            entries.push_back(workqueue(folders_.back(), {.cpumask = "ffffff"}));
        }
        const auto tree = kernel_tree(std::move(entries), "cache", "", "ffffff");
        for (const Entry& entry : tree) tree_.add(entry);
    }

    // The state after boot: no target was ever written.
    void reset() {
        for (const std::string& name : folders_) tree_.write(wq_path(name), "default (cache)\n");
        tree_.remove("run/wq-tuned/owned.json");
        parts_.reset();
        files_.emplace(paths_);
        store_.emplace(paths_.owned());
        (void)store_->load();
        parts_.emplace(Targets::Edges{*files_, *store_, log_, [this] { return Result<Topology>(topology_); },
                                      [](const std::string&) { return false; }, verdicts_,
                                      [] { return std::int64_t{0}; }, &ledger_, &book_},
                       kernel_612());
        parts_->engine.set_policy(rule_for_all());
    }

    TargetParts& parts() { return *parts_; }
    [[nodiscard]] std::string parent() const { return paths_.workqueues(); }
    [[nodiscard]] const std::vector<std::string>& folders() const { return folders_; }
    [[nodiscard]] std::string baseline_path() const { return paths_.owned(); }
    [[nodiscard]] std::string baseline() const { return *read_file(paths_.owned(), 16U << 20U); }
    [[nodiscard]] bool all_set() const {
        return std::all_of(folders_.begin(), folders_.end(),
                           [&](const std::string& name) { return tree_.read(wq_path(name)) == "smt\n"; });
    }

  private:
    TempTree tree_;
    Paths paths_{tree_.root()};
    std::vector<std::string> folders_;
    Topology topology_ = machine({.cores = 12, .threads = 2});
    NoLog log_;
    VerdictStore verdicts_{paths_.verdicts()};
    Ledger ledger_;
    OrderBook book_;
    std::optional<WorkqueueFs> files_;
    std::optional<OwnedStore> store_;
    std::optional<TargetParts> parts_;
};

template <class Work>
void apply(benchmark::State& state, Work work) {
    Host host;
    host.reset();
    host.parts().engine.reconcile();
    if (!host.all_set()) return state.SkipWithError("not all targets are set");
    const std::string saved = host.baseline();
    for (auto _ : state) {
        state.PauseTiming();
        host.reset();
        state.ResumeTiming();
        work(host, saved);
    }
    if (!host.all_set()) state.SkipWithError("not all targets are set");
    state.SetItemsProcessed(state.iterations() * kTargets);
}

void by_daemon(benchmark::State& state) {
    apply(state, [](Host& host, const std::string&) { host.parts().engine.reconcile(); });
}

void by_same_calls(benchmark::State& state) {
    apply(state, [](Host& host, const std::string& saved) {
        bare_same(host.parent(), host.folders(), saved, host.baseline_path());
    });
}

BENCHMARK(by_daemon)->Name("apply/daemon");
BENCHMARK(by_same_calls)->Name("apply/same-calls");

}  // namespace
}  // namespace wq::test
