// SPDX-License-Identifier: LGPL-2.1-or-later
//
// verdicts.json: a file that is accepted is written back unchanged, a refused file is set aside.
#include "evidence/verdicts.h"

#include <string>

#include "fuzz.h"
#include "records.h"

using wq::VerdictRecord;
using wq::VerdictStore;
using wq::fuzz::folder;
using wq::fuzz::require;
using wq::fuzz::require_same;

static constexpr const char* kFile = "verdicts.json";

static void check_refused(VerdictStore& store, const wq::Error& error, std::string_view text) {
    require(error.text.starts_with(folder().path(kFile) + ": "), "what is refused names the file");
    require(store.records().empty(), "a refused file leaves the store empty");
    require(!folder().exists(kFile) && folder().read(std::string(kFile) + ".broken") == text,
            "what is refused is set aside");
}

FUZZ_TARGET(verdicts) {
    folder().write(kFile, std::string(text));
    VerdictStore store(folder().path(kFile));
    if (const auto loaded = store.load(); !loaded) return check_refused(store, loaded.error(), text);

    for (const VerdictRecord& record : store.records()) {
        const auto* latest = store.latest(record.key);
        require(!record.judged || latest != nullptr, "a verdict is found by its key");
        require(!wq::text_of(record).empty(), "a verdict can be told");
    }
    require(store.save().has_value(), "what was read can be written");
    VerdictStore later(folder().path(kFile));
    require(later.read().has_value(), "what was written can be read");
    require(later.records().size() == store.records().size(), "with all its records");
    for (std::size_t i = 0; i < store.records().size(); i++)
        require_same(store.records()[i], later.records()[i]);
}
