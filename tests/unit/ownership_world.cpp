// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ownership_world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

#include "owned/writer.h"
#include "targets/step.h"

namespace wq::test {
namespace {

constexpr const char* kWords[] = {"cpu", "smt", "cache", "numa", "system", "default"};
constexpr const char* kMasks[] = {"ffffff", "000fff", "00000f"};

std::string first_word(const std::string& text) {
    return text.substr(0, text.find_first_of(" \n"));
}

std::string path_of(const std::string& name) {
    return name == kDefaultTarget ? kDefaultPath : wq_path(name);
}

bool has(const std::string& name, Knob file) {
    return file == Knob::scope || name != kDefaultTarget;
}

// TEXT, in one form for each set of CPUs.
std::string value_of(Knob file, const std::string& text) {
    return file == Knob::mask ? CpuSet::parse_mask(text).value().mask() : text;
}

std::string baseline_of(const std::optional<Attribute>& entry) {
    return entry ? value_of(entry->file, entry->baseline) : "";
}

bool claims(const std::optional<Attribute>& entry, const std::string& value) {
    return entry && entry->is_claimed(value);
}

}  // namespace

const std::vector<std::string> OwnershipWorld::kNames = {kDefaultTarget, "kcryptd", "writeback"};

// Reports each call on a file that is written to the world, which may kill the process there.
class OwnershipWorld::Kernel : public FakeKernel {
  public:
    Kernel(TempTree& tree, OwnershipWorld& world) : FakeKernel(tree), world_(world) {}

    [[nodiscard]] Result<ScopeFile> read_scope(const std::string& name, ino_t inode) const override {
        world_.io(Io::read, name);
        return FakeKernel::read_scope(name, inode);
    }
    [[nodiscard]] Result<bool> read_strict(const std::string& name, ino_t inode) const override {
        world_.io(Io::read, name);
        return FakeKernel::read_strict(name, inode);
    }
    [[nodiscard]] Status write_scope(const std::string& name, ino_t inode, const std::string& word) override {
        if (const int error = before(name); error != 0) return fail_errno(name, error);
        auto done = FakeKernel::write_scope(name, inode, word);
        if (done) world_.wrote(name, Knob::scope, prefixes && word == "cache_shard" ? "cache" : word);
        world_.io(Io::write, name);
        world_.read_back_ = done.has_value();
        return done;
    }
    [[nodiscard]] Status write_strict(const std::string& name, ino_t inode, bool strict) override {
        if (const int error = before(name); error != 0) return fail_errno(name, error);
        auto done = FakeKernel::write_strict(name, inode, strict);
        if (done) world_.wrote(name, Knob::strict, text_of_strict(strict));
        world_.io(Io::write, name);
        return done;
    }
    [[nodiscard]] Result<MaskFile> read_mask(const std::string& name) const override {
        world_.io(Io::read, name);
        return FakeKernel::read_mask(name);
    }
    [[nodiscard]] Status write_mask(const std::string& name, ino_t inode, const std::string& text) override {
        if (const int error = before(name); error != 0) return fail_errno(name, error);
        auto done = FakeKernel::write_mask(name, inode, text);
        if (done) world_.wrote(name, Knob::mask, text);
        world_.io(Io::write, name);
        world_.read_back_ = done.has_value();
        return done;
    }

  private:
    int before(const std::string& name) {
        world_.io(Io::write, name);
        if (!world_.chance(world_.refuse_)) return 0;
        world_.refused_ = true;
        return world_.chance(50) ? EBUSY : EINVAL;
    }
    OwnershipWorld& world_;
};

OwnershipWorld::OwnershipWorld(std::uint64_t seed)
    : random_(seed),
      tree_(kernel_tree(
          {workqueue("kcryptd", {.cpumask = "ffffff"}), workqueue("writeback", {.cpumask = "ffffff"})},
          "cache", "", "ffffff")),
      kernel_(seed % 3 == 0 ? kernel_72() : kernel_612()),
      prefixes_(seed % 3 != 2),
      verdicts_(tree_.path("var/lib/wq-tuned/verdicts.log")) {
    for (const std::string& name : kNames) {
        model_[name].word.value = first_word(tree_.read(path_of(name)));
        if (name == kDefaultTarget) continue;
        model_[name].strict.value = "0";
        model_[name].mask.value = "ffffff";
    }
}

OwnershipWorld::~OwnershipWorld() = default;

bool OwnershipWorld::is_on_trial(const std::string& name) const {
    const auto found = parts_->targets.all().find(name);
    return found != parts_->targets.all().end() && found->second.in_slot;
}

void OwnershipWorld::fault(const std::string& text) {
    if (wrong_.empty()) wrong_ = text;
}

// Leaves out the entry of a workqueue that is gone: it does not belong to its successor of the same name.
OwnedEntries OwnershipWorld::on_disk(Knob file) const {
    OwnedStore store(tree_.path("run/wq-tuned/owned.json"));
    (void)store.load();
    auto out = store.entries(file);
    std::erase_if(out, [&](const auto& item) {
        const std::string path = tree_.path(path_of(item.first));
        struct stat st {};
        const bool parameter = item.first == kDefaultTarget;
        return ::stat((parameter ? path : path.substr(0, path.rfind('/'))).c_str(), &st) != 0 ||
               st.st_ino != item.second.inode;
    });
    return out;
}

std::optional<Attribute> OwnershipWorld::on_disk(const std::string& name, Knob file) const {
    const auto entries = on_disk(file);
    const auto entry = entries.find(name);
    if (entry == entries.end()) return {};
    return file == Knob::strict ? entry->second.strict : entry->second.main;
}

// ---- the edge

void OwnershipWorld::io(Io kind, const std::string& name) {
    if (!in_operation_) return;
    step_++;
    if (step_ == kill_at_) throw Killed();
    // An external write between our read and our write is lost, as the manual says. Not tried here.
    if (kind == Io::read && step_ >= meddle_at_ && meddle_at_ > 0) meddle(name);
    read_back_ = false;
}

void OwnershipWorld::meddle(const std::string& name) {
    if (read_back_) return;  // the value may be what the kernel stored for our word
    meddle_at_ = 0;
    if (name != kDefaultTarget && chance(25))
        others_write_strict(name, model_.at(name).strict.value == "0");
    else if (name != kDefaultTarget && chance(25))
        others_write_mask(name, kMasks[below(std::size(kMasks))]);
    else
        others_write(name, kWords[below(std::size(kWords))]);
}

// Checks a write of our side against the entry on disk at that moment.
void OwnershipWorld::wrote(const std::string& name, Knob which, const std::string& text) {
    writes_++;
    ModelFile& file = model_.at(name).of(which);
    const std::string value = value_of(which, text);
    const auto entry = on_disk(name, which);
    const std::string what =
        fmt::format("{} {}: '{}' over '{}'", name, static_cast<int>(which), value, file.value);
    if (!entry) return fault(what + ", with no entry on disk");
    const std::string baseline = baseline_of(entry);
    // An external writer that wrote the same word since our last look lost nothing, and cannot be told from
    // us, as the manual says.
    if (file.writer == Writer::other && value != file.value)
        return fault(what + ", which an external writer wrote");
    if (file.writer == Writer::kernel && file.value != baseline)
        return fault(fmt::format("{}, and the baseline on disk is '{}'", what, baseline));
    if (file.writer == Writer::ours && file.before != baseline)
        return fault(
            fmt::format("{}: the baseline on disk is '{}', it was '{}'", what, baseline, file.before));
    if (value != baseline && !claims(entry, value))
        return fault(what + ", which the entry on disk does not have");
    if (file.writer == Writer::kernel) file.before = file.value;
    if (file.writer == Writer::unsure || file.writer == Writer::other) file.before = baseline;
    file.value = file.left = value;
    file.writer = value == file.before ? Writer::kernel : Writer::ours;
}

// ---- other writers

void OwnershipWorld::changed(const std::string& name, Knob which, const std::string& text) {
    ModelTarget& target = model_.at(name);
    ModelFile& file = target.of(which);
    const std::string value = value_of(which, text);
    if (value == file.value) return;  // the write cannot be seen
    const auto entry = on_disk(name, which);
    (which == Knob::mask ? target.mask_touched : target.touched) = true;
    file.value = value;
    if (!entry) return;  // not ours: it becomes the next baseline
    const std::string baseline = baseline_of(entry);
    // A value that we announced, and may or may not have written yet, cannot be told from ours.
    const bool unsure = in_operation_ || (!parts_ && claims(entry, baseline));
    if (value == baseline && (file.writer != Writer::ours || unsure))
        file.writer = Writer::kernel;
    else if (unsure && claims(entry, value))
        file.writer = Writer::unsure;
    else if (value == file.left && claims(entry, value))
        file.writer = Writer::ours;  // as we left it
    else
        file.writer = Writer::other;
    if (file.writer == Writer::ours) file.before = baseline;
}

void OwnershipWorld::others_write(const std::string& name, const std::string& word) {
    if (name == kDefaultTarget && word == "default") return;  // EINVAL
    tree_.write(path_of(name), word == "default" ? "default (cache)\n" : word + "\n");
    changed(name, Knob::scope, word);
}

void OwnershipWorld::others_write_strict(const std::string& name, bool strict) {
    tree_.write(wq_path(name, "affinity_strict"), text_of_strict(strict) + "\n");
    changed(name, Knob::strict, text_of_strict(strict));
}

void OwnershipWorld::others_write_mask(const std::string& name, const std::string& mask) {
    tree_.write(wq_path(name, "cpumask"), mask + "\n");
    changed(name, Knob::mask, mask);
}

void OwnershipWorld::recreate(const std::string& name) {
    tree_.add(Dir("sys/devices/virtual/workqueue", {workqueue(name + "-new", {.cpumask = "ffffff"})}));
    const std::string path = tree_.path("sys/devices/virtual/workqueue/" + name);
    (void)::rename(path.c_str(), tree_.path(fmt::format("old-{}", renamed_++)).c_str());
    (void)::rename((path + "-new").c_str(), path.c_str());
    model_[name] = {{"default"}, {"0"}, {"ffffff"}};
}

// ---- our side

void OwnershipWorld::start() {
    files_ = std::make_unique<Kernel>(tree_, *this);
    files_->prefixes = prefixes_;
    store_ = std::make_unique<OwnedStore>(tree_.path("run/wq-tuned/owned.json"));
    if (!store_->load()) fault("the baseline is broken");
    for (auto& [name, target] : model_) {
        if (store_->find(name) == nullptr) target.touched = false;
        if (store_->find(name, Knob::mask) == nullptr) target.mask_touched = false;
    }
    parts_ = std::make_unique<TargetParts>(
        Targets::Edges{*files_, *store_, log_, [this]() -> Result<Topology> { return topology_; },
                       [](const std::string&) { return false; }, verdicts_,
                       [] { return std::int64_t{1'700'000'000}; }, &ledger_, nullptr,
                       [this] { return cpus_; }},
        kernel_);
    parts_->engine.set_policy(policy_);
    refused_ = false;
}

void OwnershipWorld::lose() {
    parts_.reset();
}

void OwnershipWorld::reconcile() {
    parts_->engine.reconcile();
}

void OwnershipWorld::look() {
    parts_->engine.look();
    (void)store_->save();
}

// At a reload, a baseline that an external writer restored counts as the kernel's value again.
void OwnershipWorld::reload(Policy policy) {
    policy_ = std::move(policy);
    if (!parts_) return;
    for (auto& [name, target] : model_)
        for (const Knob which : kFiles)
            if (const auto entry = on_disk(name, which);
                entry && target.of(which).value == baseline_of(entry))
                target.of(which).writer = Writer::kernel;
    parts_->engine.set_policy(policy_);
    refused_ = false;
}

void OwnershipWorld::restore(bool only_trials) {
    Kernel files(tree_, *this);
    files.prefixes = prefixes_;
    OwnedStore store(tree_.path("run/wq-tuned/owned.json"));
    if (!store.load()) return fault("the baseline is broken");
    (void)restore_all(files, store, log_, only_trials);
}

bool OwnershipWorld::run(const std::function<void()>& step, bool may_be_killed) {
    log_.lines.clear();
    step_ = 0;
    kill_at_ = may_be_killed && chance(15) ? 1 + static_cast<unsigned>(below(20)) : 0;
    meddle_at_ = chance(15) ? 1 + static_cast<unsigned>(below(10)) : 0;
    refuse_ = chance(10) ? 30 : 0;
    in_operation_ = true;
    bool died = false;
    try {
        step();
    } catch (const Killed&) {
        died = true;
        lose();
        forgive_baselines();
    }
    in_operation_ = false;
    refuse_ = 0;
    check(false);
    return !died;
}

// If a process is killed after it announced the baseline, nothing on disk tells whether it restored the
// baseline itself or an external writer did.
void OwnershipWorld::forgive_baselines() {
    for (auto& [name, target] : model_)
        for (const Knob which : kFiles) {
            ModelFile& file = target.of(which);
            const auto entry = on_disk(name, which);
            if (claims(entry, baseline_of(entry)) && file.writer == Writer::other &&
                file.value == baseline_of(entry))
                file.writer = Writer::kernel;
        }
}

// ---- checks

void OwnershipWorld::check_file(const std::string& name, Knob which, bool looked) {
    ModelFile& file = model_.at(name).of(which);
    const auto entry = on_disk(name, which);
    const std::string what = fmt::format("{} {} holds '{}'", name, static_cast<int>(which), file.value);
    if (!entry && file.writer == Writer::ours) return fault(what + ", ours, and has no entry");
    if (!entry) {
        file.writer = Writer::kernel;
        return;
    }
    const bool claimed = claims(entry, file.value);
    const std::string baseline = baseline_of(entry);
    if (file.writer == Writer::unsure && looked) {  // before a look, the disk may lack what was found
        file.writer = claimed ? Writer::ours : Writer::other;
        file.before = baseline;
    }
    if (file.writer == Writer::ours && !claimed)
        return fault(
            fmt::format("{}, which its entry does not have: {}", what, fmt::join(entry->claim, " ")));
    if (file.writer == Writer::ours && baseline != file.before)
        return fault(fmt::format("{}: its baseline is '{}', not '{}'", what, baseline, file.before));
    if (!looked) return;
    if (file.writer == Writer::other && claimed)
        return fault(what + ", an external write that its entry records as ours");
    const bool exact =
        entry->claim.empty() || (entry->claim.size() == 1 && claimed && !entry->is_claimed(baseline));
    if (!exact) fault(fmt::format("{}, and may hold {}", what, fmt::join(entry->claim, " ")));
}

// Checks that the files agree with the state of the target, unless a write was refused.
void OwnershipWorld::check_state(const std::string& name) {
    const auto found = parts_->targets.all().find(name);
    if (found == parts_->targets.all().end() || refused_) return;
    const Target& target = found->second;
    const ModelTarget& model = model_.at(name);
    const std::string what = fmt::format("{} is {}: ", name, name_of(target.state));
    if (target.state == State::external && !model.touched)
        fault(what + target.reason + ", but there was no external write");
    const bool waits = target.state == State::waiting &&  // and not: about to be applied
                       (target.reason.starts_with("plan: ") || target.reason.starts_with("observing"));
    const bool resting = waits || target.state == State::leave || target.state == State::as_planned ||
                         target.state == State::reverted || target.state == State::unsupported ||
                         target.state == State::unmanaged;
    if (resting && model.word.writer == Writer::ours)
        fault(fmt::format("{}holds '{}', which is ours", what, model.word.value));
    // What is shown is what the file holds.
    const bool shows_word =
        target.state == State::pinned || (target.state == State::set && target.reason != "left in force");
    const std::string word = !shows_word                     ? model.word.value
                             : target.state == State::pinned ? target.entry()->note
                                                             : target.step.hold.value().word();
    if (model.word.value != word) fault(fmt::format("{}'{}', not '{}'", what, model.word.value, word));
    const WorkqueueRule* rule = policy_.rule_for(name);
    const bool asked = rule != nullptr && rule->strict;
    if (target.state == State::set && asked && shows_word &&
        model.strict.value != text_of_strict(*rule->strict))
        fault(fmt::format("{}strict is '{}', and the rule asks for another", what, model.strict.value));
    if ((resting || target.state == State::pinned || target.state == State::set) &&
        model.strict.writer == Writer::ours && (resting || !asked) && target.state != State::as_planned)
        fault(fmt::format("{}strict is '{}', ours, and no rule asks for it", what, model.strict.value));
}

void OwnershipWorld::check_mask_state(const std::string& name) {
    const auto found = parts_->engine.masks().masks().find(name);
    const ModelTarget& model = model_.at(name);
    if (refused_) return;
    if (found == parts_->engine.masks().masks().end()) {
        if (model.mask.writer == Writer::ours) fault(name + ": a mask of ours, which is not shown");
        return;
    }
    const State state = found->second.state;
    const std::string what = fmt::format("the mask of {} is {}: ", name, name_of(state));
    if (state == State::external && !model.mask_touched)
        fault(what + found->second.reason + ", but there was no external write");
    const bool resting = state == State::leave || state == State::as_planned || state == State::unsupported;
    if (resting && model.mask.writer == Writer::ours)
        fault(fmt::format("{}holds '{}', which is ours", what, model.mask.value));
    if (state == State::set && found->second.reason != "left in force" &&
        model.mask.value != found->second.planned.mask())
        fault(fmt::format("{}'{}', not '{}'", what, model.mask.value, found->second.planned.mask()));
}

// Once the daemon has taken what others wrote, it writes nothing more by itself, and neither does the next
// one.
void OwnershipWorld::check_quiet(bool restart) {
    if (!parts_ || refused_ || !wrong_.empty()) return;
    reconcile();
    const unsigned before = writes_;
    const std::size_t said = log_.lines.size();
    if (restart && !kernel_.has(Scope::cache_shard)) start();  // a restart tries again what a kernel misread
    reconcile();
    if (writes_ != before) fault(restart ? "a restart wrote" : "a reconcile() without a cause wrote");
    if (!restart && log_.lines.size() != said) fault("a reconcile() without a cause logged");
}

void OwnershipWorld::check(bool looked) {
    for (const std::string& name : kNames) {
        for (const Knob which : kFiles)
            if (has(name, which)) check_file(name, which, looked);
        if (!looked || !parts_) continue;
        check_state(name);
        if (has(name, Knob::mask)) check_mask_state(name);
    }
}

void OwnershipWorld::check_end() {
    for (auto& [name, target] : model_)
        for (const Knob which : kFiles) {
            for (const auto& [left, entry] : on_disk(which))
                if (!entry.must_stay() || entry.has_claim()) fault("an entry is left of " + left);
            if (target.of(which).writer == Writer::ours)
                fault(fmt::format("{} {} is left at '{}'", name, static_cast<int>(which),
                                  target.of(which).value));
        }
}

}  // namespace wq::test
