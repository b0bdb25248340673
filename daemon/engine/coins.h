// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "evidence/comparison.h"

namespace wq {

// The coins of the slot in progress, in /run before its first write: where the daemon is killed in it, the
// next one finds which arm ran, and counts the window against it.
struct Coins {
    struct Member {
        std::string target;
        std::string comparison;        // LedgerKey::text()
        bool candidate_first = false;  // what the coin chose
    };
    std::vector<Member> members;
    std::optional<unsigned> running;  // the window whose arms are in place, or are being put there: 0 or 1

    // The side whose arm is in place for MEMBER.
    [[nodiscard]] Side side_of(const Member& member) const;
    [[nodiscard]] std::string text() const;
    static Result<Coins> from_text(std::string_view text);
};

// Replaces the file, on disk when it returns. PATH is in /run, a tmpfs, as the baseline is: no disk is waited
// for.
Status keep_coins(const std::string& path, const Coins& coins);
// The coins of a slot that was cut off, where there was one; they are gone from PATH then, so that they count
// once. Error: a file that cannot be read or understood, which is gone as well.
Result<std::optional<Coins>> take_coins(const std::string& path);
void forget_coins(const std::string& path);

}  // namespace wq
