// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/ledger.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

namespace wq {

constexpr double kMax = std::numeric_limits<double>::max();
constexpr std::int64_t kMaxTime = std::int64_t{1} << 40;  // s; tens of thousands of years
constexpr std::uint64_t kSlow = 2 * kSecond;
constexpr std::uint64_t kMinute = 60 * kSecond;

void describe(JsonPlace& at, Judgement& judgement) {
    at.word(judgement, {Judgement::undecided, Judgement::improved, Judgement::regressed},
            [](Judgement each) { return name_of(each); });
}

void describe(JsonPlace& at, LedgerKey& key) {
    at("kernel", key.kernel);
    at("topology", key.topology);
    at("scheduler", key.scheduler);
    at("class", key.kind);
    at("reference", key.reference);
    at("candidate", key.candidate);
    at("reference_origin", key.reference_origin);
    at("partitions", key.partitions);
    at("counters", key.counters);
    at("window", key.window);
}

static void describe(JsonPlace& at, Comparison::Column& column) {
    at("counter", column.counter.name);
    at("higher_is_better", column.counter.higher_is_better);
    at("tolerance", column.counter.tolerance, 0.0, 1.0);
    at("guard", column.counter.guard);
    at("pairs", column.worse.count);
    column.better.count = column.worse.count;
    at("better", column.better.logs, -kMostLog, kMostLog);
    at("better_squares", column.better.squares, 0.0, kMax);
    at("worse", column.worse.logs, -kMostLog, kMostLog);
    at("worse_squares", column.worse.squares, 0.0, kMax);
    at("sum", column.sum);
    at("largest", column.largest, 0.0, kMax);
    at("reference_cost", column.reference_cost, 0.0, kMax);
    at("candidate_cost", column.candidate_cost, 0.0, kMax);
    at("last", column.last);
    if (column.last.size() > Comparison::kLastDifferences) at.refuse("too many differences");
}

static void describe(JsonPlace& at, EDetector& state) {
    at("logs", state.logs, -kMostLog, kMostLog);
    at("squares", state.squares, 0.0, kMax);
    at("weight", state.weight, 0.0, kMax);
}

static void describe(JsonPlace& at, AfterVerdict& after) {
    at("pairs", after.pairs);
    at("sum", after.sum);
    at("squares", after.squares, 0.0, kMax);
    at("first", after.first, std::int64_t{0}, kMaxTime);
    at("last", after.last, std::int64_t{0}, kMaxTime);
}

static void describe(JsonPlace& at, LedgerEntry& entry) {
    at("key", entry.key);
    at("columns", entry.columns);
    at("watch", entry.watch);
    at("after", entry.after);
    at("alarms", entry.alarms);
    at("verdict", entry.judgement);
    at("decided", entry.decided, std::int64_t{0}, kMaxTime);
    at("decided_pairs", entry.decided_pairs);
    at("updated", entry.updated, std::int64_t{0}, kMaxTime);
    at("number", entry.number);
    at("lowest_lock", entry.lowest_lock, 0.0, kMax);
    if (std::ranges::all_of(entry.columns, [](const auto& c) { return c.counter.guard; }))
        at.refuse("an entry with no counters other than guards");
    if (!entry.watch.empty() && entry.watch.size() != entry.columns.size())
        at.refuse("the watch does not match the counters");
    if (!entry.after.empty() && entry.after.size() != entry.columns.size())
        at.refuse("the pairs after the verdict do not match the counters");
}

void describe(JsonPlace& at, Ledger& ledger) {
    at("lacks", ledger.lacks);
    at.list_of_values<LedgerEntry>(
        "entries", [&](LedgerEntry entry) { ledger.put(std::move(entry)); }, ledger.entries());
}

double alpha_after(double alpha, unsigned alarms) {
    return std::ldexp(alpha, -static_cast<int>(std::min(alarms, 1000U)) - 1);
}

std::string LedgerKey::text() const {
    std::string out;
    for (const std::string* part : {&kernel, &topology, &scheduler, &kind, &reference, &candidate,
                                    &reference_origin, &partitions[0], &partitions[1], &counters, &window})
        out += *part + "\n";
    return out;
}

const LedgerEntry* Ledger::find(const LedgerKey& key) const {
    return find_in(entries_, key.text());
}

double Ledger::lowest_lock(const LedgerKey& key) const {
    std::optional<double> out;
    for (const auto& [text, entry] : entries_)
        if (entry.lowest_lock && entry.key.kernel == key.kernel && entry.key.topology == key.topology)
            out = std::min(out.value_or(*entry.lowest_lock), *entry.lowest_lock);
    return out.value_or(0);
}

void Ledger::put(LedgerEntry entry) {
    const std::string key = entry.key.text();
    kinds_.insert(entry.key.kind);
    entries_.insert_or_assign(key, std::move(entry));
    if (entries_.size() <= kMostEntries) return;
    const auto rank = [&](const auto& each) { return std::pair(each.first == key, each.second.updated); };
    entries_.erase(std::ranges::min_element(entries_, {}, rank));
}

std::uint64_t pairs_of(const LedgerEntry& entry) {
    std::uint64_t most = 0;
    for (const Comparison::Column& column : entry.columns)
        if (!column.counter.guard) most = std::max(most, column.worse.count);
    return most;
}

void describe(JsonPlace& at, UnsavedPairs& pairs) {
    at("slot", pairs.slot);
    at("ledger", pairs.ledger);
}

void LedgerFile::load() {
    auto found = file_.load();
    if (found) {
        ledger_ = found->value_or(Ledger());
    } else {
        const bool begins = file_.may_save();
        if (!begins) error_ = found.error().text;
        log_.write({LOG_WARNING, Event::verdicts_broken,
                    found.error().text +
                        (begins ? ", learning starts from scratch"
                                : "; it stays as it is, and no slot begins until a restart can read it")});
    }
    if (file_.may_save()) take_unsaved();
}

// An entry only grows, but for an alarm. One that the ledger has already, or a later one, stays.
void LedgerFile::take_unsaved() {
    const auto pairs = pairs_.load();
    if (!pairs)
        return log_.write({LOG_WARNING, Event::none, pairs.error().in("the pairs since the last save").text});
    if (!*pairs) return;
    const auto age = [](const LedgerEntry& entry) {
        std::uint64_t count = 0;
        for (const Comparison::Column& column : entry.columns) count += column.worse.count;
        return std::pair(entry.alarms, count);
    };
    slot_ = (*pairs)->slot;
    for (const auto& [key, entry] : (*pairs)->ledger.entries()) {
        const LedgerEntry* known = ledger_.find(entry.key);
        if (known == nullptr || age(*known) < age(entry)) put(entry);
    }
}

void LedgerFile::put(LedgerEntry entry) {
    changed_ = true;
    unsaved_[entry.key.text()] = saves_ + 1;
    ledger_.put(std::move(entry));
}

void LedgerFile::lack(const std::string& what) {
    if (ledger_.lacks == what) return;
    changed_ = true;
    ledger_.lacks = what;
}

void LedgerFile::keep(std::uint64_t slot) {
    slot_ = slot;
    if (!file_.may_save()) return;
    UnsavedPairs out{slot, {}};
    for (const auto& [key, number] : unsaved_)
        if (const auto entry = ledger_.entries().find(key); entry != ledger_.entries().end())
            out.ledger.put(entry->second);
    const auto done = pairs_.save(out);
    const std::string error = done ? "" : done.error().in("the pairs since the last save").text;
    if (std::exchange(pairs_error_, error) != error && !done) log_.write({LOG_WARNING, Event::none, error});
}

void LedgerFile::save(std::uint64_t now) {
    if (!file_.may_save() || (!changed_ && error_.empty())) return;
    changed_ = false;
    saved_at_ = now;
    const std::uint64_t number = ++saves_;
    if (!saving_since_) saving_since_ = now;
    record_.put(
        file_.path(),
        [path = file_.path(), text = file_.text(ledger_)]() -> Status {
            return text ? replace_state_file(path, *text) : tl::unexpected(text.error());
        },
        [this, number](const Status& done) { saved(number, done); });
}

void LedgerFile::save_in_time(std::uint64_t now) {
    if (now - saved_at_ >= kMinute) save(now);
}

void LedgerFile::saved(std::uint64_t number, const Status& done) {
    if (number == saves_) saving_since_.reset();
    if (done) {
        std::erase_if(unsaved_, [&](const auto& each) { return each.second <= number; });
        if (unsaved_.empty()) (void)pairs_.remove();
    }
    const std::string error = done ? "" : done.error().text;
    if (error != error_ && !error.empty())
        log_.write({LOG_WARNING, Event::none,
                    error + "; results may be lost, and no slot begins until the ledger can be saved"});
    error_ = error;
}

std::string LedgerFile::why_not(std::uint64_t now) const {
    if (!error_.empty()) return error_;
    if (saving_since_ && now - *saving_since_ > kSlow)
        return fmt::format("the disk has not answered for {} s", (now - *saving_since_) / kSecond);
    return "";
}

}  // namespace wq
