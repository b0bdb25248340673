// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/bpf_errors.h"

#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
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

// Bits as in linux/capability.h; none if they are not in STATUS.
std::uint64_t effective_capabilities(const std::string& status) {
    constexpr std::string_view kName = "\nCapEff:";
    const auto at = status.find(kName);
    return at == std::string::npos ? 0 : std::strtoull(status.c_str() + at + kName.size(), nullptr, 16);
}

}  // namespace

std::string denied_text(const std::string& status) {
    const std::uint64_t effective = effective_capabilities(status);
    const auto has = [&](unsigned capability) { return (effective >> capability & 1) != 0; };
    if (has(CAP_SYS_ADMIN) || (has(CAP_BPF) && has(CAP_PERFMON)))
        return "the kernel refuses this program (EPERM: no fentry, a user namespace, a security module, or "
               "seccomp)";
    const bool is_root = status.empty() || status.find("\nUid:\t0\t0\t") != std::string::npos;
    return std::string("BPF is denied (CAP_BPF and CAP_PERFMON are needed)") +
           (is_root ? "" : "; run it as root");
}

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
        return wq::fail(what + ": " + denied_text(read_file("/proc/self/status").value_or("")), code);
    auto error = fail_errno(what, code);
    if (!first_complaint.empty()) error.value().text += " (" + first_complaint + ")";
    return error;
}

}  // namespace wq
