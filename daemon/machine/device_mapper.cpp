// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/device_mapper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace wq {
namespace {

void copy_text(char* to, std::size_t room, const std::string& text) {
    std::memcpy(to, text.c_str(), std::min(text.size(), room - 1));
}

struct BypassOption {
    const char* name;
    bool CryptBypass::*set;
};
constexpr std::array kBypassOptions{BypassOption{"no_read_workqueue", &CryptBypass::reads},
                                    BypassOption{"no_write_workqueue", &CryptBypass::writes},
                                    BypassOption{"submit_from_crypt_cpus", &CryptBypass::submit}};

}  // namespace

MapperRequest::MapperRequest(const std::string& uuid)
    : words_((sizeof(dm_ioctl) + kRoom) / sizeof(std::uint64_t)) {
    dm_ioctl& h = head();
    h.version[0] = DM_VERSION_MAJOR;
    h.data_size = static_cast<std::uint32_t>(words_.size() * sizeof(std::uint64_t));
    h.data_start = sizeof(dm_ioctl);
    copy_text(h.uuid, sizeof h.uuid, uuid);
}

MapperRequest::~MapperRequest() {
    ::explicit_bzero(words_.data(), words_.size() * sizeof(std::uint64_t));
}

void MapperRequest::set_name(const std::string& name) {
    copy_text(head().name, sizeof head().name, name);
}

void MapperRequest::set_target(std::uint64_t sectors, const std::string& type,
                               const std::string& parameters) {
    head().target_count = 1;
    char* const at = reinterpret_cast<char*>(words_.data()) + sizeof(dm_ioctl);
    auto& spec = *reinterpret_cast<dm_target_spec*>(at);
    spec.length = sectors;
    copy_text(spec.target_type, sizeof spec.target_type, type);
    copy_text(at + sizeof spec, kRoom - sizeof spec, parameters);
}

Status MapperRequest::call(const Fd& fd, unsigned long what, const char* doing) {
    int r = 0;
    do r = ::ioctl(fd.get(), what, &head());
    while (r != 0 && errno == EINTR);
    return r == 0 ? Status{} : fail_errno(std::string("device mapper: ") + doing, errno);
}

// `next` counts from the beginning of the answer. One that did not fit ends with what did.
std::vector<std::string> MapperRequest::targets(const std::string& type) {
    std::vector<std::string> out;
    const char* const all = reinterpret_cast<const char*>(words_.data());
    const std::size_t end = sizeof(dm_ioctl) + kRoom;
    std::size_t at = head().data_start;
    for (std::uint32_t i = 0; i < head().target_count && at + sizeof(dm_target_spec) < end; i++) {
        dm_target_spec spec;
        std::memcpy(&spec, all + at, sizeof spec);
        const char* const text = all + at + sizeof spec;
        if (std::string_view(spec.target_type, ::strnlen(spec.target_type, sizeof spec.target_type)) == type)
            out.emplace_back(text, ::strnlen(text, end - at - sizeof spec));
        if (head().data_start + std::size_t{spec.next} <= at) break;
        at = head().data_start + std::size_t{spec.next};
    }
    return out;
}

Result<Fd> open_mapper(const std::string& root) {
    const std::string path = root + "/dev/" DM_DIR "/" DM_CONTROL_NODE;
    Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd) return fail_errno(path, errno);
    return fd;
}

std::vector<std::string> CryptBypass::options() const {
    std::vector<std::string> out;
    for (const BypassOption& option : kBypassOptions)
        if (this->*option.set) out.emplace_back(option.name);
    return out;
}

std::string CryptBypass::text() const {
    std::string out;
    if (reads && writes)
        out = "reads and writes bypass this workqueue: no scope affects them";
    else if (reads)
        out = "reads bypass this workqueue: no scope affects them, only writes";
    else if (writes)
        out = "writes bypass this workqueue: no scope affects them, only reads";
    if (submit && !writes)
        out +=
            std::string(out.empty() ? "" : "; ") +
            "the kworker that encrypted a write also sends it, so a scope says from which CPUs writes come";
    return out.empty() ? out : fmt::format("{} ({})", out, fmt::join(options(), ", "));
}

std::string crypt_device_of(std::string_view workqueue) {
    constexpr std::string_view kPrefix = "kcryptd-";
    const auto end = workqueue.rfind('-');
    if (!workqueue.starts_with(kPrefix) || end < kPrefix.size()) return "";
    const std::string_view number = workqueue.substr(kPrefix.size(), end - kPrefix.size());
    return number.find(':') == std::string_view::npos ? "" : std::string(number);
}

CryptBypass bypass_in(std::string_view target) {
    CryptBypass out;
    for (const BypassOption& option : kBypassOptions)
        out.*option.set = target.find(fmt::format(",{}=y", option.name)) != std::string_view::npos;
    return out;
}

Result<CryptBypass> read_crypt_bypass(const Paths& paths, const std::string& device) {
    unsigned major = 0;
    unsigned minor = 0;
    if (std::sscanf(device.c_str(), "%u:%u", &major, &minor) != 2)
        return fail(device + ": not the number of a device", EINVAL);
    const auto mapper = open_mapper(paths.root);
    if (!mapper) return tl::unexpected(mapper.error());
    MapperRequest request("");
    request.head().dev = ::makedev(major, minor);
    request.head().flags = DM_IMA_MEASUREMENT_FLAG;
    if (auto done = request.call(*mapper, DM_TABLE_STATUS, "reading a table"); !done)
        return tl::unexpected(done.error());
    CryptBypass out;
    for (const std::string& target : request.targets("crypt")) {
        const CryptBypass one = bypass_in(target);
        for (const BypassOption& option : kBypassOptions) out.*option.set |= one.*option.set;
    }
    return out;
}

}  // namespace wq
