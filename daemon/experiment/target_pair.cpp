// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What may drop a pair
// ====================
//
// Evidence is fair only if the use of a pair cannot depend on which arm ran when. A pair is dropped only for
// a reason that both windows share (too few items in both, a suspend, a CPU that came or went, a clock jump,
// steal by the hypervisor) or that does not come from an arm (a counter's file cannot be read). An event in
// only one window is not such a reason, because the arm may be its cause: a window that is empty, late or
// starved, in which none of its items was timed (one of N is), or in which too many items were not seen,
// counts against the arm that ran in it, with the largest difference so far. If both windows are like this,
// the pair is dropped. A window with too little CPU time for `cpu` is not lost: the pair counts without this
// value. That is fair, because it depends on the two windows, and not on which had the candidate.
#include "experiment/target_pair.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "counters/counter_table.h"
#include "evidence/accrue.h"

namespace wq {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t kMostLost = 20;   // lost items of a window, at most one in 20
constexpr std::uint64_t kSlack = 50'000;  // us that each window may be late

bool is_of_machine(const ComparedCounter& counter) {
    return counter.name != kOthers && !is_work_counter(counter.name);
}

bool is_measured(double value) {
    return std::isfinite(value) && value > 0;
}

std::uint64_t all_items(const WorkCount& count) {
    return count.items + count.unfinished + count.lost;
}

}  // namespace

void TargetPair::spoil(const std::string& why) {
    if (spoilt_.empty()) spoilt_ = why;
}

double TargetPair::read(const ComparedCounter& counter) {
    if (!is_of_machine(counter)) return kNoValue;
    const auto value = read_machine_counter(meters_.paths, counter.name);
    if (!value && !counter.guard) spoil(value.error().text);
    return value.value_or(kNoValue);
}

void TargetPair::open(unsigned w, std::uint64_t now) {
    Window& window = windows_.at(w);
    window.opened = now;
    window.open = true;
    for (const ComparedCounter& counter : meters_.counters) window.before.push_back(read(counter));
    if (meters_.work == nullptr) return;
    if (const auto begun = meters_.work->begin(meters_.index, w); !begun) spoil(begun.error().text);
    if (const auto traffic = meters_.work->traffic_of(meters_.index)) window.completed = traffic->completed;
}

void TargetPair::end(Window& window, std::uint64_t now, std::uint64_t planned) {
    window.open = false;
    if (meters_.work != nullptr) meters_.work->pause(meters_.index);
    window.seconds = static_cast<double>(now - window.opened) / 1e6;
    for (std::size_t i = 0; i < meters_.counters.size(); i++) {
        window.values.push_back(kNoValue);
        const double before = window.before[i];
        if (std::isnan(before)) continue;
        const ComparedCounter& counter = meters_.counters[i];
        const double after = read(counter);
        // If the counter did not change, uses the planned time, so that both windows get the same value even
        // if one was a moment longer.
        const double seconds = after == before ? static_cast<double>(planned) / 1e6 : window.seconds;
        const auto value = value_of_window(counter.name, before, after, seconds);
        if (!value && !counter.guard) spoil(value.error().text);
        window.values.back() = value.value_or(kNoValue);
    }
}

void TargetPair::close(unsigned w, std::uint64_t now, std::uint64_t planned) {
    Window& window = windows_.at(w);
    if (!window.open) return;
    const std::uint64_t lasted = now - window.opened;
    window.late = lasted > planned + planned / 5 + kSlack;
    end(window, now, planned);
}

void TargetPair::cut(unsigned w, std::uint64_t now) {
    Window& window = windows_.at(w);
    if (!window.open) return;
    window.cut = true;
    end(window, now, now - window.opened);
}

std::optional<TargetPair::Look> TargetPair::look(unsigned w, std::uint64_t now) const {
    const Window& window = windows_.at(w);
    if (meters_.work == nullptr || !window.open) return {};
    const auto traffic = meters_.work->traffic_of(meters_.index);
    if (!traffic || traffic->completed < window.completed) return {};
    return Look{static_cast<double>(traffic->completed - window.completed),
                static_cast<double>(now - window.opened) / 1e6};
}

void TargetPair::read_work(unsigned w, PairResult& out) {
    Window& window = windows_.at(w);
    const auto count = meters_.work->read(meters_.index, w);
    if (!count) {
        out.counted = false;
        return spoil(count.error().text);
    }
    window.count = out.counts.at(w) = *count;
    out.items += all_items(*count);
    out.stuck += count->stuck;
    for (std::size_t i = 0; i < meters_.counters.size(); i++)
        if (const CounterKind* kind = find_counter(meters_.counters[i].name);
            kind != nullptr && kind->of_work != nullptr)
            window.values.at(i) = kind->of_work(*count, window.seconds);
}

// Whether only the other window has a value of a judged counter of the work.
bool TargetPair::lacks_value(unsigned w) const {
    for (std::size_t i = 0; i < meters_.counters.size(); i++) {
        const ComparedCounter& counter = meters_.counters[i];
        if (counter.guard || counter.name == "cpu" || !is_work_counter(counter.name)) continue;
        if (!is_measured(windows_.at(w).values.at(i)) && is_measured(windows_.at(1 - w).values.at(i)))
            return true;
    }
    return false;
}

bool TargetPair::is_lost(unsigned w) const {
    const Window& window = windows_.at(w);
    if (window.late) return true;
    if (meters_.work == nullptr) return false;
    const std::uint64_t items = all_items(window.count);
    if (window.count.items == 0 || window.count.lost * kMostLost > items || lacks_value(w)) return true;
    if (!window.cut) return false;
    // It was slower than expected. Whether it is lost depends on the other window of this pair.
    const Window& other = windows_.at(1 - w);
    if (other.cut) return true;
    const double expected = static_cast<double>(other.count.items) / other.seconds * window.seconds;
    return starves(static_cast<double>(window.count.items), expected);
}

void TargetPair::take_values(PairResult& out) {
    bool judged = false;  // whether some judged counter has a value
    for (std::size_t i = 0; i < meters_.counters.size(); i++) {
        const std::array values{windows_[0].values.at(i), windows_[1].values.at(i)};
        const bool both = std::ranges::all_of(values, is_measured);
        out.values.push_back(both ? std::optional(values) : std::nullopt);
        judged = judged || (both && !meters_.counters[i].guard);
    }
    for (std::size_t i = 0; i < meters_.counters.size(); i++) {
        const ComparedCounter& counter = meters_.counters[i];
        if (out.values[i] || counter.guard || out.lost) continue;
        const bool unknown = std::isnan(windows_[0].values[i]) || std::isnan(windows_[1].values[i]);
        // What this kernel does not show is left out, while another counter can be judged.
        if (!unknown || !judged)
            spoil(counter.name + (unknown ? " is not known" : " is not a positive number"));
    }
}

PairResult TargetPair::finish() {
    PairResult out;
    for (Window& window : windows_) window.values.resize(meters_.counters.size(), kNoValue);
    if (meters_.work != nullptr)
        for (const unsigned w : {0U, 1U}) read_work(w, out);
    // The window with more items counts: the pair must not be dropped because the candidate starves its load.
    const std::uint64_t most = std::max(all_items(windows_[0].count), all_items(windows_[1].count));
    const bool few = meters_.work != nullptr && out.counted && most < meters_.min_items;
    if (few) spoilt_ = kTooFewItems;
    if (out.counted && !few) {
        const bool first = is_lost(0);
        const bool second = is_lost(1);
        if (first && second) spoil("both windows were lost");
        if (first != second) out.lost = first ? 0 : 1;
    }
    take_values(out);
    out.drop = spoilt_;
    return out;
}

Result<std::size_t> Counting::attach(const std::vector<Attached>& targets, Wanted wanted) {
    if (!works()) return targets.size();
    const auto is_attached = [&](const Attached& one) {
        return std::ranges::find(attached_, one) != attached_.end();
    };
    if (!attached_.empty() && wanted == wanted_ && std::ranges::all_of(targets, is_attached))
        return targets.size();
    attached_.clear();
    for (std::size_t n = targets.size();; n = 1) {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < n; i++) names.push_back(targets[i].name);
        const auto attached = counters_.attach(names, wanted);
        if (!attached && n == 1) return tl::unexpected(attached.error());
        if (!attached) continue;
        attached_.assign(targets.begin(), targets.begin() + static_cast<std::ptrdiff_t>(n));
        wanted_ = wanted;
        return n;
    }
}

void Counting::detach() {
    counters_.detach();
    attached_.clear();
}

// N (one of N items is timed) is the same in both windows of a pair: it comes from the rate before the pair.
Meters Counting::meters_of(const std::string& name, double items) {
    Meters out;
    if (!works()) return out;
    out.work = &counters_;
    out.index =
        static_cast<unsigned>(std::ranges::find(attached_, name, &Attached::name) - attached_.begin());
    counters_.sample(out.index, sampled_every(items));
    return out;
}

Result<std::optional<std::map<std::string, double>>> Counting::rates(std::uint64_t now) {
    constexpr std::uint64_t kOldest = 12 * kSecond;
    auto traffic = counters_.traffic();
    if (!traffic) return tl::unexpected(traffic.error());
    const std::uint64_t passed = now - looked_at_;
    std::optional<std::map<std::string, double>> out;
    if (looked_at_ > 0 && passed >= kSecond && passed <= kOldest) out.emplace();
    auto before = seen_.begin();  // both are sorted
    for (const auto& [name, one] : *traffic) {
        while (before != seen_.end() && before->first < name) ++before;
        if (!out || before == seen_.end() || before->first != name) continue;
        // A write of a scope resets the kernel's counts to zero.
        const std::uint64_t last = before->second.started;
        const std::uint64_t more = one.started >= last ? one.started - last : one.started;
        if (more > 0) (*out)[name] = static_cast<double>(more) * kSecond / static_cast<double>(passed);
    }
    seen_ = std::move(*traffic);
    looked_at_ = now;
    return out;
}

std::vector<std::optional<PairValues>> by_arm(const PairResult& result, bool candidate_first) {
    std::vector<std::optional<PairValues>> out;
    for (const auto& values : result.values) {
        out.emplace_back();
        if (!values) continue;
        const auto [first, second] = *values;
        out.back() = candidate_first ? PairValues{second, first} : PairValues{first, second};
    }
    return out;
}

std::optional<PairValues> others_by_arm(const std::vector<double>& others, bool candidate_first) {
    if (others.empty()) return {};
    double mean = 0;
    for (const double d : others) mean += d / static_cast<double>(others.size());
    return PairValues{1, std::exp(candidate_first ? -mean : mean)};
}

std::optional<double> difference_in_time(const PairResult& result,
                                         const std::vector<ComparedCounter>& counters) {
    if (!result.drop.empty()) return {};
    if (result.lost) return result.lost == 1U ? kLostFirst : -kLostFirst;
    for (std::size_t i = 0; i < counters.size(); i++) {
        if (counters[i].guard) continue;
        if (!result.values[i]) return {};
        return log_ratio(counters[i], {(*result.values[i])[0], (*result.values[i])[1]});
    }
    return {};
}

}  // namespace wq
