// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/bpf_masks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <cstdlib>

#include "base/file.h"
#include "machine/bpf_errors.h"
#include "machine/paths.h"

namespace wq {

Result<MaskLayout> read_mask_layout() {
    const Paths paths;
    const auto text = read_file(paths.cpus() + "/possible");
    if (!text) return tl::unexpected(text.error());
    const auto possible = CpuSet::parse_list(*text);
    if (!possible) return tl::unexpected(possible.error().in(paths.cpus() + "/possible"));
    if (possible->empty()) return fail(paths.cpus() + "/possible names no CPU");

    MaskLayout out{*possible};
    out.nr_cpus = possible->cpus().back() + 1;
    out.mask_bytes = (out.nr_cpus + 63) / 64 * 8;
    return out;
}

CpuSet cpus_of_mask(const __u64* mask, std::uint32_t mask_bytes) {
    CpuSet out;
    for (unsigned cpu = 0; cpu < mask_bytes * 8; cpu++)
        if (mask[cpu / 64] >> (cpu % 64) & 1) out.add(cpu);
    return out;
}

Status run_once(const bpf_program* program, const std::string& what) {
    LIBBPF_OPTS(bpf_test_run_opts, options);
    const BpfErrors errors;
    if (int code = bpf_prog_test_run_opts(bpf_program__fd(program), &options)) return errors.fail(what, code);
    const int code = std::abs(static_cast<int>(options.retval));
    if (code == EPERM)
        return fail(what + ": kallsyms is hidden (CAP_SYSLOG is needed, and kernel.kptr_restrict below 2)",
                    code);
    if (code == ENOENT)
        return fail(what + ": kallsyms lacks the kernel's variables (CONFIG_KALLSYMS_ALL)", code);
    if (code != 0) return fail_errno(what, code);
    return {};
}

}  // namespace wq
