// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "evidence/comparison.h"
#include "machine/workqueue.h"

namespace wq {

// Values of a JSON document. A value that is not known or does not apply is null.

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

// An empty WORD means that it is not known.
inline nlohmann::json word_or_null(const std::string& word) {
    return word.empty() ? nlohmann::json(nullptr) : nlohmann::json(word);
}

inline nlohmann::json name_or_null(const std::optional<Scope>& scope) {
    return scope ? nlohmann::json(name_of(*scope)) : nlohmann::json(nullptr);
}

// [low, high], in percent.
inline nlohmann::json interval_or_null(const Effect& effect) {
    if (!effect.interval) return nullptr;
    return nlohmann::json::array({effect.interval->low, effect.interval->high});
}

// The string KEY of OBJECT; OTHERWISE if it has none.
inline std::string text_in(const nlohmann::json& object, const char* key, const char* otherwise = "") {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

// DOCUMENT as text, in one line unless there is an INDENT. Names that are not UTF-8 are shown with
// replacement characters.
template <class Json>
std::string json_text(const Json& document, int indent = -1) {
    return document.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace wq
