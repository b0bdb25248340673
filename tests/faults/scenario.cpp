// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scenario.h"

#include <cstdlib>

namespace wq::faults {
namespace {

// Trials of four pairs, to keep the scenarios short. This is enough to find a regression, and to keep a
// candidate that does not differ from the baseline.
Policy short_trials(Policy policy) {
    policy.judge.jitter = policy.judge.settle = std::chrono::seconds(0);
    policy.judge.settings.alpha = 0.4;
    policy.judge.settings.max_pairs = 4;
    policy.judge.guards.clear();
    return policy;
}

// kcryptd is set strict too; the rule of nvme-wq is `leave`.
HostOptions two_workqueues() {
    Policy policy = test::rule_for_all({}, true);
    policy.rules = {{{"kcryptd"}, {}, true, {"rules.toml", 1}}, {{"writeback"}, {}, {}, {"rules.toml", 2}}};
    policy.rules.push_back({{"nvme-wq"}, test::leave(), {}, {"rules.toml", 3}});
    return {.policy = short_trials(policy)};
}

HostOptions the_default() {
    Policy policy = test::rule_for_all({});
    policy.default_scope.manage = true;
    return {.policy = short_trials(policy)};
}

HostOptions at_once() {
    return {.policy = test::rule_for_all()};
}

HostOptions a_word_too_long() {
    Policy policy = test::rule_for_all(test::fixed(Scope::cache_shard));
    return {.prefixes = true, .kernel = test::kernel_72(), .policy = policy};
}

Step start() {
    return {"start", [](Host& h) { h.start(); }};
}
Step stop() {
    return {"stop", [](Host& h) { h.stop(); }};
}
Step ticks(unsigned n) {
    return {"ticks", [n](Host& h) { h.ticks(n); }};
}
Step trial(const std::string& name, const std::string& target, double factor) {
    return {name, [=](Host& h) { h.trial(target, factor); }};
}
Step pin(const std::string& name, const std::string& scope) {
    return {"pin", [=](Host& h) { h.pin(name, scope); }};
}
Step unpin(const std::string& name) {
    return {"unpin", [=](Host& h) { h.unpin(name); }};
}
Step pause(const std::string& why) {
    return {why.empty() ? "resume" : "pause", [=](Host& h) { h.pause(why); }};
}
Step somebody_writes(const std::string& name, const std::string& word) {
    return {"a foreign write", [=](Host& h) { h.write(name, word); }, true};
}

}  // namespace

const std::vector<Scenario>& scenarios() {
    static const std::vector<Scenario> all = {
        {"trials",
         two_workqueues,
         {start(),
          pin("nvme-wq", "cpu"),
          trial("a trial that is kept", "kcryptd", 0.5),
          unpin("nvme-wq"),
          pin("nvme-wq", "cpu"),
          {"restart", [](Host& h) { h.stop(true); }},
          start(),
          trial("a trial that is taken back", "writeback", 1.5),
          ticks(1),
          stop()}},
        {"default", the_default, {start(), trial("a trial", kDefaultTarget, 0.5), ticks(1), stop()}},
        {"foreign",
         two_workqueues,
         {start(),
          pin("nvme-wq", "cpu"),
          somebody_writes("nvme-wq", "numa"),
          {"work", [](Host& h) { h.busy = "kcryptd"; }},
          ticks(2),
          {"a few windows",
           [](Host& h) {
               for (int i = 0; i < 8 && h.daemon && h.daemon->experiment().due(); i++) {
                   const std::uint64_t due = *h.daemon->experiment().due();
                   h.pass(due > h.now ? due - h.now : 0);
                   h.daemon->experiment().on_time();
               }
           }},
          somebody_writes("kcryptd", "system"),
          ticks(2),
          stop()}},
        {"paused", at_once, {start(), pause("switched off"), pause(""), stop()}},
        {"unsupported", a_word_too_long, {start(), ticks(2), stop()}},
    };
    return all;
}

void live(const Scenario& scenario, Host& host, const std::function<void(const Step&)>& after) {
    for (const Step& step : scenario.steps) {
        if (!step.behind) host.edge.watch();
        step.run(host);
        host.edge.rest();
        if (after) after(step);
    }
}

bool is_long() {
    const char* wish = std::getenv("WQ_TUNED_FAULTS");
    return wish != nullptr && std::string(wish) == "all";
}

}  // namespace wq::faults
