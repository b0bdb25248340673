// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>

#include "bpf/work_profile.h"

namespace wq {

// A profile with BPF (Linux 6.6 or later, with BTF). It needs CAP_BPF and CAP_PERFMON. In a build without
// BPF, attach() returns an error.
std::unique_ptr<WorkProfile> make_bpf_profile();

}  // namespace wq
