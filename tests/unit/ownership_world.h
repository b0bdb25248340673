// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "fake_kernel.h"
#include "fake_log.h"
#include "fake_machine.h"
#include "owned/owned.h"

namespace wq::test {

// Thrown by a call on a file: the process is killed there, and its memory is lost.
struct Killed {};

// Who wrote the value in a file.
enum class Writer {
    kernel,  // the value before our first write
    ours,
    other,   // an external writer, over our value or without one
    unsure,  // an external writer wrote a value that we had announced: either answer is right
};

// One file of the kernel in the model.
struct ModelFile {
    std::string value = {};   // the first word, or the mask
    std::string before = {};  // the value before we wrote, to be restored
    std::string left = {};    // what we wrote last
    Writer writer = Writer::kernel;
};

struct ModelTarget {
    ModelFile word = {};
    ModelFile strict = {};  // value "" if the target has no such file
    ModelFile mask = {};    // likewise
    bool touched = false;   // an external writer wrote to scope or strictness since they had no entry
    bool mask_touched = false;

    ModelFile& of(Knob file) { return file == Knob::mask ? mask : file == Knob::strict ? strict : word; }
};

inline constexpr Knob kFiles[] = {Knob::scope, Knob::strict, Knob::mask};

// A tree of the kernel's files with a daemon, external writers, and a model that knows who wrote each value.
// wrong() tells the first thing that our side did and must not do.
class OwnershipWorld {
  public:
    explicit OwnershipWorld(std::uint64_t seed);
    ~OwnershipWorld();

    [[nodiscard]] std::uint64_t below(std::uint64_t n) { return random_() % n; }
    [[nodiscard]] bool chance(unsigned percent) { return below(100) < percent; }
    [[nodiscard]] const std::string& wrong() const { return wrong_; }
    [[nodiscard]] TargetParts* parts() { return parts_.get(); }
    void reconcile();  // as the daemon: masks, then scopes
    void look();       // at all files, and saves what was found
    [[nodiscard]] const Policy& policy() const { return policy_; }
    [[nodiscard]] const KernelInfo& kernel() const { return kernel_; }
    [[nodiscard]] bool is_on_trial(const std::string& name) const;

    // ---- events
    void start();                    // a daemon
    void lose();                     // the daemon's process ends; its files stay
    void reload(Policy policy);      // the next start reads it too
    void restore(bool only_trials);  // ExecStopPost=
    void others_write(const std::string& name, const std::string& word);
    void others_write_strict(const std::string& name, bool strict);
    void others_write_mask(const std::string& name, const std::string& mask);
    void isolate(const CpuSet& cpus) { cpus_.isolated = cpus; }
    void recreate(const std::string& name);  // removed, and created with the same name
    // Runs STEP. Depending on the seed it is killed, sees an external write or has a write refused. Returns
    // false if it was killed.
    bool run(const std::function<void()>& step, bool may_be_killed);
    // Checks the entries on disk against the files. LOOKED: the daemon has just looked at all files.
    void check(bool looked);
    void check_end();  // after everything was restored
    void check_quiet(bool restart);

    static const std::vector<std::string> kNames;

  private:
    class Kernel;
    enum class Io { read, write };
    void io(Io kind, const std::string& name);
    void wrote(const std::string& name, Knob file, const std::string& text);
    void fault(const std::string& text);
    void changed(const std::string& name, Knob file, const std::string& text);
    void check_file(const std::string& name, Knob file, bool looked);
    void check_state(const std::string& name);
    void check_mask_state(const std::string& name);
    void meddle(const std::string& name);
    void forgive_baselines();
    [[nodiscard]] OwnedEntries on_disk(Knob file) const;
    [[nodiscard]] std::optional<Attribute> on_disk(const std::string& name, Knob file) const;

    std::mt19937_64 random_;
    TempTree tree_;
    KernelInfo kernel_;
    bool prefixes_;
    Policy policy_;
    Topology topology_ = machine({.cores = 12, .threads = 2});
    FakeLog log_;
    VerdictStore verdicts_;
    std::unique_ptr<Kernel> files_;
    std::unique_ptr<OwnedStore> store_;
    std::unique_ptr<TargetParts> parts_;
    Ledger ledger_;  // empty
    HostCpus cpus_{CpuSet::range(0, 23), {}};
    std::map<std::string, ModelTarget> model_;
    std::string wrong_;
    unsigned step_ = 0;  // calls on files since the operation began
    unsigned kill_at_ = 0;
    unsigned meddle_at_ = 0;
    bool in_operation_ = false;
    bool refused_ = false;    // a write was refused since the last start or reload
    unsigned refuse_ = 0;     // percent of writes to refuse
    bool read_back_ = false;  // the next read of a scope reads back our write
    unsigned renamed_ = 0;
    unsigned writes_ = 0;
};

}  // namespace wq::test
