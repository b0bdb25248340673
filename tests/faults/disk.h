// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "edge.h"

namespace wq::faults {

// What a disk may hold after a power loss, for what was done to it so far. The model is weaker than any file
// system in use:
// - The data of a file is durable from an fsync of it on. What was written after that may be lost as a whole,
// be
//   there in half, have its length and zeros for its second half, or be there.
// - A name (made, renamed, removed) is durable from an fsync of its folder on. Of the changes of names since
// then
//   any subset may be there. One rename is there as a whole or not at all.
// - Folders themselves are durable.
class Disk {
  public:
    using Files = std::map<std::string, std::string>;  // text by path

    void add(const Done& done);
    [[nodiscard]] std::set<Files> after_power_loss() const;
    // What is read now.
    [[nodiscard]] Files now() const;

  private:
    struct Inode {
        std::string durable;
        std::string text;
    };
    using InodePtr = std::shared_ptr<Inode>;
    using Names = std::map<std::string, InodePtr>;
    struct Change {  // of names
        std::string removed, made;
        InodePtr inode;
    };
    void change(const Change& change);
    static void apply(Names& names, const Change& change);

    Names names_;
    Names durable_;
    std::vector<Change> pending_;
};

}  // namespace wq::faults
