// SPDX-License-Identifier: LGPL-2.1-or-later
//
// baseline.json: a file that is accepted is written back unchanged, a refused file is left alone.
#include "owned/baseline.h"

#include <string>

#include "fuzz.h"

using wq::BaselineEntry;
using wq::BaselineStore;
using wq::fuzz::folder;
using wq::fuzz::require;

static constexpr const char* kFile = "baseline.json";

static BaselineEntry entry_of(const std::string& name) {
    BaselineEntry entry;
    entry.name = name;
    entry.scope = "cache";
    return entry;
}

static void check_refused(BaselineStore& store, const wq::Error& error, std::string_view text) {
    require(error.text.starts_with(folder().path(kFile) + ": "), "what is refused names the file");
    require(store.entries().empty(), "a refused file leaves the store empty");
    store.put(entry_of("kcryptd"));
    require(!store.save() && folder().read(kFile) == text, "what is refused is not replaced");
}

FUZZ_TARGET(baseline) {
    folder().write(kFile, std::string(text));
    BaselineStore store(folder().path(kFile));
    if (const auto loaded = store.load(); !loaded) return check_refused(store, loaded.error(), text);

    const auto entries = store.entries();
    for (const auto& [name, entry] : entries) {
        require(name == entry.name && *store.find(name) == entry, "entries are found by name");
        require(entry.holder == wq::Holder::pin || entry.pinned.empty(), "a pin alone names a scope");
    }
    // A store writes only if something changed.
    const std::string other = entries.empty() ? "x" : entries.rbegin()->first + "x";
    store.put(entry_of(other));
    require(store.save().has_value(), "what was read can be written");
    store.remove(other);
    require(store.save().has_value(), "what was read can be written");
    BaselineStore later(folder().path(kFile));
    require(later.load() && later.entries() == entries, "a store that is read is written back to the same");
}
