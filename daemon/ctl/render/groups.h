// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace wq::ctl {

// Rows of a table that differ only in their names share one. In the order in which each first came.
template <class Cells>
class Groups {
  public:
    struct Group {
        Cells cells;
        std::vector<std::string> names;
    };
    void add(std::string name, Cells cells) {
        const auto [place, is_new] = place_of_.emplace(std::move(cells), groups_.size());
        if (is_new) groups_.push_back({place->first, {}});
        groups_[place->second].names.push_back(std::move(name));
    }
    [[nodiscard]] std::vector<Group>& groups() { return groups_; }

  private:
    std::vector<Group> groups_;
    std::map<Cells, std::size_t> place_of_;
};

}  // namespace wq::ctl
