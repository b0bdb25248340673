// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "evidence/comparison.h"

namespace wq {

// The coins of the slot in progress. They are in /run before the slot's first write. If the daemon is killed
// during the slot, the next one reads which arm ran, and counts the window against that arm.
struct Coins {
    struct Member {
        std::string target;
        std::string comparison;        // LedgerKey::text()
        bool candidate_first = false;  // what the coin chose
    };
    std::vector<Member> members;
    std::optional<unsigned> running;  // the window whose arms are in place or being written: 0 or 1

    // The side whose arm is in place for MEMBER.
    [[nodiscard]] Side side_of(const Member& member) const;
    [[nodiscard]] std::string text() const;
    static Result<Coins> from_text(std::string_view text);
};

// Replaces the file with fsync. PATH is in /run (a tmpfs), like the baseline, so it does not wait for a disk.
Status keep_coins(const std::string& path, const Coins& coins);
// Reads the coins of a slot that was cut off, if there was one, and removes PATH, so that they count only
// once. Error: the file cannot be read or parsed; it is removed then, too.
Result<std::optional<Coins>> take_coins(const std::string& path);
void forget_coins(const std::string& path);

}  // namespace wq
