// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "edge.h"

namespace wq::faults {

// The states that a disk may have after a power loss, given the calls so far. The model guarantees less than
// any file system in use:
// - The data of a file is durable after an fsync of the file. Data added after that may be lost as a whole,
//   be there by half, have its full length with zeros in the second half, or be there.
// - A name (made, renamed, removed) is durable after an fsync of its folder. Any subset of the name changes
//   after that may be there. A single rename is there as a whole or not at all.
// - Folders themselves are durable.
class Disk {
  public:
    using Files = std::map<std::string, std::string>;  // text by path

    void add(const Done& done);
    [[nodiscard]] std::set<Files> after_power_loss() const;
    // The content that a reader sees now.
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
