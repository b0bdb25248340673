// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "owned/owned.h"
#include "targets/target.h"

namespace wq {

// Who holds TARGET now. ENTRY: its baseline, or nullptr.
Holder holder_of(const Target& target, const Owned* entry);
// Whether the strictness of ENTRY may be ours. ENTRY: or nullptr.
bool owns_strict(const Owned* entry);
// Whether the files of ITEM hold something of ours, as of the last look.
bool holds_ours(const Managed& item, const Owned* entry);
// TARGET with the values of its baseline. Plans are made from this, so that our own writes do not influence
// them.
Workqueue as_before_us(const Target& target, const Owned* entry);

// Who holds which target: the baseline entries with their claims and orders, and what external writers wrote.
class Ownership {
  public:
    // STORE has been loaded, and nobody else changes it meanwhile.
    explicit Ownership(OwnedStore& store) : store_(store) {}

    // nullptr: we have written nothing to the target, and no order or external writer is known.
    [[nodiscard]] Owned* entry(const std::string& name) { return store_.find(name); }
    [[nodiscard]] const Owned* entry(const std::string& name) const { return store_.find(name); }
    [[nodiscard]] Owned* entry(const Managed& item) { return store_.find(item.name(), item.file()); }
    // The entry of ITEM. Creates it if there is none, with the current values as the baseline.
    Owned& entry_for(const Managed& item);
    void forget(const std::string& name) { store_.remove(name); }
    void forget(const Managed& item) { store_.remove(item.name(), item.file()); }
    [[nodiscard]] const OwnedStore& store() const { return store_; }
    Status save() { return store_.save(); }

    [[nodiscard]] Holder holder_of(const Target& target) const {
        return wq::holder_of(target, entry(target.now.name));
    }
    [[nodiscard]] bool holds_ours(const Managed& item) const {
        return wq::holds_ours(item, store_.find(item.name(), item.file()));
    }
    [[nodiscard]] Workqueue as_before_us(const Target& target) const {
        return wq::as_before_us(target, entry(target.now.name));
    }

    // Call after ITEM was read. STRICT: its strictness; empty if it was not read. Reduces the claim to what
    // is in place. Returns what an external writer wrote, as plain(), if that is new.
    std::optional<std::string> notice(Managed& item, std::optional<bool> strict);
    // Leaves ITEM to the external writer who wrote TEXT, until a reload. No restore and no restart treats
    // TEXT as ours again, even if it was. If the other one of word and strictness is ours, it is still put
    // back at the end.
    void leave_to_writer(Managed& item, const std::string& text);
    // Returns @default to its baseline until a reload or a boot. WHY is shown.
    void stay_at_baseline(Target& target, const std::string& why);
    // Call after a reload: forgets external writers, ends orders to revert, and allows to set again what
    // others put back.
    void start_over(Knob file = Knob::scope);
    // Call when the daemon ends and settings are kept. Ends the orders. What should have been put back, but
    // could not be, is marked for the restorer. Saves.
    Status keep();

  private:
    std::optional<std::string> notice_change(const Managed& item, const Values& now);
    OwnedStore& store_;
};

}  // namespace wq
