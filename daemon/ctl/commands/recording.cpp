// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/commands/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "base/text.h"
#include "evidence/comparison.h"

namespace wq {
namespace {

constexpr std::array<std::string_view, 5> kColumns{"trial", "pair", "arm", "counter", "value"};
constexpr std::string_view kHeader = "trial,pair,arm,counter,value";

using Recording = tl::expected<std::vector<RecordedComparison>, RecordingError>;

struct CsvRow {
    std::string_view trial, pair, counter;
    bool candidate = false;
    double value = 0;
};

// CsvNames in the order of their first occurrence, each with its index.
class CsvNames {
  public:
    std::size_t place_of(std::string_view name) {
        const auto [at, added] = places_.try_emplace(name, in_order_.size());
        if (added) in_order_.push_back(name);
        return at->second;
    }
    [[nodiscard]] const std::vector<std::string_view>& in_order() const { return in_order_; }

  private:
    std::unordered_map<std::string_view, std::size_t> places_;
    std::vector<std::string_view> in_order_;
};

struct CsvCell {
    std::array<double, 2> values{};  // baseline, candidate; 0 = none yet
    std::size_t line = 0;            // of the last value
};

struct CsvTrial {
    CsvNames pairs;
    CsvNames counters;
    std::vector<std::vector<CsvCell>> cells;  // [pair][counter]
    std::vector<std::size_t> starts;          // the first line of each pair
};

// Reads LINE into ROW. Returns why it is not valid; empty if it is.
std::string read_row(std::string_view line, CsvRow& row) {
    if (line.empty()) return "the line is empty";
    if (line.find('"') != std::string_view::npos)
        return "quotes are not supported; names must not contain commas";
    const auto count = static_cast<std::size_t>(std::ranges::count(line, ',')) + 1;
    if (count != kColumns.size())
        return fmt::format("{} instead of {}", plural(count, "field"), kColumns.size());
    std::array<std::string_view, kColumns.size()> fields;
    for (std::size_t i = 0; i < fields.size(); i++) {
        const std::size_t end = std::min(line.find(','), line.size());
        fields[i] = line.substr(0, end);
        line.remove_prefix(std::min(end + 1, line.size()));
        if (fields[i].empty()) return fmt::format("{} is empty", kColumns[i]);
    }
    const auto& [trial, pair, arm, counter, value] = fields;
    if (arm != "baseline" && arm != "candidate")
        return fmt::format("arm {} is neither baseline nor candidate", in_quotes(arm));
    row = {trial, pair, counter, arm == "candidate", number_of<double>(value).value_or(0)};
    if (!std::isfinite(row.value) || row.value <= 0)
        return fmt::format("value {} is not a positive number", in_quotes(value));
    if (row.value < Comparison::kLeastValue || row.value > Comparison::kMostValue)
        return fmt::format("value {} is not between {:g} and {:g}", in_quotes(value), Comparison::kLeastValue,
                           Comparison::kMostValue);
    return "";
}

// Adds ROW. Returns why it contradicts earlier rows; empty if it does not.
std::string put_row(CsvTrial& trial, const CsvRow& row, std::size_t line) {
    const std::size_t pair = trial.pairs.place_of(row.pair);
    const std::size_t counter = trial.counters.place_of(row.counter);
    if (pair == trial.cells.size()) {
        trial.cells.emplace_back();
        trial.starts.push_back(line);
    }
    auto& cells = trial.cells[pair];
    if (counter >= cells.size()) cells.resize(counter + 1);
    double& value = cells[counter].values[row.candidate ? 1 : 0];
    if (value != 0)
        return fmt::format("a second {} value of counter {} in pair {} of trial {}",
                           row.candidate ? "candidate" : "baseline", in_quotes(row.counter),
                           in_quotes(row.pair), in_quotes(row.trial));
    value = row.value;
    cells[counter].line = line;
    return {};
}

// TRIALS with NAMES, each of whose pairs has both values of each counter.
Recording completed(const std::vector<std::string_view>& names, std::vector<CsvTrial>& trials) {
    std::vector<RecordedComparison> out;
    for (std::size_t t = 0; t < trials.size(); t++) {
        CsvTrial& trial = trials[t];
        RecordedComparison& one = out.emplace_back(RecordedComparison{std::string(names[t]), {}, {}});
        const auto& counters = trial.counters.in_order();
        for (const std::string_view counter : counters) one.counters.push_back({std::string(counter)});
        for (std::size_t p = 0; p < trial.cells.size(); p++) {
            std::vector<PairValues>& pair = one.pairs.emplace_back();
            trial.cells[p].resize(counters.size());
            for (std::size_t c = 0; c < counters.size(); c++) {
                const auto& [values, line] = trial.cells[p][c];
                const auto [baseline, candidate] = values;
                pair.push_back({baseline, candidate});
                if (baseline != 0 && candidate != 0) continue;
                const char* missing = candidate != 0 ? "baseline " : baseline != 0 ? "candidate " : "";
                return tl::unexpected(
                    RecordingError{line != 0 ? line : trial.starts[p],
                                   fmt::format("pair {} of trial {} has no {}value of counter {}",
                                               in_quotes(trial.pairs.in_order()[p]), in_quotes(names[t]),
                                               missing, in_quotes(counters[c]))});
            }
        }
    }
    return out;
}

}  // namespace

tl::expected<std::vector<RecordedComparison>, RecordingError> read_recording(std::string_view text) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // as spreadsheets write it
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    const auto end_of_rows = text.find_last_not_of("\r\n");  // the last lines may be empty
    text = text.substr(0, end_of_rows == std::string_view::npos ? 0 : end_of_rows + 1);
    CsvNames names;
    std::vector<CsvTrial> trials;
    std::size_t line = 0;
    do {
        const auto end = text.find('\n');
        std::string_view one = text.substr(0, end);
        if (one.ends_with('\r')) one.remove_suffix(1);
        CsvRow row;
        std::string why;
        if (++line == 1) {
            if (one != kHeader) why = fmt::format("the first line must be {}", kHeader);
        } else if (why = read_row(one, row); why.empty()) {
            const std::size_t place = names.place_of(row.trial);
            if (place == trials.size()) trials.emplace_back();
            why = put_row(trials[place], row, line);
        }
        if (!why.empty()) return tl::unexpected(RecordingError{line, std::move(why)});
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    } while (!text.empty());
    if (line == 1) return tl::unexpected(RecordingError{1, "no rows follow the header"});
    return completed(names.in_order(), trials);
}

}  // namespace wq
