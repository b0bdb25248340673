// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/commands/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/text.h"

namespace wq {
namespace {

constexpr std::array<std::string_view, 5> kColumns{"trial", "pair", "arm", "counter", "value"};
constexpr std::string_view kHeader = "trial,pair,arm,counter,value";

class CsvReader {
  public:
    // Adds the row in LINE, which has this NUMBER. Returns why it is refused; empty if it is not.
    std::string add(std::string_view line, std::size_t number) {
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
        const auto& [trial, pair, arm, counter, text] = fields;
        if (arm != "baseline" && arm != "candidate")
            return fmt::format("arm {} is neither baseline nor candidate", in_quotes(arm));
        const double value = number_of<double>(text).value_or(0);
        if (!(value >= Comparison::kLeastValue && value <= Comparison::kMostValue))
            return fmt::format("value {} is not a number from {:g} to {:g}", in_quotes(text),
                               Comparison::kLeastValue, Comparison::kMostValue);
        PairValues& values = values_of(trial, pair, counter, number);
        double& of_arm = arm == "candidate" ? values.candidate : values.reference;
        if (of_arm != 0)
            return fmt::format("a second {} value of counter {} in pair {} of trial {}", arm,
                               in_quotes(counter), in_quotes(pair), in_quotes(trial));
        of_arm = value;
        return {};
    }

    // The trials, each of whose pairs has both values of each counter.
    tl::expected<std::vector<RecordedComparison>, RecordingError> completed() {
        for (std::size_t t = 0; t < out_.size(); t++) {
            auto& [trial, counters, pairs] = out_[t];
            for (std::size_t p = 0; p < pairs.size(); p++) {
                pairs[p].resize(counters.size());
                for (std::size_t c = 0; c < counters.size(); c++) {
                    const auto [baseline, candidate] = pairs[p][c];
                    if (baseline != 0 && candidate != 0) continue;
                    const auto& [pair, line] = parts_[t].starts[p];
                    return tl::unexpected(RecordingError{
                        line,
                        fmt::format("pair {} of trial {} has no {} value of counter {}", in_quotes(pair),
                                    in_quotes(trial), baseline == 0 ? "baseline" : "candidate",
                                    in_quotes(counters[c].name))});
                }
            }
        }
        return std::move(out_);
    }

  private:
    using Places = std::unordered_map<std::string_view, std::size_t>;  // by name, in order of appearance
    struct Parts {
        Places pairs;
        Places counters;
        std::vector<std::pair<std::string_view, std::size_t>> starts;  // of each pair: name, first line
    };
    static std::size_t place_of(Places& places, std::string_view name) {
        return places.try_emplace(name, places.size()).first->second;
    }
    // 0 = none yet.
    PairValues& values_of(std::string_view trial, std::string_view pair, std::string_view counter,
                          std::size_t line) {
        const std::size_t t = place_of(trials_, trial);
        if (t == out_.size()) {
            out_.push_back({std::string(trial), {}, {}});
            parts_.emplace_back();
        }
        const std::size_t p = place_of(parts_[t].pairs, pair);
        if (p == out_[t].pairs.size()) {
            out_[t].pairs.emplace_back();
            parts_[t].starts.emplace_back(pair, line);
        }
        const std::size_t c = place_of(parts_[t].counters, counter);
        if (c == out_[t].counters.size()) out_[t].counters.push_back({std::string(counter)});
        auto& values = out_[t].pairs[p];
        values.resize(std::max(values.size(), c + 1));
        return values[c];
    }

    Places trials_;
    std::vector<Parts> parts_;  // of each trial
    std::vector<RecordedComparison> out_;
};

}  // namespace

tl::expected<std::vector<RecordedComparison>, RecordingError> read_recording(std::string_view text) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // as spreadsheets write it
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    const auto end_of_rows = text.find_last_not_of("\r\n");  // the last lines may be empty
    text = text.substr(0, end_of_rows == std::string_view::npos ? 0 : end_of_rows + 1);
    CsvReader reader;
    std::size_t line = 0;
    do {
        const auto end = text.find('\n');
        std::string_view one = text.substr(0, end);
        if (one.ends_with('\r')) one.remove_suffix(1);
        std::string why;
        if (++line > 1)
            why = reader.add(one, line);
        else if (one != kHeader)
            why = fmt::format("the first line must be {}", kHeader);
        if (!why.empty()) return tl::unexpected(RecordingError{line, std::move(why)});
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    } while (!text.empty());
    if (line == 1) return tl::unexpected(RecordingError{1, "no rows follow the header"});
    return reader.completed();
}

}  // namespace wq
