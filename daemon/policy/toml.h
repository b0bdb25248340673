// SPDX-License-Identifier: LGPL-2.1-or-later
//
// toml11, version 3.7 (Debian 12) or 4.4 (Debian 13), and a strict reader of its values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <toml.hpp>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "policy/policy.h"

#if TOML11_VERSION_MAJOR >= 4
namespace wq {
struct TomlConfig : toml::type_config {};
using TomlValue = toml::basic_value<TomlConfig>;
}  // namespace wq

// After an error version 4 looks for more of them, and with a line such as `a = [[b]{[=` never ends. So the
// first error ends it.
template <>
class toml::detail::context<wq::TomlConfig> {
  public:
    explicit context(const spec& spec) : spec_(spec) {}
    spec& toml_spec() noexcept { return spec_; }
    [[nodiscard]] const spec& toml_spec() const noexcept { return spec_; }
    [[nodiscard]] bool has_error() const noexcept { return false; }
    [[nodiscard]] const std::vector<error_info>& errors() const noexcept { return errors_; }
    [[noreturn]] void report_error(const error_info& error) {
        throw syntax_error(format_error(error), {error});
    }
    error_info pop_last_error() { return errors_.back(); }  // never called

  private:
    spec spec_;
    std::vector<error_info> errors_;
};
#else
namespace wq {
// With `a = []` and `[a.b]` version 3.7 asks for the last element of an empty array. It reports an error if
// this is not a table.
template <class T, class... More>
struct TomlArray : std::vector<T, More...> {
    using std::vector<T, More...>::vector;
    T& back() {
        static T none;
        return this->empty() ? none : std::vector<T, More...>::back();
    }
};
using TomlValue = toml::basic_value<toml::discard_comments, std::unordered_map, TomlArray>;
}  // namespace wq
#endif

namespace wq {

inline constexpr std::size_t kMaxPolicyLine = 4096;
inline constexpr std::size_t kMaxMistakes = 1000;  // of a file; more are not told

// A file, and the mistakes that were found in it.
struct TomlFile {
    std::string path;
    std::string text;
    PolicyErrors errors = {};

    // Empty after a syntax error, which is then the only mistake. Rejects what TOML allows, but the library
    // does not survive: see find_flaw().
    std::optional<TomlValue> parse();
    // Line NUMBER, from 1, without its line end; empty if there is no such line.
    [[nodiscard]] std::string_view line(std::size_t number) const;
    [[nodiscard]] Origin origin(const TomlValue& value) const;
    [[nodiscard]] PolicyError error_at(const Origin& place, std::string message) const;
    void error(const TomlValue& value, std::string message);
};

// One table of a file, read strictly: each mistake is added to the file's, with the place of the value. VALUE
// and FILE must outlive it.
struct TomlTable {
    const TomlValue* value;
    TomlFile* file;
    std::string name = {};  // "[shard]", "[[workqueue]]"; empty for the root table

    [[nodiscard]] const TomlValue* find(const std::string& key) const;
    // The value of KEY, as READ returns it, a Result; empty if there is none, or after an error of READ,
    // which follows the key: "must be ..., not ...".
    template <class Read>
    auto get(const std::string& key, Read read) const {
        std::optional<typename std::invoke_result_t<Read, const TomlValue&>::value_type> out;
        const TomlValue* found = find(key);
        if (found == nullptr) return out;
        if (auto result = read(*found))
            out = std::move(*result);
        else
            file->error(*found, key + " " + result.error().text);
        return out;
    }
    [[nodiscard]] std::optional<TomlTable> table(const std::string& key) const;
    [[nodiscard]] std::vector<TomlTable> tables(const std::string& key, std::size_t most) const;  // [[KEY]]
    // The elements of the array KEY; of a value that is no array, itself.
    [[nodiscard]] std::vector<const TomlValue*> elements(const std::string& key, std::size_t least,
                                                         std::size_t most) const;
    // Adds an error for every key that is not one of KNOWN.
    void reject_unknown_keys(std::vector<std::string_view> known) const;
};

// An error for a reader: "MESSAGE, not the string \"x\"".
tl::unexpected<Error> refusal(const TomlValue& value, const std::string& message);

// For TomlTable::get().
Result<bool> read_flag(const TomlValue& value);
Result<std::string> read_text(const TomlValue& value);    // a string that is not empty
Result<std::string> read_scalar(const TomlValue& value);  // a string, or a number in its usual notation
Result<std::string> read_day(const TomlValue& value);     // a date, or a string that is one
Result<std::string> read_word(const TomlValue& value, const std::vector<std::string_view>& words);
// PARSE of read_scalar(). Its error says what the value must be.
template <class T>
auto read_parsed(Result<T> (*parse)(std::string_view)) {
    return [=](const TomlValue& value) -> Result<T> {
        const auto text = read_scalar(value);
        if (!text) return tl::unexpected(text.error());
        auto parsed = parse(*text);
        if (!parsed) return refusal(value, parsed.error().text);
        return parsed;
    };
}

}  // namespace wq
