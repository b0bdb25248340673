// SPDX-License-Identifier: LGPL-2.1-or-later
//
// toml11, and what differs between its version 3.7 (Debian 12) and 4 (Debian 13). For toml_table.cpp alone.
#pragma once

#include <sstream>
#include <string>
#include <toml.hpp>

#include "policy/source_text.h"

#ifdef TOML11_VERSION_MAJOR
#define WQ_TOML11 TOML11_VERSION_MAJOR
#else
#define WQ_TOML11 3
#endif

#if WQ_TOML11 >= 4
namespace wq {
struct TomlConfig : toml::type_config {};
}  // namespace wq

// After a syntax error version 4 walks on, partly backwards, to find more of them, and with a line such as
// `a = [[b]{[=` never ends. One error is enough: so the first one throws.
template <>
class toml::detail::context<wq::TomlConfig> {
  public:
    explicit context(const spec& spec) : spec_(spec) {}
    spec& toml_spec() noexcept { return spec_; }
    [[nodiscard]] const spec& toml_spec() const noexcept { return spec_; }
    [[nodiscard]] bool has_error() const noexcept { return !errors_.empty(); }
    [[nodiscard]] const std::vector<error_info>& errors() const noexcept { return errors_; }
    [[noreturn]] void report_error(const error_info& error) {
        throw syntax_error(format_error(error), {error});
    }
    error_info pop_last_error() { return errors_.back(); }  // never called: there are none

  private:
    spec spec_;
    std::vector<error_info> errors_;
};
#endif

namespace wq {

#if WQ_TOML11 >= 4
using TomlValue = toml::basic_value<TomlConfig>;

inline TomlValue parse_toml(const std::string& text) {
    std::istringstream stream(text);
    return toml::parse<TomlConfig>(stream, "policy");
}

inline Place place_of_value(const TomlValue& value) {
    const auto at = value.location();
    return {static_cast<unsigned>(at.first_line_number()), static_cast<unsigned>(at.first_column_number())};
}
#else
using TomlValue = toml::value;

inline TomlValue parse_toml(const std::string& text) {
    std::istringstream stream(text);
    return toml::parse(stream, "policy");
}

inline Place place_of_value(const TomlValue& value) {
    const auto at = value.location();
    return {static_cast<unsigned>(at.line()), static_cast<unsigned>(at.column())};
}
#endif

}  // namespace wq
