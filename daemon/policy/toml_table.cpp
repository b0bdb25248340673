// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/toml_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "policy/syntax_error.h"
#include "policy/toml11.h"
#include "policy/toml_guard.h"

namespace wq {

// A value, and the file's whole tree, which keeps it alive.
struct TomlTable::Node {
    std::shared_ptr<const TomlValue> tree;
    const TomlValue& value;
};

namespace {

// Nobody reads more, and each place costs 3.7 a walk through the file.
constexpr std::size_t kMaxMistakes = 1000;
constexpr std::size_t kMaxItems = 64;  // of an array: each has its place noted
constexpr std::size_t kQuoted = 64;    // bytes of a user's words that a message repeats

std::string number_text(const TomlValue& value) {
    if (value.is_integer()) return std::to_string(toml::get<std::int64_t>(value));
    return fmt::format("{}", toml::get<double>(value));
}

// What a value is, to end "must be a number, not ...".
std::string description(const TomlValue& value) {
    if (value.is_string()) return "the string " + in_quotes(toml::get<std::string>(value));
    if (value.is_integer()) return number_text(value);
    if (value.is_boolean()) return toml::get<bool>(value) ? "true" : "false";
    if (value.is_floating()) return "the floating-point number " + number_text(value);
    if (value.is_array()) return "an array";
    if (value.is_table()) return "a table";
    return "a date or time";
}

// The value at VALUE is that of KEY: where the key's last part begins, if it stands right before.
Place key_before(const SourceText& text, Place value, std::string_view key) {
    const auto trimmed = [](std::string_view line) {
        return line.substr(0, line.find_last_not_of(" \t") + 1);
    };
    std::string_view before = trimmed(text.line(value.line).substr(0, value.column - 1));
    if (!before.ends_with('=')) return value;
    before.remove_suffix(1);
    before = trimmed(before);
    for (const char* quote : {"\"", "'", ""})
        if (const auto word = quote + std::string(key) + quote; before.ends_with(word))
            return {value.line, static_cast<unsigned>(before.size() - word.size() + 1)};
    return value;
}

}  // namespace

std::string in_quotes(std::string_view words) {
    if (words.size() <= kQuoted) return fmt::format("\"{}\"", printable(words));
    std::size_t length = 0;
    while (length + utf8_length(words, length) <= kQuoted) length += utf8_length(words, length);
    return fmt::format("\"{}...\"", printable(words.substr(0, length)));
}

std::string suggestion(std::string_view word, const std::vector<std::string_view>& words) {
    const std::string nearest = nearest_word(word, words);
    return nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest);
}

TomlTable::TomlTable(std::shared_ptr<const Node> node, const SourceText& text, PolicyErrors& errors)
    : node_(std::move(node)), text_(&text), errors_(&errors) {}

TomlTable::TomlTable(std::shared_ptr<const Node> node, std::string name, const TomlTable& parent)
    : node_(std::move(node)), name_(std::move(name)), text_(parent.text_), errors_(parent.errors_) {}

std::optional<TomlTable> TomlTable::parse(const SourceText& text, PolicyErrors& errors) {
    if (const auto flaw = find_toml_flaw(text.text())) {
        errors.push_back(text.error(text.place_of(flaw->offset), flaw->message));
        return std::nullopt;
    }
    try {
        auto tree = std::make_shared<const TomlValue>(parse_toml(text.text()));
        return TomlTable(std::make_shared<const Node>(Node{tree, *tree}), text, errors);
    } catch (const std::exception& exception) {
        errors.push_back(read_syntax_error(text, exception.what()));
        return std::nullopt;
    }
}

std::shared_ptr<const TomlTable::Node> TomlTable::ask(const std::string& key) {
    asked_.insert(key);
    const auto& table = node_->value.as_table();
    const auto found = table.find(key);
    return found == table.end() ? nullptr : std::make_shared<const Node>(Node{node_->tree, found->second});
}

std::optional<bool> TomlTable::flag(const std::string& key) {
    const auto node = ask(key);
    if (!node) return std::nullopt;
    if (node->value.is_boolean()) return toml::get<bool>(node->value);
    refuse(*node, fmt::format("{} must be true or false", key));
    return std::nullopt;
}

std::optional<unsigned> TomlTable::number(const std::string& key, unsigned min, unsigned max) {
    const auto node = ask(key);
    if (!node) return std::nullopt;
    if (node->value.is_integer()) {
        const auto number = toml::get<std::int64_t>(node->value);
        if (number >= min && number <= max) return static_cast<unsigned>(number);
    }
    refuse(*node, fmt::format("{} must be a whole number from {} to {}", key, min, max));
    return std::nullopt;
}

std::optional<std::string> TomlTable::string(const std::string& key) {
    const auto node = ask(key);
    if (!node) return std::nullopt;
    if (node->value.is_string())
        if (auto text = toml::get<std::string>(node->value); !text.empty()) return text;
    refuse(*node, fmt::format("{} must be a string that is not empty", key));
    return std::nullopt;
}

std::optional<std::string> TomlTable::word(const std::string& key,
                                           const std::vector<std::string_view>& words) {
    const auto node = ask(key);
    if (!node) return std::nullopt;
    std::string text;
    if (node->value.is_string()) {
        text = toml::get<std::string>(node->value);
        if (std::find(words.begin(), words.end(), text) != words.end()) return text;
    }
    const auto nearest = suggestion(text, words);
    error(place_of_value(node->value),
          fmt::format("{} must be one of \"{}\", not {}{}", key, fmt::join(words, "\", \""),
                      description(node->value), nearest));
    return std::nullopt;
}

std::optional<std::string> TomlTable::scalar(const std::string& key) {
    const auto node = ask(key);
    if (!node) return std::nullopt;
    if (node->value.is_string()) return toml::get<std::string>(node->value);
    if (node->value.is_integer() || node->value.is_floating()) return number_text(node->value);
    refuse(*node, fmt::format("{} must be a string", key));
    return std::nullopt;
}

std::optional<TomlTable> TomlTable::table(const std::string& key) {
    const auto node = ask(key);
    if (!node) return std::nullopt;
    if (node->value.is_table()) return TomlTable(node, fmt::format("[{}]", key), *this);
    refuse(*node, fmt::format("{} must be one table, [{}]", key, key));
    return std::nullopt;
}

std::vector<TomlTable> TomlTable::tables(const std::string& key) {
    const auto node = ask(key);
    std::vector<TomlTable> tables;
    if (!node) return tables;
    const std::string name = fmt::format("[[{}]]", key);
    const std::string message = fmt::format("{} must be a list of tables, each below its own {}", key, name);
    if (!node->value.is_array()) {
        refuse(*node, message);
        return tables;
    }
    for (const TomlValue& element : node->value.as_array()) {
        if (told_enough()) break;
        const Node one{node->tree, element};
        if (element.is_table())
            tables.push_back(TomlTable(std::make_shared<const Node>(one), name, *this));
        else
            refuse(one, message);
    }
    return tables;
}

std::optional<std::vector<TomlItem>> TomlTable::items(const std::string& key) {
    const auto node = ask(key);
    if (!node) return std::nullopt;
    if (!node->value.is_array()) {
        refuse(*node, fmt::format("{} must be an array", key));
        return std::nullopt;
    }
    if (node->value.as_array().size() > kMaxItems) {
        error(place_of_value(node->value), fmt::format("{} has more than {} elements", key, kMaxItems));
        return std::nullopt;
    }
    std::vector<TomlItem> items;
    for (const TomlValue& element : node->value.as_array()) {
        if (told_enough()) break;
        const Node one{node->tree, element};
        const Place place = place_of_value(element);
        if (element.is_string())
            items.push_back({place, toml::get<std::string>(element), std::nullopt});
        else if (element.is_table())
            items.push_back(
                {place, "", TomlTable(std::make_shared<const Node>(one), "an element of " + key, *this)});
        else
            refuse(one, fmt::format("an element of {} must be a string or a table", key));
    }
    return items;
}

void TomlTable::refuse_the_rest() {
    for (const auto& [key, value] : node_->value.as_table()) {
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
    const std::string where = name_.empty() ? "" : " in " + name_;
    const std::string nearest = suggestion(key, known);
    if (!nearest.empty()) return fmt::format("unknown key {}{}{}", in_quotes(key), where, nearest);
    return fmt::format("unknown key {}{}, which may have {}", in_quotes(key), where, fmt::join(known, ", "));
}

bool TomlTable::has(const std::string& key) const {
    return node_->value.as_table().count(key) > 0;
}

std::vector<std::string> TomlTable::known_keys() const {
    std::vector<std::string> out;
    for (const std::string& key : asked_)
        if (has(key)) out.push_back(key);
    return out;
}

Place TomlTable::place() const {
    return place_of_value(node_->value);
}

Place TomlTable::place_of(const std::string& key) const {
    return key_before(*text_, place_of_value(node_->value.as_table().at(key)), key);
}

void TomlTable::refuse(const std::string& key, const std::string& message) {
    refuse(Node{node_->tree, node_->value.as_table().at(key)}, message);
}

void TomlTable::refuse(const Node& node, const std::string& message) {
    error(place_of_value(node.value), fmt::format("{}, not {}", message, description(node.value)));
}

void TomlTable::error(Place place, const std::string& message) {
    if (errors_->size() < kMaxMistakes)
        errors_->push_back(text_->error(place, message));
    else if (errors_->size() == kMaxMistakes)
        errors_->push_back(
            text_->error({}, fmt::format("more than {} mistakes; the rest is not told", kMaxMistakes)));
}

}  // namespace wq
