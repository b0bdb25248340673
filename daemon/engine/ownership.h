// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "engine/baseline.h"
#include "engine/target.h"

namespace wq {

// Who holds TARGET now. ENTRY: its baseline, or nullptr.
Holder holder_of(const Target& target, const BaselineEntry* entry);
// Whether the files of TARGET, as it was last looked at, hold something of ours.
bool holds_ours(const Target& target, const BaselineEntry* entry);
// The target as it would be without us. Plans are made from this, so that what we did does not argue for
// itself.
Workqueue as_before_us(const Target& target, const BaselineEntry* entry);

// Who holds which target: the baseline entries with their claims and orders, and what external writers wrote.
class Ownership {
  public:
    // STORE is loaded, and nobody else changes it meanwhile.
    explicit Ownership(BaselineStore& store) : store_(store) {}

    // nullptr: we have no hand in the target.
    [[nodiscard]] BaselineEntry* entry(const std::string& name) { return store_.find(name); }
    [[nodiscard]] const BaselineEntry* entry(const std::string& name) const { return store_.find(name); }
    // The entry of TARGET. A new one says that all it holds is the baseline.
    BaselineEntry& entry_for(const Workqueue& target);
    void forget(const std::string& name) { store_.remove(name); }
    [[nodiscard]] const BaselineStore& store() const { return store_; }
    Status save() { return store_.save(); }

    [[nodiscard]] Holder holder_of(const Target& target) const {
        return wq::holder_of(target, entry(target.now.name));
    }
    [[nodiscard]] bool holds_ours(const Target& target) const {
        return wq::holds_ours(target, entry(target.now.name));
    }
    [[nodiscard]] Workqueue as_before_us(const Target& target) const {
        return wq::as_before_us(target, entry(target.now.name));
    }

    // TARGET was read, its strictness as STRICT (empty: not this time). The claim narrows to what is there.
    // Returns what an external writer wrote, if that is news.
    std::optional<std::string> notice(Target& target, std::optional<bool> strict);
    // TARGET is the external writer's of TEXT until a reload. No restore and no restart takes TEXT for ours
    // again, even if it was; the other one of word and strictness still goes back in the end, if it is ours.
    void leave_to_writer(Target& target, const std::string& text);
    // A reload: external writers are forgotten, orders to revert end, and what others put back is ours to set
    // again.
    void start_over();
    // The daemon ends, and settings are kept. Orders end; what was to go back, and could not, is marked for
    // the restorer. Saves.
    Status keep();

  private:
    [[nodiscard]] bool minds(const Target& target, bool strict) const;
    [[nodiscard]] std::optional<std::string> notice_change(const Target& target);
    BaselineStore& store_;
};

}  // namespace wq
