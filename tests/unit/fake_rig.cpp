// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fake_rig.h"

namespace wq::test {

Rig::Rig(KernelInfo kernel) : kernel_(std::move(kernel)) {
    restart();
}

Policy Rig::managed() {
    Policy policy = rule_for_all();
    policy.default_scope.manage = true;
    policy.default_scope.wish = test::planned();
    return policy;
}

Policy Rig::kcryptd_only(const ScopeWish& wish) {
    Policy policy = rule_for_all(wish);
    policy.rules[0].match = {"kcryptd"};
    return policy;
}

void Rig::use(const Policy& policy) {
    parts_->engine.set_policy(policy);
    parts_->engine.reconcile();
}

void Rig::reconcile(int times) {
    for (int i = 0; i < times; i++) parts_->engine.reconcile();
}

void Rig::restart() {
    const Policy policy = parts_ ? parts_->targets.policy() : rule_for_all();
    files_ = std::make_unique<FakeKernel>(tree_);
    store_ = std::make_unique<OwnedStore>(tree_.path("run/wq-tuned/owned.json"));
    EXPECT_TRUE(store_->load());
    verdicts_ = std::make_unique<VerdictStore>(tree_.path("var/lib/wq-tuned/verdicts.log"));
    (void)verdicts_->load();
    const Paths paths{tree_.root()};
    book_ = OrderBook();
    ledger_ = std::make_unique<LedgerFile>(paths.ledger(), paths.pairs(), *record_, log_);
    parts_ = std::make_unique<TargetParts>(
        Targets::Edges{*files_, *store_, log_,
                       [this]() -> Result<Topology> {
                           if (!topology_error_.empty()) return fail(topology_error_);
                           return topology_;
                       },
                       [this](const std::string& name) -> std::optional<bool> {
                           if (unprocessed_.contains(name)) return std::nullopt;
                           return opted_out_.contains(name);
                       },
                       *verdicts_, [this] { return wall_; }, &ledger(), &book_, [this] { return cpus_; }},
        kernel_);
    parts_->engine.set_policy(policy);
}

void Rig::see(const Topology& topology) {
    topology_ = topology;
    parts_->engine.changed(Udev::Change::cpu);
    parts_->engine.reconcile();
}

void Rig::set_scope(const std::string& name, const std::string& text) {
    tree_.write(wq_path(name), text + "\n");
}

void Rig::no_state_folder() {
    tree_.remove("run/wq-tuned");
    tree_.write("run/wq-tuned", "");
}

// Keeps the old directory under another name, so that no file system reuses its inode for the new one.
void Rig::recreate(const std::string& name) {
    add_workqueue(name + "-new");
    const std::string path = tree_.path("sys/devices/virtual/workqueue/" + name);
    EXPECT_EQ(::rename(path.c_str(), tree_.path("old-" + name).c_str()), 0);
    EXPECT_EQ(::rename((path + "-new").c_str(), path.c_str()), 0);
}

Arms Rig::put_strict_candidate_in_place() {
    parts_->engine.set_policy(rule_for_all({}, true));
    parts_->engine.reconcile();
    Arms arms{{Scope::cache, true, false}, {Scope::smt, false, true}};
    EXPECT_TRUE(parts_->slots.enter({"kcryptd"}).front());
    EXPECT_EQ(switch_to(*parts_, "kcryptd", arms.candidate).kind, Outcome::Kind::done);
    return arms;
}

std::string Rig::scope(const std::string& name) const {
    std::string text = tree_.read(wq_path(name));
    return text.substr(0, text.find('\n'));
}

std::string Rig::strict(const std::string& name) const {
    return tree_.read(wq_path(name, "affinity_strict")).substr(0, 1);
}

std::string Rig::default_scope() const {
    std::string text = tree_.read(kDefaultPath);
    return text.substr(0, text.find('\n'));
}

}  // namespace wq::test
