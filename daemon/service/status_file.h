// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "kernel/paths.h"

namespace wq {

// /run/wq-tuned/status.json: what the daemon knows, for everybody. It names the process that wrote it, so
// that it is not believed after that process has ended.

// The text of the file: DOCUMENT (status.h) of this process.
std::string status_text(nlohmann::json document);

// Returns the document of the daemon that runs now. Error: ESRCH if none runs; the text says why the file is
// not believed, "" if there is none or the restorer has replaced it.
Result<nlohmann::json> read_status(const Paths& paths);

// DOCUMENT has "daemon" with a state, and targets with names. The type of nothing else is checked.
bool is_status(const nlohmann::json& document);

}  // namespace wq
