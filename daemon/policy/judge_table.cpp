// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/judge_table.h"

#include <fmt/format.h>

#include <chrono>

#include "policy/quantity.h"
#include "policy/settings.h"

namespace wq {

using std::chrono::milliseconds;

void JudgeReader::read(TomlTable& table, const SourceText& text) {
    read_settings(table, "judge", policy_);
    sources_++;
    for (const char* key : {"window", "washout"})
        if (table.has(key)) settings_[key] = {key, sources_, text.error(table.place_of(key), "")};
}

JudgeReader JudgeReader::over(Policy& other) const {
    JudgeReader reader(other);
    reader.sources_ = sources_;
    reader.settings_ = settings_;
    return reader;
}

JudgeReader::Setting JudgeReader::setting(const std::string& key) const {
    const auto found = settings_.find(key);
    return found == settings_.end() ? Setting{key} : found->second;
}

std::optional<JudgeReader::Setting> JudgeReader::washout_too_long() const {
    if (policy_.judge.washout < policy_.judge.window) return std::nullopt;
    const auto said = [](const Setting& setting, milliseconds time) {
        return fmt::format("{} ({})", text_of(time), Origin{setting.place.file, setting.place.line}.text());
    };
    const Setting window = setting("window");
    const Setting washout = setting("washout");
    Setting last = window.source > washout.source ? window : washout;
    last.place.message =
        last.key == "window"
            ? "window must be more than washout, which is " + said(washout, policy_.judge.washout)
            : "washout must be less than window, which is " + said(window, policy_.judge.window);
    return last;
}

PolicyErrors JudgeReader::contradictions() const {
    if (const auto found = washout_too_long()) return {found->place};
    return {};
}

}  // namespace wq
