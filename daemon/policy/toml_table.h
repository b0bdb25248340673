// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "policy/source_text.h"

namespace wq {

struct TomlItem;
struct TomlValue;

// One table of a TOML file, read strictly. The caller reads each key by its type. A mistake is added to the
// file's errors with its place. reject_unknown_keys() reports every key that was not read. The text and the
// errors must outlive all tables.
class TomlTable {
  public:
    // The root table of a file. Empty after a syntax error, which is then the only error.
    static std::optional<TomlTable> parse(const SourceText& text, PolicyErrors& errors);

    // The value of KEY; empty if there is none, or if it is invalid, which is then an error.
    std::optional<bool> flag(const std::string& key);
    std::optional<unsigned> number(const std::string& key, unsigned min, unsigned max);
    std::optional<std::string> string(const std::string& key);  // must not be empty
    std::optional<std::string> word(const std::string& key, const std::vector<std::string_view>& words);
    // As text: a string, or a number in its usual notation.
    std::optional<std::string> scalar(const std::string& key);
    // A TOML date, or a string that may be one, as text.
    std::optional<std::string> day(const std::string& key);
    // The result of PARSE for scalar(KEY). Its error text says what KEY must be.
    template <class T>
    std::optional<T> parsed(const std::string& key, Result<T> (*parse)(std::string_view));
    std::optional<TomlTable> table(const std::string& key);
    std::vector<TomlTable> tables(const std::string& key);  // [[KEY]]
    // [...] of strings and tables, LEAST to 64 elements
    std::optional<std::vector<TomlItem>> items(const std::string& key, std::size_t least = 1,
                                               bool may_be_tables = true);
    // A string that is not empty, at the place of KEY, or [...] of 1 to 64 of them.
    std::optional<std::vector<TomlItem>> texts(const std::string& key);

    // Reports an error for every key that was not read.
    void reject_unknown_keys();

    [[nodiscard]] bool has(const std::string& key) const;
    // The keys that exist and were read.
    [[nodiscard]] std::vector<std::string> known_keys() const;
    [[nodiscard]] Place place() const;  // of the table's header
    [[nodiscard]] Place place_of(const std::string& key) const;
    [[nodiscard]] Place place_of_value(const std::string& key) const;  // of KEY, which must exist
    // Adds an error. A file can have 1000 errors. One more then says that the others are not shown.
    void error(Place place, const std::string& message);
    // Adds an error: the value of KEY, which must exist, is not what MESSAGE says.
    void refuse(const std::string& key, const std::string& message);

  private:
    // A value. It keeps the file's whole tree alive.
    using Node = std::shared_ptr<const TomlValue>;
    TomlTable(Node node, std::string name, const TomlTable& parent);
    TomlTable(Node node, const SourceText& text, PolicyErrors& errors);
    Node ask(const std::string& key);
    [[nodiscard]] Node part(const TomlValue& value) const { return {node_, &value}; }
    // Whether the limit of errors is exceeded; the last error says so.
    [[nodiscard]] bool told_enough() const;
    [[nodiscard]] Place place_of(const TomlValue& value) const;
    void refuse(const TomlValue& value, const std::string& message);
    [[nodiscard]] std::string unknown(const std::string& key) const;

    Node node_;
    std::string name_;  // "[shard]", "[[workqueue]]"; empty for the root table
    const SourceText* text_;
    PolicyErrors* errors_;
    std::set<std::string> asked_;
};

// One element of an array: a string or a table.
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

// Returns "; did you mean ...?" or "".
std::string suggestion(std::string_view word, const std::vector<std::string_view>& words);
// Says that GIVEN, which is WORD where it is a string, is not one of WORDS.
std::string no_such_word(const std::string& what, const std::string& given, std::string_view word,
                         const std::vector<std::string_view>& words);
// The word of WORDS that WORD is probably a misspelling of, or "".
std::string nearest_word(std::string_view word, const std::vector<std::string_view>& words);

struct TomlValue;
struct TomlDate {
    std::string day;  // "2027-01-31"; "" for a time alone
    bool has_time = true;
};
using TomlArray = std::vector<TomlValue>;
using TomlMembers = std::map<std::string, std::unique_ptr<TomlValue>>;

// A value of a TOML text. Offsets are in bytes from the start of the text.
struct TomlValue {
    std::size_t offset = 0;      // its first byte; for a table with a header, the header
    std::size_t key_offset = 0;  // the last part of its key; 0 for an element of an array
    std::variant<bool, std::int64_t, double, std::string, TomlDate, TomlArray, TomlMembers> value{false};
};

}  // namespace wq
