// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/recording.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <unordered_map>

#include "base/text.h"
#include "evidence/comparison.h"

namespace wq {
namespace {

constexpr std::string_view kHeader = "trial,pair,arm,counter,value";
constexpr std::size_t kColumns = 5;
constexpr std::size_t kQuoted = 40;  // bytes of the file that a message shows

using Line = std::size_t;
using Columns = std::array<std::string_view, kColumns>;

struct Row {
    std::string_view trial, pair, counter;
    bool candidate = false;
    double value = 0;
};

// Names in the order of their first occurrence, each with its index.
class Names {
  public:
    std::size_t place_of(std::string_view name) {
        const auto [at, added] = places_.try_emplace(name, in_order_.size());
        if (added) in_order_.push_back(name);
        return at->second;
    }
    [[nodiscard]] std::string_view operator[](std::size_t place) const { return in_order_[place]; }
    [[nodiscard]] std::size_t size() const { return in_order_.size(); }

  private:
    std::unordered_map<std::string_view, std::size_t> places_;
    std::vector<std::string_view> in_order_;
};

struct Cell {
    std::array<double, 2> values{};  // baseline, candidate; 0 = none yet
    Line line = 0;                   // of the last value
};

struct TrialDraft {
    Names pairs;
    Names counters;
    std::vector<std::vector<Cell>> cells;  // [pair][counter]
    std::vector<Line> starts;              // the first line of each pair
};

std::string excerpt(std::string_view text) {
    const bool whole = text.size() <= kQuoted;
    return fmt::format("'{}{}'", printable(text.substr(0, kQuoted)), whole ? "" : "...");
}

std::string value_error(std::string_view text) {
    return fmt::format("value {} is not a positive number", excerpt(text));
}

// Splits LINE into OUT. Returns the number of its fields, even if there are more than kColumns.
std::size_t split(std::string_view line, Columns& out) {
    std::size_t count = 0;
    for (;;) {
        const auto comma = line.find(',');
        if (count < kColumns) out[count] = line.substr(0, comma);
        count++;
        if (comma == std::string_view::npos) return count;
        line.remove_prefix(comma + 1);
    }
}

// Reads the fields into ROW. Returns why they are not valid; empty if they are.
std::string read_row(const Columns& f, Row& row) {
    constexpr std::array names{"trial", "pair", "arm", "counter", "value"};
    for (std::size_t i = 0; i < kColumns; i++)
        if (f[i].empty()) return fmt::format("{} is empty", names[i]);
    if (f[2] != "baseline" && f[2] != "candidate")
        return fmt::format("arm {} is neither baseline nor candidate", excerpt(f[2]));
    row = {f[0], f[1], f[3], f[2] == "candidate", 0};
    row.value = number_of<double>(f[4]).value_or(0);
    if (!std::isfinite(row.value) || row.value <= 0) return value_error(f[4]);
    if (row.value < Comparison::kLeastValue || row.value > Comparison::kMostValue)
        return fmt::format("value {} is not between {:g} and {:g}", excerpt(f[4]), Comparison::kLeastValue,
                           Comparison::kMostValue);
    return "";
}

std::string read_line(std::string_view line, Row& row) {
    Columns fields;
    if (line.empty()) return "the line is empty";
    if (line.find('"') != std::string_view::npos)
        return "quotes are not supported; names must not contain commas";
    const std::size_t count = split(line, fields);
    if (count != kColumns) return fmt::format("{} instead of {}", plural(count, "field"), kColumns);
    return read_row(fields, row);
}

Cell& cell_of(TrialDraft& draft, const Row& row, Line line) {
    const std::size_t pair = draft.pairs.place_of(row.pair);
    const std::size_t counter = draft.counters.place_of(row.counter);
    if (pair == draft.cells.size()) {
        draft.cells.emplace_back();
        draft.starts.push_back(line);
    }
    auto& cells = draft.cells[pair];
    if (counter >= cells.size()) cells.resize(counter + 1);
    return cells[counter];
}

// Adds ROW. Returns why it contradicts earlier rows; empty if it does not.
std::string put(TrialDraft& draft, const Row& row, Line line) {
    Cell& cell = cell_of(draft, row, line);
    double& value = cell.values[row.candidate ? 1 : 0];
    if (value != 0)
        return fmt::format("a second {} value of counter {} in pair {} of trial {}",
                           row.candidate ? "candidate" : "baseline", excerpt(row.counter), excerpt(row.pair),
                           excerpt(row.trial));
    value = row.value;
    cell.line = line;
    return {};
}

class Reader {
  public:
    // Reads the next line. Returns its error; empty if there is none.
    std::string take(std::string_view text, Line line) {
        if (line == 1) return text == kHeader ? "" : fmt::format("the first line must be {}", kHeader);
        Row row;
        if (std::string reason = read_line(text, row); !reason.empty()) return reason;
        const std::size_t place = trials_.place_of(row.trial);
        if (place == drafts_.size()) drafts_.emplace_back();
        return put(drafts_[place], row, line);
    }

    tl::expected<std::vector<RecordedComparison>, RecordingError> finish() {
        std::vector<RecordedComparison> out;
        for (std::size_t i = 0; i < drafts_.size(); i++) {
            auto trial = complete(std::string(trials_[i]), drafts_[i]);
            if (!trial) return tl::unexpected(trial.error());
            out.push_back(std::move(*trial));
        }
        return out;
    }

  private:
    static std::string place_text(const TrialDraft& draft, const std::string& trial, std::size_t pair) {
        return fmt::format("pair {} of trial {}", excerpt(draft.pairs[pair]), excerpt(trial));
    }

    static tl::expected<std::vector<PairValues>, RecordingError> complete_pair(const TrialDraft& draft,
                                                                               const std::string& trial,
                                                                               std::size_t pair) {
        std::vector<PairValues> out;
        for (std::size_t c = 0; c < draft.counters.size(); c++) {
            const Cell cell = c < draft.cells[pair].size() ? draft.cells[pair][c] : Cell{};
            const auto [baseline, candidate] = cell.values;
            if (baseline == 0 || candidate == 0) {
                const char* missing = candidate != 0 ? "baseline " : baseline != 0 ? "candidate " : "";
                return tl::unexpected(RecordingError{
                    cell.line != 0 ? cell.line : draft.starts[pair],
                    fmt::format("{} has no {}value of counter {}", place_text(draft, trial, pair), missing,
                                excerpt(draft.counters[c]))});
            }
            out.push_back({baseline, candidate});
        }
        return out;
    }

    static tl::expected<RecordedComparison, RecordingError> complete(std::string name,
                                                                     const TrialDraft& draft) {
        RecordedComparison out{std::move(name), {}, {}};
        for (std::size_t c = 0; c < draft.counters.size(); c++)
            out.counters.push_back({std::string(draft.counters[c])});
        for (std::size_t p = 0; p < draft.cells.size(); p++) {
            auto pair = complete_pair(draft, out.name, p);
            if (!pair) return tl::unexpected(pair.error());
            out.pairs.push_back(std::move(*pair));
        }
        return out;
    }

    Names trials_;
    std::vector<TrialDraft> drafts_;
};

}  // namespace

tl::expected<std::vector<RecordedComparison>, RecordingError> read_recording(std::string_view text) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // as spreadsheets write it
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    const auto end_of_rows = text.find_last_not_of("\r\n");  // the last lines may be empty
    text = text.substr(0, end_of_rows == std::string_view::npos ? 0 : end_of_rows + 1);
    Reader reader;
    Line line = 0;
    do {
        const auto end = text.find('\n');
        std::string_view one = text.substr(0, end);
        if (one.ends_with('\r')) one.remove_suffix(1);
        if (std::string reason = reader.take(one, ++line); !reason.empty())
            return tl::unexpected(RecordingError{line, std::move(reason)});
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    } while (!text.empty());
    if (line == 1) return tl::unexpected(RecordingError{1, "no rows follow the header"});
    return reader.finish();
}

}  // namespace wq
