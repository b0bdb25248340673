// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/bpf_errors.h"

#include <bpf/libbpf.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/file.h"

namespace wq {
namespace {

std::string first_complaint;

int keep_first(libbpf_print_level level, const char* format, va_list arguments) {
    char text[256];
    if (level != LIBBPF_WARN || !first_complaint.empty()) return 0;
    std::vsnprintf(text, sizeof(text), format, arguments);
    std::string_view line = text;
    line = line.substr(0, line.find('\n'));
    if (line.starts_with("libbpf: ")) line.remove_prefix(8);
    first_complaint = line;
    return 0;
}

// Lockdown removes the helpers that read kernel memory, and the verifier then only returns EINVAL.
bool locked_down() {
    const auto text = read_file("/sys/kernel/security/lockdown");
    return text && text->find("[confidentiality]") != std::string::npos;
}

}  // namespace

BpfErrors::BpfErrors() {
    first_complaint.clear();
    libbpf_set_print(keep_first);
}

tl::unexpected<Error> BpfErrors::fail(const std::string& what, int code) const {
    code = std::abs(code);
    if (::access("/sys/kernel/btf/vmlinux", R_OK) != 0)
        return fail_errno("this kernel has no readable BTF (/sys/kernel/btf/vmlinux)", errno);
    if ((code == EPERM || code == EINVAL) && locked_down())
        return wq::fail(what + ": kernel lockdown (confidentiality) does not let BPF read kernel memory",
                        code);
    if (code == EPERM)
        return wq::fail(what + ": BPF is denied (CAP_BPF and CAP_PERFMON are needed)" +
                            (::geteuid() == 0 ? "" : "; run it as root"),
                        code);
    auto error = fail_errno(what, code);
    if (!first_complaint.empty()) error.value().text += " (" + first_complaint + ")";
    return error;
}

}  // namespace wq
