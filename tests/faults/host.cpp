// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host.h"

#include "owned/writer.h"
#include "service/loop.h"
#include "service/restorer.h"

namespace wq::faults {
namespace {

std::vector<test::Entry> tree_of_host() {
    std::vector<test::Entry> workqueues;
    for (const std::string& name : kTargets)
        if (name != kDefaultTarget) workqueues.push_back(test::workqueue(name, {.cpumask = "ffffff"}));
    return test::kernel_tree(std::move(workqueues), "cache", "", "ffffff");
}

std::string path_of(const std::string& name, const std::string& file) {
    return name == kDefaultTarget ? test::kDefaultPath : test::wq_path(name, file);
}

std::string first_word(const std::string& text) {
    return text.substr(0, text.find_first_of(" \n"));
}

}  // namespace

const std::vector<std::string> kTargets = {kDefaultTarget, "kcryptd", "nvme-wq", "writeback"};

Daemon::Daemon(Host& host)
    : host_(host),
      files_(Paths{host.tree.root()}),
      store_(Paths{host.tree.root()}.owned()),
      verdicts_(Paths{host.tree.root()}.verdicts()),
      ledger_(Paths{host.tree.root()}.ledger(), Paths{host.tree.root()}.pairs(), record_, host.log) {
    auto lock = take_lock(Paths{host.tree.root()});
    if (!lock) {
        error_ = lock.error().text;
        return;
    }
    lock_ = std::move(*lock);
    const auto loaded = store_.load();
    (void)verdicts_.load();
    build();
    blind_ = !loaded;
    if (blind_) parts_->targets.observe("the baseline file is broken: " + loaded.error().text);
    parts_->engine.set_policy(host.options.policy);
    experiment_->policy_changed();
    reconcile();
}

void Daemon::build() {
    parts_ = std::make_unique<test::TargetParts>(
        Targets::Edges{files_, store_, host_.log, [this]() -> Result<Topology> { return host_.topology; },
                       [](const std::string&) { return false; }, verdicts_, [this] { return host_.wall; },
                       &ledger_.ledger(), &book_},
        host_.options.kernel);
    experiment_ = std::make_unique<Experiment>(ExperimentEdges{
        .targets = parts_->targets,
        .engine = parts_->engine,
        .writer = parts_->slots,
        .book = book_,
        .ledger = ledger_,
        .counters = host_.counters,
        .verdicts = verdicts_,
        .record = record_,
        .log = host_.log,
        .paths = Paths{host_.tree.root()},
        .clock = {.random =
                      [this] {
                          return host_.coin = host_.coin * 6364136223846793005U + 1442695040888963407U,
                                 host_.coin >> 33;
                      },
                  .clocks = [] { return Clocks{}; },
                  .now = [this] { return host_.now; },
                  .wall = [this] { return host_.wall; },
                  .minute_of_day = [] { return 12U * 60; },
                  .uptime = [] { return std::uint64_t{3600}; }}});
}

void Daemon::reconcile() {
    react(Cause::look, true, "", parts_->engine, *experiment_);
}

void Daemon::tick() {
    host_.pass(15'000'000);
    react(Cause::tick, parts_->engine.wants_retry(), "", parts_->engine, *experiment_);
}

// Runs the experiment up to the next verdict. Afterwards a kept candidate is watched, another target rests.
void Daemon::run() {
    const std::size_t before = verdicts_.records().size();
    for (int i = 0; i < 1000 && verdicts_.records().size() == before; i++) {
        const auto due = experiment_->due();
        if (!due) return;
        host_.pass(*due > host_.now ? *due - host_.now : 0);
        react(Cause::slot, false, "", parts_->engine, *experiment_);
    }
}

void Daemon::stop(bool restarting) {
    experiment_->cancel_all("wq-tuned stopped");
    if (!restarting) parts_->engine.restore_all();
}

Host::Host(HostOptions opts)
    : options(std::move(opts)),
      tree(tree_of_host()),
      edge(tree.root(), SimKernel(tree.root(), options.prefixes)) {
    counters.completed = [this](const std::string&) { return now / 100; };
    counters.items = {{"kcryptd", 0}, {"nvme-wq", 0}, {"writeback", 0}, {kDefaultTarget, 0}};
}

void Host::start() {
    daemon = std::make_unique<Daemon>(*this);
    if (!daemon->error().empty()) daemon.reset();
}

std::string Host::restore() {
    daemon.reset();
    const auto done = restore_after_exit({tree.root()});
    return done ? "" : "restore: " + done.error().text + "\n";
}

void Host::stop(bool restarting) {
    if (daemon) daemon->stop(restarting);
    daemon.reset();
}

void Host::ticks(unsigned n) {
    for (unsigned i = 0; i < n && daemon; i++) daemon->tick();
}

// TIME is in us. The busy target gets 10,000 items per second.
void Host::pass(std::uint64_t time) {
    now += time;
    wall += static_cast<std::int64_t>(time / 1'000'000);
    if (counters.items.contains(busy)) counters.items[busy] += time / 100;
}

void Host::trial(const std::string& name, double factor) {
    counters.on_begin = [this](const std::string& each, unsigned slot) { begun[each][slot] = word(each); };
    counters.count = [this, factor](const std::string& each, unsigned slot) {
        const bool candidate = begun[each][slot] != "default" && begun[each][slot] != "cache";
        return WorkCount{.items = 10'000, .latency = candidate ? 1000 * factor : 1000, .timed = 10'000};
    };
    this->busy = name;
    ticks(2);
    if (daemon) daemon->run();
}

void Host::pin(const std::string& name, const std::string& scope) {
    if (daemon) (void)daemon->parts().orders.pin(name, scope);
}

void Host::unpin(const std::string& name) {
    if (daemon) (void)daemon->parts().orders.unpin(name);
}

void Host::pause(const std::string& why) {
    if (!daemon || daemon->is_blind()) return;
    daemon->parts().targets.observe(why);
    daemon->reconcile();
}

void Host::write(const std::string& name, const std::string& word) {
    tree.write(path_of(name, "affinity_scope"), word + "\n");
    foreign[name] = word;
}

std::string Host::word(const std::string& name) const {
    return first_word(tree.read(path_of(name, "affinity_scope")));
}

std::string Host::strict(const std::string& name) const {
    return name == kDefaultTarget ? "" : first_word(tree.read(path_of(name, "affinity_strict")));
}

}  // namespace wq::faults
