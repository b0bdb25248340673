// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The CSV of `wq-tunectl judge`: read, written, read again, judged, and the verdicts stored.
#include "ctl/commands/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/text.h"
#include "evidence/verdicts.h"
#include "fuzz.h"
#include "records.h"

using wq::RecordedComparison;
using wq::fuzz::folder;
using wq::fuzz::require;
using wq::fuzz::require_same;

static std::string csv(const std::vector<RecordedComparison>& trials) {
    std::string out = "trial,pair,arm,counter,value\n";
    for (const RecordedComparison& trial : trials)
        for (std::size_t p = 0; p < trial.pairs.size(); p++)
            for (std::size_t c = 0; c < trial.counters.size(); c++) {
                const auto& [baseline, candidate] = trial.pairs[p][c];
                out += fmt::format("{0},{1},baseline,{2},{3}\n{0},{1},candidate,{2},{4}\n", trial.name, p,
                                   trial.counters[c].name, baseline, candidate);
            }
    return out;
}

static bool same(const RecordedComparison& a, const RecordedComparison& b) {
    const auto same_pair = [](const auto& p, const auto& q) {
        return std::ranges::equal(p, q, [](const wq::PairValues& r, const wq::PairValues& s) {
            return r.reference == s.reference && r.candidate == s.candidate;
        });
    };
    return a.name == b.name && a.counters == b.counters && std::ranges::equal(a.pairs, b.pairs, same_pair);
}

// Judges by the first counter, as `ab` does. Checks that the store can be read again, whatever was measured.
static void check_verdict(const RecordedComparison& recorded) {
    wq::Comparison comparison(std::vector{recorded.counters.front()});
    for (const auto& pair : recorded.pairs) comparison.add({pair.front()});
    const wq::Decision at = comparison.decide({0.05, 1, true});
    require(at.pairs <= recorded.pairs.size(), "pairs are counted");
    require(std::isfinite(wq::evidence_of(at.log_worse)) && !std::isnan(at.log_worse), "evidence");
    require(std::isfinite(wq::evidence_of(at.log_better)) && !std::isnan(at.log_better), "evidence");

    wq::VerdictRecord record;
    record.key.kind = "kcryptd";
    record.outcome = at.judgement;
    record.standing = wq::standing_of(at, comparison.columns());
    folder().remove("verdicts.log");
    wq::VerdictStore store(folder().path("verdicts.log"));
    wq::fuzz::keep(store, record);
    wq::VerdictStore later(folder().path("verdicts.log"));
    require(later.read().has_value() && later.records().size() == 1, "a verdict can be read again");
    require_same(store.records()[0], later.records()[0]);
    require(later.records()[0].standing.pairs == at.pairs, "of as many pairs");
}

FUZZ_TARGET(recording) {
    const auto trials = wq::read_recording(text);
    if (!trials) {
        const auto& [line, reason] = trials.error();
        const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
        require(line >= 1 && line <= lines, "a refused recording names a line that is there");
        require(!reason.empty() && wq::printable(reason) == reason, "and a reason that can be shown");
        return;
    }
    require(!trials->empty(), "a recording has a trial");
    const auto again = wq::read_recording(csv(*trials));
    require(again && std::ranges::equal(*trials, *again, same),
            "what parses prints back and parses to the same");
    std::ranges::for_each(*trials, check_verdict);
}
