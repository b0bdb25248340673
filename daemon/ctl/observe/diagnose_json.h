// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace wq::ctl {

// Text in paragraphs, wrapped at COLUMNS: a line, and indented lines below it.
class Paragraphs {
  public:
    explicit Paragraphs(std::size_t columns) : columns_(columns) {}

    // Begins a paragraph; an empty line precedes it, unless it is the first.
    void begin(const std::string& line) {
        if (!text_.empty()) text_ += '\n';
        add(line, 0);
    }
    void say(const std::string& line) { add(line, kIndent); }
    // Adds a line that is neither indented nor a new paragraph.
    void note(const std::string& line) { add(line, 0); }
    // Adds a command. It is not wrapped, so that the user can copy it.
    void command(const std::string& line) { text_ += std::string(kIndent + 2, ' ') + line + '\n'; }

    [[nodiscard]] bool empty() const { return text_.empty(); }
    std::string text() && { return std::move(text_); }

  private:
    static constexpr std::size_t kIndent = 4;
    void add(const std::string& text, std::size_t indent);

    std::size_t columns_;
    std::string text_;
};

}  // namespace wq::ctl
