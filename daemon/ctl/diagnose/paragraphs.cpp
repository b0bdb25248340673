// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/diagnose/paragraphs.h"

#include "ctl/render/terminal.h"

namespace wq::ctl {

void Paragraphs::add(const std::string& text, std::size_t indent) {
    const std::size_t width = columns_ > indent + 20 ? columns_ - indent : 20;
    for (const auto& line : wrap(text, width)) text_ += std::string(indent, ' ') + line + '\n';
}

}  // namespace wq::ctl
