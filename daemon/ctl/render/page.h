// SPDX-License-Identifier: LGPL-2.1-or-later
// What commands show, as text or as HTML, and the page for a browser around it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ctl/render/terminal.h"

namespace wq::ctl {

// Escapes TEXT for an HTML element or a quoted attribute. TEXT is not trusted: control characters and bytes
// that are not UTF-8 become '?'.
std::string escape(std::string_view text);

// Paragraphs and tables, for a terminal or a page.
class Shown {
  public:
    // "" is an empty line on a terminal, and nothing on a page.
    void add(std::string paragraph) { parts_.emplace_back(std::move(paragraph)); }
    void add(Table table) { parts_.emplace_back(std::move(table)); }
    [[nodiscard]] std::string text() const;
    [[nodiscard]] std::string html() const;

  private:
    std::vector<std::variant<std::string, Table>> parts_;
};

// A part of a page. HTML is inserted unchanged.
std::string section(std::string_view title, std::string_view html);
// The complete page of the sections BODY, with HEAD below its title. It loads nothing, and forbids it with a
// Content-Security-Policy.
std::string page(std::string_view title, std::string_view head, std::string_view body);

}  // namespace wq::ctl
