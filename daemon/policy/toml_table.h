// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/source_text.h"

namespace wq {

struct TomlItem;
struct TomlValue;

// One table of a TOML file, read strictly: a key is asked for by its type, a mistake goes to the file's
// errors with its place, and reject_unknown_keys() takes every key that nobody asked for as a mistake. The
// text and the errors must outlive all tables.
class TomlTable {
  public:
    // The top of a file. Empty after a syntax error, which is the one error then.
    static std::optional<TomlTable> parse(const SourceText& text, PolicyErrors& errors);

    // The value of KEY; empty where there is none, and where it is wrong, which is an error then.
    std::optional<bool> flag(const std::string& key);
    std::optional<unsigned> number(const std::string& key, unsigned min, unsigned max);
    std::optional<std::string> string(const std::string& key);  // not the empty one
    std::optional<std::string> word(const std::string& key, const std::vector<std::string_view>& words);
    // As text: a string, or a number as people would write it.
    std::optional<std::string> scalar(const std::string& key);
    // What PARSE makes of scalar(KEY); its error is what KEY must be.
    template <class T>
    std::optional<T> parsed(const std::string& key, Result<T> (*parse)(std::string_view));
    std::optional<TomlTable> table(const std::string& key);
    std::vector<TomlTable> tables(const std::string& key);  // [[KEY]]
    // [...], of strings and tables, 1 to 64
    std::optional<std::vector<TomlItem>> items(const std::string& key);

    // Every key that nobody asked for is an error.
    void reject_unknown_keys();

    [[nodiscard]] bool has(const std::string& key) const;
    // The keys that are there and were asked for.
    [[nodiscard]] std::vector<std::string> known_keys() const;
    [[nodiscard]] Place place() const;  // of the table's header
    [[nodiscard]] Place place_of(const std::string& key) const;
    // Up to a thousand in a file; then one more, which says so.
    void error(Place place, const std::string& message);
    // KEY, which is there, has a value that is not what MESSAGE says it must be.
    void refuse(const std::string& key, const std::string& message);

  private:
    // A value, which keeps the file's whole tree alive.
    using Node = std::shared_ptr<const TomlValue>;
    TomlTable(Node node, std::string name, const TomlTable& parent);
    TomlTable(Node node, const SourceText& text, PolicyErrors& errors);
    Node ask(const std::string& key);
    [[nodiscard]] Node part(const TomlValue& value) const { return {node_, &value}; }
    // Whether no more mistakes are told; the last one says so.
    [[nodiscard]] bool told_enough() const;
    [[nodiscard]] Place place_of(const TomlValue& value) const;
    void refuse(const TomlValue& value, const std::string& message);
    [[nodiscard]] std::string unknown(const std::string& key) const;

    Node node_;
    std::string name_;  // "[shard]", "[[workqueue]]"; empty at the top
    const SourceText* text_;
    PolicyErrors* errors_;
    std::set<std::string> asked_;
};

// One element of an array: a string, or a table.
struct TomlItem {
    Place place;
    std::string text;
    std::optional<TomlTable> table;
};

template <class T>
std::optional<T> TomlTable::parsed(const std::string& key, Result<T> (*parse)(std::string_view)) {
    const auto text = scalar(key);
    if (!text) return std::nullopt;
    const auto value = parse(*text);
    if (value) return *value;
    refuse(key, value.error().text);
    return std::nullopt;
}

// "; did you mean ...?", or nothing.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& words);
// The one of WORDS that is a slip of the keyboard away from WORD, or "".
std::string nearest_word(std::string_view word, const std::vector<std::string_view>& words);

}  // namespace wq
