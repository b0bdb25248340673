// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/status.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/file.h"
#include "base/version.h"
#include "evidence/json_values.h"
#include "evidence/verdicts.h"
#include "plan/plan.h"
#include "plan/pods.h"

namespace wq {
namespace {

using nlohmann::json;

std::string reason_of(const Targets& targets, const Target& target, bool unplanned) {
    // There is no policy in force. "No rule matches" would be true, but misleading.
    if (unplanned && target.plan.finding == Finding::unmanaged && target.reason == target.plan.reason)
        return "cannot plan: invalid policy";
    if (target.unread)
        return target.reason + (target.reason.empty() ? "" : "; ") + "cannot be read now, shown as it was";
    if (target.now.strict != true || !targets.snapshot().strict_in_doubt) return target.reason;
    return target.reason +
           "; strict, but a CPU came online or the machine was suspended since: its workers may run anywhere";
}

json comparison_json(const std::optional<ComparisonView>& view, const Judging& judging) {
    if (!view) return nullptr;
    const ComparisonView& v = *view;
    json out = to_json(v.standing);
    out.update({{"reference", v.arms.reference.name()},
                {"candidate", v.arms.candidate.name()},
                {"course", name_of(v.course)},
                {"by_order", v.by_hand},
                {"verdict", name_of(v.judgement)},
                {"pair", v.standing.pairs + 1},
                {"max_pairs", judging.settings.max_pairs},
                {"lost_seconds", v.lost_seconds},
                {"budget_seconds", judging.budget.count()},
                {"phase", v.measuring ? "measuring" : "waiting"},
                {"next_pair", or_null(v.next_pair)},
                {"reason", v.waits}});
    return out;
}

// The result of the comparisons of TARGET; empty if nothing was compared yet. A candidate that regressed
// counts as regressed also while it is tried again.
std::optional<Judgement> outcome_of(const Target& target, const std::optional<ComparisonView>& view) {
    const Step& step = target.step;
    if (step.kind == Step::Kind::kept) return Judgement::improved;
    const bool regressed = (view && view->judgement == Judgement::regressed) ||
                           (step.verdict != nullptr && step.verdict->outcome == Judgement::regressed);
    if (regressed) return Judgement::regressed;
    if (step.kind == Step::Kind::reverted || (view && view->standing.pairs > 0)) return Judgement::undecided;
    return {};
}

json policy_state_json(const PolicyState& policy, const std::vector<Origin>& expired) {
    json rules = json::array();
    for (const Origin& rule : expired) rules.push_back(rule.text());
    return {{"expired", std::move(rules)},
            {"state", policy.error.empty() ? "loaded" : "broken"},
            {"error", word_or_null(policy.error)},
            {"since", or_null(policy.since)},
            {"in_force", or_null(policy.in_force)}};
}

json target_json(const Targets& targets, const std::optional<ComparisonView>& view, const Target& target,
                 bool unplanned) {
    const Owned* entry = target.entry();
    const auto outcome = outcome_of(target, view);
    json verdict = target.step.verdict != nullptr ? to_json(*target.step.verdict) : json(nullptr);
    if (verdict.is_object()) verdict.erase("differences");  // the daemon does not keep them
    return {{"name", target.now.name},
            {"kind", name_of(target.now.kind)},
            {"scope", word_or_null(target.now.scope.word)},
            {"effective", name_or_null(target.now.scope.effective)},
            {"baseline", word_or_null(entry != nullptr ? entry->main.baseline : target.now.scope.word)},
            {"order", word_or_null(entry == nullptr ? "" : std::string(name_of_order(entry->holder)))},
            {"planned", name_or_null(target.plan.planned)},
            {"state", name_of(target.state)},
            {"reason", reason_of(targets, target, unplanned)},
            {"strict", or_null(target.now.strict)},
            {"outcome", outcome ? json(name_of(*outcome)) : json(nullptr)},
            {"comparison", comparison_json(view, targets.policy().judge)},
            {"contention", to_json(view ? view->contention : std::nullopt)},
            {"verdict", std::move(verdict)}};
}

// Masks that a rule asks for, or that hold a value that we wrote.
json masks_json(const MaskKeeper& masks) {
    json out = json::array();
    for (const auto& [name, mask] : masks.masks()) {
        const Owned* entry = mask.entry();
        const std::string& baseline = entry != nullptr ? entry->main.baseline : mask.now.text;
        const bool has_mask = !mask.now.text.empty();
        out.push_back({{"name", name},
                       {"cpumask", has_mask ? json(mask.now.effective.list()) : json(nullptr)},
                       {"baseline", has_mask ? json(plain(Knob::mask, baseline)) : json(nullptr)},
                       {"planned", word_or_null(mask.planned.list())},
                       {"state", name_of(mask.state)},
                       {"reason", mask.reason}});
    }
    return out;
}

// "next_pair": when the next pair of any target is due, null if that is not known.
json experiments_json(const Experiment* experiment, const std::vector<ComparisonView>& views) {
    if (experiment == nullptr) return nullptr;
    std::optional<std::int64_t> next;
    for (const ComparisonView& view : views)
        if (view.next_pair && (!next || *view.next_pair < *next)) next = view.next_pair;
    const ExperimentTotals totals = experiment->totals();
    return {{"reason", word_or_null(experiment->why_no_slot())},
            {"measuring", std::ranges::count(views, true, &ComparisonView::measuring)},
            {"next_pair", or_null(next)},
            {"slots", totals.slots},
            {"pairs", totals.pairs},
            {"pairs_dropped", totals.pairs_dropped},
            {"windows_lost", totals.windows_lost}};
}

// The arm that TARGET has outside of slots because it improved or was set first; nullptr if none.
const Arm* arm_in_force(const Target& target) {
    const auto& hold = target.step.hold;
    if (target.external || !hold || !target.step.holds(*hold)) return nullptr;
    return target.in_slot || target.now.scope.word == hold->word() ? &*hold : nullptr;
}

// A follower of @default is moved with it, and an order can move a target, too.
bool is_moved(const Targets& targets, const Target& target) {
    if (target.external || (target.now.kind != Kind::unbound && target.now.kind != Kind::default_scope))
        return false;
    if (target.in_slot) return arm_in_force(target) != nullptr || target.plan.now != target.before;
    const Owned* entry = target.entry();
    if (entry != nullptr && entry->whose(target.values()).strict == Whose::ours) return true;
    const Target* parameter = targets.find(kDefaultTarget);
    if (target.now.kind == Kind::unbound && target.now.scope.word == "default" && parameter != nullptr)
        return is_moved(targets, *parameter);
    const auto& now = target.now.scope.effective;
    return target.before && now && *target.before != *now;
}

LedgerKey key_of(const Targets& targets, const Target& target, const Arm& arm) {
    Workqueue before = target.before_us();
    const Arms arms = target.step.watch.value_or(Arms{baseline_arm(before, target.plan), arm});
    return targets.keys().ledger_key(target.now, arms, false);
}

void add(AfterVerdict& sum, const AfterVerdict& more) {
    if (more.pairs == 0) return;
    sum.first = sum.pairs == 0 ? more.first : std::min(sum.first, more.first);
    sum.last = std::max(sum.last, more.last);
    sum.add(more);
}

constexpr std::size_t kMostBytes = 64 << 20;  // 10,000 targets need about a third

std::string boot_id(const Paths& paths) {
    return read_first_line(paths.proc() + "/sys/kernel/random/boot_id");
}

// When the process PID started, in ticks since boot (field 22 of its stat; the name, field 2, may contain
// anything). Empty if it cannot be read, or if the process is dead and only its parent has not asked for its
// exit status yet (field 3).
std::optional<std::uint64_t> start_of(const Paths& paths, std::int64_t pid) {
    constexpr int kFieldsAfterName = 20;
    const std::string stat = read_first_line(fmt::format("{}/{}/stat", paths.proc(), pid));
    std::size_t at = stat.rfind(')');
    if (at != std::string::npos && stat.find_first_of("ZXx", at) == at + 2) return {};
    for (int i = 0; i < kFieldsAfterName && at != std::string::npos; i++) at = stat.find(' ', at + 1);
    if (at == std::string::npos) return {};
    std::uint64_t ticks = 0;
    const auto [end, error] = std::from_chars(stat.data() + at + 1, stat.data() + stat.size(), ticks);
    return error == std::errc() ? std::optional(ticks) : std::nullopt;
}

// DOCUMENT has "daemon" with a state, and targets with names. The type of nothing else is checked.
bool is_status(const json& document) {
    constexpr std::array kStates = {"running", "paused", "observing"};
    if (!document.is_object() || !document.contains("daemon") || !document.contains("targets")) return false;
    const json& targets = document.at("targets");
    const auto has_name = [](const json& each) { return each.is_object() && !text_in(each, "name").empty(); };
    return std::ranges::count(kStates, text_in(document.at("daemon"), "state")) == 1 && targets.is_array() &&
           std::ranges::all_of(targets, has_name);
}

tl::unexpected<Error> not_running(std::string why = "") {
    return fail(std::move(why), ESRCH);
}

// Where /proc hides other users' processes (hidepid=), kill() still tells that there is one.
bool is_hidden(const Paths& paths, std::int64_t pid) {
    return paths.root.empty() && !exists(fmt::format("/proc/{}/stat", pid)) &&
           ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == EPERM;
}

}  // namespace

void PolicyState::loaded(std::int64_t now) {
    error.clear();
    since = in_force = now;
}

void PolicyState::broken(const PolicyErrors& errors, std::int64_t now) {
    if (error.empty()) since = now;
    error = errors.front().text();
}

json status_json(const Engine& engine, const Experiment* experiment, const std::string& daemon_state,
                 const PolicyState& policy) {
    const Targets& targets = engine.targets();
    json list = json::array();
    std::vector<ComparisonView> views;
    for (const auto& [name, target] : targets.all()) {
        const auto view = experiment != nullptr ? experiment->view_of(name) : std::nullopt;
        list.push_back(target_json(targets, view, target, policy.nothing_to_plan_by()));
        if (view) views.push_back(*view);
    }
    return {{"daemon",
             {{"state", daemon_state},
              {"mode", name_of(targets.policy().mode)},
              {"version", version()},
              {"reason", targets.observing()},
              {"hosts", hosts_in_force(targets.policy())},
              {"policy", policy_state_json(policy, targets.policy().expired_rules())},
              {"experiments", experiments_json(experiment, views)},
              {"writes", targets.edges().files.writes()},
              {"topology_reads", targets.snapshot().topology_reads}}},
            {"targets", std::move(list)},
            {"masks", masks_json(engine.masks())}};
}

std::string summary_of(const Targets& targets) {
    std::map<std::string_view, unsigned> counts;
    for (const auto& [name, target] : targets.all()) counts[name_of(target.state)]++;
    const std::string why = targets.observing();
    std::string out = why.empty() ? std::string(name_of(targets.policy().mode)) : "observing: " + why;
    if (counts.empty()) out += "; no workqueues to tune";
    for (const auto& [state, n] : counts) out += fmt::format("; {} {}", n, state);
    return out;
}

std::vector<std::string> hosts_in_force(const Policy& policy) {
    std::vector<std::string> out;
    for (const HostMatch& host : policy.hosts)
        if (host.matches()) out.push_back(host.name);
    return out;
}

std::string status_text(json document) {
    const Paths machine;
    const auto pid = static_cast<std::int64_t>(::getpid());
    document["process"] = {
        {"boot_id", boot_id(machine)}, {"pid", pid}, {"start_time", start_of(machine, pid).value_or(0)}};
    return json_text(document);
}

Result<json> read_status(const Paths& paths) {
    const std::string path = paths.status();
    const auto text = read_file(path, kMostBytes);
    if (!text) return not_running(text.error().code == ENOENT ? "" : text.error().text);
    json document = json::parse(*text, nullptr, false);
    if (!document.is_object()) document = json::object();
    const std::string state = text_in(document["daemon"], "state");
    if (state == "absent") return not_running();
    if (state == "restarting") return not_running("it is being restarted");
    const json& process = document["process"];
    const auto number = [&process](const char* key) {
        const auto found = process.find(key);
        return found != process.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
    };
    const std::int64_t pid = number("pid");
    if (!is_status(document) || pid <= 0) return not_running(path + ": broken");
    if (const std::string boot = boot_id(paths); boot.empty() || boot != text_in(process, "boot_id"))
        return not_running(path + ": of another boot");
    const auto started = start_of(paths, pid);
    if (!started && is_hidden(paths, pid))
        return not_running(fmt::format("/proc hides whether process {} is the daemon: run it as root", pid));
    if (!started || static_cast<std::int64_t>(*started) != number("start_time"))
        return not_running(fmt::format("process {}, which wrote {}, is gone", pid, path));
    document.erase("process");
    return document;
}

json isolation_json(const Isolation& isolation) {
    json partitions = json::array();
    for (const Partition& p : isolation.partitions)
        partitions.push_back({{"cgroup", word_or_null(p.cgroup)}, {"cpus", p.cpus.list()}, {"type", p.type}});
    return {{"isolcpus", isolation.isolcpus.list()},
            {"nohz_full", isolation.nohz_full.list()},
            {"partitions", std::move(partitions)},
            {"partitions_complete", isolation.complete}};
}

json features_json(const KernelInfo& kernel, const KernelFeatures& features) {
    json named = json::object();
    for (const NamedFeature& feature : kFeatures)
        named[std::string(feature.name)] = or_null(features.*feature.value);
    return {{"release", word_or_null(kernel.release)}, {"features", std::move(named)}};
}

json pods_json(const KernelInfo& kernel, const Topology& topology) {
    json differ = json::object();
    for (const Scope scope : unlike_model(kernel, topology)) {
        json& lists = differ[std::string(name_of(scope))] = json::array();
        for (const CpuSet& pod : pods_in(kernel, scope, topology, 1)) lists.push_back(pod.list());
    }
    return {{"source", kernel.pods ? "kernel" : "model"},
            {"why", word_or_null(kernel.pods_unread)},
            {"differ", std::move(differ)}};
}

Worth worth_of(const Targets& targets, const Ledger& ledger) {
    Worth out;
    std::map<std::tuple<std::string, std::string, std::string>, AfterVerdict> sums;
    std::set<std::string> seen;  // targets of one class mostly share a comparison
    out.targets = targets.all().size();
    for (const auto& [name, target] : targets.all()) {
        if (!is_moved(targets, target)) continue;
        out.moved++;
        const Arm* arm = arm_in_force(target);
        const ScopeWish* wish = wish_for(target.now, targets.policy());
        if (arm == nullptr || (wish != nullptr && wish->hold)) continue;  // what is held is not compared
        const LedgerKey key = key_of(targets, target, *arm);
        if (key.reference_origin != "kernel" || !seen.insert(key.text()).second) continue;
        const LedgerEntry* entry = ledger.find(key);
        const auto& counters = targets.keys().measures().counters;
        for (std::size_t i = 0; i < counters.size(); i++) {
            if (counters[i].guard) continue;
            AfterVerdict& sum = sums[{key.kind, key.candidate, counters[i].name}];
            if (entry != nullptr && i < entry->after.size()) add(sum, entry->after[i]);
        }
    }
    for (const auto& [what, after] : sums)
        out.parts.push_back({std::get<0>(what), std::get<1>(what), std::get<2>(what), after});
    std::ranges::stable_sort(out.parts, std::ranges::greater{}, [](const Worth::Part& part) {
        return part.is_measured() ? std::abs(part.after.sum) / static_cast<double>(part.after.pairs) : -1;
    });
    return out;
}

json worth_json(const Targets& targets, const Ledger& ledger, const std::vector<VerdictRecord>& verdicts,
                std::int64_t now) {
    const Worth worth = worth_of(targets, ledger);
    json classes = json::array();
    for (const Worth::Part& part : worth.parts) {
        const Effect effect = mean_effect_of(part.after);
        const auto if_any = [&](std::int64_t time) {
            return part.after.pairs > 0 ? json(time) : json(nullptr);
        };
        classes.push_back({{"class", part.kind},
                           {"scope", part.arm},
                           {"counter", part.counter},
                           {"effect_percent", part.is_measured() ? json(effect.percent) : json(nullptr)},
                           {"interval_percent", interval_or_null(effect)},
                           {"pairs", part.after.pairs},
                           {"since", if_any(part.after.first)},
                           {"until", if_any(part.after.last)}});
    }
    const std::chrono::duration<double> window = targets.policy().judge.window;
    return {{"targets", worth.targets},
            {"moved", worth.moved},
            {"classes", std::move(classes)},
            {"window_seconds", window.count()},
            {"taken_back_this_month", taken_back_in_month(verdicts, now)},
            {"lost_today_s", nullptr}};
}

}  // namespace wq
