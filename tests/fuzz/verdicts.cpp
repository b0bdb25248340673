// SPDX-License-Identifier: LGPL-2.1-or-later
//
// verdicts.log: lines that are accepted are written back unchanged, a torn last one is ignored, a refused
// file is set aside.
#include "evidence/verdicts.h"

#include <string>

#include "fuzz.h"
#include "records.h"

using wq::VerdictRecord;
using wq::VerdictStore;
using wq::fuzz::folder;
using wq::fuzz::require;
using wq::fuzz::require_same;

static constexpr const char* kFile = "verdicts.log";

static void check_refused(VerdictStore& store, const wq::Error& error, std::string_view text) {
    require(error.text.starts_with(folder().path(kFile) + ": "), "what is refused names the file");
    require(store.records().empty(), "a refused file leaves the store empty");
    require(!folder().exists(kFile) && folder().read(std::string(kFile) + ".broken") == text,
            "what is refused is set aside");
}

FUZZ_TARGET(verdicts) {
    folder().write(kFile, std::string(text));
    VerdictStore store(folder().path(kFile));
    if (const auto read = store.read(); !read) {
        VerdictStore daemon(folder().path(kFile));
        const auto loaded = daemon.load();
        require(!loaded, "who reads and who loads agree");
        return check_refused(daemon, loaded.error(), text);
    }
    for (const VerdictRecord& record : store.records()) {
        const auto* latest = store.latest(record.key);
        require(!record.judged || latest != nullptr, "a verdict is found by its key");
        require(!wq::text_of(record).empty(), "a verdict can be told");
    }
    folder().remove(kFile);
    VerdictStore copy(folder().path(kFile));
    for (const VerdictRecord& record : store.records()) wq::fuzz::keep(copy, record);
    VerdictStore later(folder().path(kFile));
    require(later.read().has_value(), "what was written can be read");
    require(later.records().size() == store.records().size(), "with all its records");
    for (std::size_t i = 0; i < store.records().size(); i++)
        require_same(store.records()[i], later.records()[i]);
}
