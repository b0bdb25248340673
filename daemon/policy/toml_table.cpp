// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/toml_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "policy/policy_tables.h"
#include "policy/toml_parser.h"

namespace wq {
namespace {

constexpr std::size_t kMaxMistakes = 1000;  // enough for any reader
constexpr std::size_t kMaxItems = 64;       // elements of an array

template <class T>
bool is(const TomlValue& value) {
    return std::holds_alternative<T>(value.value);
}

const TomlMembers& members(const TomlValue& table) {
    return std::get<TomlMembers>(table.value);
}

std::string number_text(const TomlValue& value) {
    if (is<std::int64_t>(value)) return std::to_string(std::get<std::int64_t>(value.value));
    return fmt::format("{}", std::get<double>(value.value));
}

// Describes a value for the end of "must be a number, not ...".
std::string description(const TomlValue& value) {
    if (is<std::string>(value)) return "the string " + in_quotes(std::get<std::string>(value.value));
    if (is<std::int64_t>(value)) return number_text(value);
    if (is<bool>(value)) return std::get<bool>(value.value) ? "true" : "false";
    if (is<double>(value)) return "the floating-point number " + number_text(value);
    if (is<TomlArray>(value)) return "an array";
    if (is<TomlMembers>(value)) return "a table";
    const auto& date = std::get<TomlDate>(value.value);
    return date.day.empty() ? "a time" : date.has_time ? "a date with a time" : "the date " + date.day;
}

}  // namespace

std::string suggestion(std::string_view word, const std::vector<std::string_view>& words) {
    const std::string nearest = nearest_word(word, words);
    return nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest);
}

std::string no_such_word(const std::string& what, const std::string& given, std::string_view word,
                         const std::vector<std::string_view>& words) {
    return fmt::format("{} must be one of \"{}\", not {}{}", what, fmt::join(words, "\", \""), given,
                       suggestion(word, words));
}

TomlTable::TomlTable(Node node, const SourceText& text, PolicyErrors& errors)
    : node_(std::move(node)), text_(&text), errors_(&errors) {}

TomlTable::TomlTable(Node node, std::string name, const TomlTable& parent)
    : node_(std::move(node)), name_(std::move(name)), text_(parent.text_), errors_(parent.errors_) {}

std::optional<TomlTable> TomlTable::parse(const SourceText& text, PolicyErrors& errors) {
    auto tree = parse_toml(text.text());
    if (tree) return TomlTable(std::make_shared<const TomlValue>(std::move(*tree)), text, errors);
    errors.push_back(text.error(text.place_of(tree.error().offset), tree.error().message));
    return std::nullopt;
}

TomlTable::Node TomlTable::ask(const std::string& key) {
    asked_.insert(key);
    const auto found = members(*node_).find(key);
    return found == members(*node_).end() ? nullptr : part(*found->second);
}

std::optional<bool> TomlTable::flag(const std::string& key) {
    const auto node = ask(key);
    if (!node) return std::nullopt;
    if (is<bool>(*node)) return std::get<bool>(node->value);
    refuse(*node, fmt::format("{} must be true or false", key));
    return std::nullopt;
}

std::optional<unsigned> TomlTable::number(const std::string& key, unsigned min, unsigned max) {
    const auto node = ask(key);
    if (!node) return std::nullopt;
    if (is<std::int64_t>(*node)) {
        const auto number = std::get<std::int64_t>(node->value);
        if (number >= min && number <= max) return static_cast<unsigned>(number);
    }
    refuse(*node, fmt::format("{} must be a whole number from {} to {}", key, min, max));
    return std::nullopt;
}

std::optional<std::string> TomlTable::string(const std::string& key) {
    const auto node = ask(key);
    if (!node) return std::nullopt;
    if (is<std::string>(*node))
        if (const auto& text = std::get<std::string>(node->value); !text.empty()) return text;
    refuse(*node, fmt::format("{} must be a string that is not empty", key));
    return std::nullopt;
}

std::optional<std::string> TomlTable::word(const std::string& key,
                                           const std::vector<std::string_view>& words) {
    const auto node = ask(key);
    if (!node) return std::nullopt;
    const std::string* text = std::get_if<std::string>(&node->value);
    if (text != nullptr && std::ranges::find(words, *text) != words.end()) return *text;
    error(place_of(*node), no_such_word(key, description(*node), text == nullptr ? "" : *text, words));
    return std::nullopt;
}

std::optional<std::string> TomlTable::scalar(const std::string& key) {
    const auto node = ask(key);
    if (!node) return std::nullopt;
    if (is<std::string>(*node)) return std::get<std::string>(node->value);
    if (is<std::int64_t>(*node) || is<double>(*node)) return number_text(*node);
    refuse(*node, fmt::format("{} must be a string", key));
    return std::nullopt;
}

std::optional<std::string> TomlTable::day(const std::string& key) {
    const auto node = ask(key);
    if (!node) return std::nullopt;
    if (!is<TomlDate>(*node)) return scalar(key);
    const auto& date = std::get<TomlDate>(node->value);
    return date.has_time ? "" : date.day;
}

std::optional<TomlTable> TomlTable::table(const std::string& key) {
    const auto node = ask(key);
    if (!node) return std::nullopt;
    if (is<TomlMembers>(*node)) return TomlTable(node, fmt::format("[{}]", key), *this);
    refuse(*node, fmt::format("{} must be one table, [{}]", key, key));
    return std::nullopt;
}

std::vector<TomlTable> TomlTable::tables(const std::string& key) {
    const auto node = ask(key);
    std::vector<TomlTable> tables;
    if (!node) return tables;
    const std::string name = fmt::format("[[{}]]", key);
    const std::string message = fmt::format("{} must be a list of tables, each below its own {}", key, name);
    if (!is<TomlArray>(*node)) {
        refuse(*node, message);
        return tables;
    }
    for (const TomlValue& element : std::get<TomlArray>(node->value)) {
        if (told_enough()) break;
        if (is<TomlMembers>(element))
            tables.push_back(TomlTable(part(element), name, *this));
        else
            refuse(element, message);
    }
    return tables;
}

std::optional<std::vector<TomlItem>> TomlTable::items(const std::string& key, std::size_t least,
                                                      bool may_be_tables) {
    const auto node = ask(key);
    if (!node) return std::nullopt;
    if (!is<TomlArray>(*node)) {
        refuse(*node, fmt::format("{} must be an array", key));
        return std::nullopt;
    }
    const auto& elements = std::get<TomlArray>(node->value);
    if (elements.size() < least) {
        error(place_of(*node), key + " must have an element, or be left out");
        return std::nullopt;
    }
    if (elements.size() > kMaxItems) {
        error(place_of(*node), fmt::format("{} has more than {} elements", key, kMaxItems));
        return std::nullopt;
    }
    std::vector<TomlItem> items;
    for (const TomlValue& element : elements) {
        if (told_enough()) break;
        const auto* text = std::get_if<std::string>(&element.value);
        if (text != nullptr && (may_be_tables || !text->empty()))
            items.push_back({place_of(element), *text, std::nullopt});
        else if (may_be_tables && is<TomlMembers>(element))
            items.push_back({place_of(element), "", TomlTable(part(element), "an element of " + key, *this)});
        else
            refuse(element, fmt::format("an element of {} must be a string {}", key,
                                        may_be_tables ? "or a table" : "that is not empty"));
    }
    return items;
}

std::optional<std::vector<TomlItem>> TomlTable::texts(const std::string& key) {
    const auto node = ask(key);
    if (node && is<TomlArray>(*node)) return items(key, 1, false);
    const auto text = string(key);
    if (!text) return std::nullopt;
    return std::vector<TomlItem>{{place_of(key), *text, std::nullopt}};
}

void TomlTable::reject_unknown_keys() {
    for (const auto& [key, value] : members(*node_)) {
        if (asked_.contains(key)) continue;
        if (told_enough()) return;
        error(place_of(key), unknown(key));
    }
}

bool TomlTable::told_enough() const {
    return errors_->size() > kMaxMistakes;
}

std::string TomlTable::unknown(const std::string& key) const {
    const std::vector<std::string_view> known(asked_.begin(), asked_.end());
    const std::string what = "unknown key " + in_quotes(key) + (name_.empty() ? "" : " in " + name_);
    if (const auto homes = homes_of(key); !homes.empty())
        return fmt::format("{}; it belongs {}", what, fmt::join(homes, " or "));
    if (const std::string nearest = suggestion(key, known); !nearest.empty()) return what + nearest;
    return fmt::format("{}; known keys: {}", what, fmt::join(known, ", "));
}

bool TomlTable::has(const std::string& key) const {
    return members(*node_).contains(key);
}

std::vector<std::string> TomlTable::known_keys() const {
    std::vector<std::string> out;
    for (const std::string& key : asked_)
        if (has(key)) out.push_back(key);
    return out;
}

Place TomlTable::place() const {
    return place_of(*node_);
}

Place TomlTable::place_of(const std::string& key) const {
    return text_->place_of(members(*node_).at(key)->key_offset);
}

Place TomlTable::place_of_value(const std::string& key) const {
    return place_of(*members(*node_).at(key));
}

Place TomlTable::place_of(const TomlValue& value) const {
    return text_->place_of(value.offset);
}

void TomlTable::refuse(const std::string& key, const std::string& message) {
    refuse(*members(*node_).at(key), message);
}

void TomlTable::refuse(const TomlValue& value, const std::string& message) {
    error(place_of(value), fmt::format("{}, not {}", message, description(value)));
}

void TomlTable::error(Place place, const std::string& message) {
    if (errors_->size() < kMaxMistakes)
        errors_->push_back(text_->error(place, message));
    else if (errors_->size() == kMaxMistakes)
        errors_->push_back(
            text_->error({}, fmt::format("more than {} mistakes; the others are not shown", kMaxMistakes)));
}

}  // namespace wq
