// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "evidence/comparison.h"
#include "machine/workqueue.h"

namespace wq::ctl {

// Values of a JSON document. A value that is not known or does not apply is null.

template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

// An empty WORD means that it is not known.
inline nlohmann::ordered_json word_or_null(const std::string& word) {
    return word.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(word);
}

inline nlohmann::ordered_json name_or_null(const std::optional<Scope>& scope) {
    return scope ? nlohmann::ordered_json(name_of(*scope)) : nlohmann::ordered_json(nullptr);
}

// [low, high], in percent.
inline nlohmann::ordered_json interval_or_null(const Effect& effect) {
    if (!effect.interval) return nullptr;
    return nlohmann::ordered_json::array({effect.interval->low, effect.interval->high});
}

// DOCUMENT as text, in one line unless there is an INDENT. Names that are not UTF-8 are shown with
// replacement characters.
template <class Json>
std::string json_text(const Json& document, int indent = -1) {
    return document.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace wq::ctl
