// SPDX-License-Identifier: LGPL-2.1-or-later
//
// owned.json and lab.json: a file that is accepted is written back unchanged, a refused file is left alone.
#include "owned/owned.h"

#include <string>

#include "fuzz.h"

using wq::Knob;
using wq::OwnedStore;
using wq::fuzz::folder;
using wq::fuzz::require;

static constexpr const char* kFile = "owned.json";

static void check_refused(OwnedStore& store, const wq::Error& error, std::string_view text) {
    require(error.text.starts_with(folder().path(kFile) + ": "), "what is refused names the file");
    require(store.entries().empty(), "a refused file leaves the store empty");
    store.put({"kcryptd", 0, {Knob::scope, "cache"}});
    require(!store.save() && folder().read(kFile) == text, "what is refused is not replaced");
}

static void check_store(std::string_view text, OwnedStore::Of of) {
    folder().write(kFile, std::string(text));
    OwnedStore store(folder().path(kFile), of);
    if (const auto loaded = store.load(); !loaded) return check_refused(store, loaded.error(), text);

    const auto entries = store.entries();
    const auto masks = store.entries(Knob::mask);
    for (const Knob file : {Knob::scope, Knob::mask})
        for (const auto& [name, entry] : store.entries(file))
            require(name == entry.name && *store.find(name, file) == entry, "entries are found by name");
    // A store writes only if something changed.
    const std::string other = entries.empty() ? "x" : entries.rbegin()->first + "x";
    store.put({other, 0, {Knob::scope, "cache"}});
    require(store.save().has_value(), "what was read can be written");
    store.remove(other);
    require(store.save().has_value(), "what was read can be written");
    OwnedStore later(folder().path(kFile), of);
    require(later.load() && later.entries() == entries && later.entries(Knob::mask) == masks,
            "a store that is read is written back to the same");
}

FUZZ_TARGET(owned) {
    check_store(text, OwnedStore::Of::daemon);
    check_store(text, OwnedStore::Of::lab);
}
