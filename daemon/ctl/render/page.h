// SPDX-License-Identifier: LGPL-2.1-or-later
// What commands show, as text or as HTML, what the page of `report` draws, and the page around it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ctl/render/terminal.h"
#include "evidence/comparison.h"
#include "machine/isolation.h"
#include "machine/kernel_info.h"
#include "machine/topology.h"

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

// The effect of each pair as a figure: PERCENT of the cost, above zero is worse; with the median and its
// interval. Values above 1000% are drawn at the edge.
std::string effects_html(const std::string& caption, const std::vector<double>& percent,
                         const Effect& effect);

struct DrawnMachine {
    const Topology& topology;
    const KernelInfo& kernel;
    unsigned shard_size = 8;  // cores
    const Isolation& isolation;
};
// Packages, LLCs, shards, cores, threads. A core is one element in each of its LLCs (one,
// but on powerpc), with the attribute data-core, its lowest CPU. With more than 64 CPUs the drawing is
// folded.
std::string machine_html(const DrawnMachine& machine);

}  // namespace wq::ctl
