// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace wq::ctl {

// The text of --help, as wide as the terminal.
class HelpText : public CLI::Formatter {
  public:
    std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace wq::ctl
