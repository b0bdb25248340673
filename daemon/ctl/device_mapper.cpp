// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/device_mapper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace wq {
namespace {

void copy_text(char* to, std::size_t room, const std::string& text) {
    std::memcpy(to, text.c_str(), std::min(text.size(), room - 1));
}

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

std::string_view MapperRequest::answer() const {
    return {reinterpret_cast<const char*>(words_.data()) + sizeof(dm_ioctl), kRoom};
}

Result<Fd> open_mapper(const std::string& root) {
    const std::string path = root + "/dev/" DM_DIR "/" DM_CONTROL_NODE;
    Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd) return fail_errno(path, errno);
    return fd;
}

std::vector<std::string> CryptBypass::options() const {
    std::vector<std::string> out;
    if (reads) out.emplace_back("no_read_workqueue");
    if (writes) out.emplace_back("no_write_workqueue");
    if (submit) out.emplace_back("submit_from_crypt_cpus");
    return out;
}

std::string CryptBypass::text() const {
    std::string out;
    if (reads && writes)
        out = "reads and writes bypass this workqueue: no scope affects them";
    else if (reads || writes)
        out = fmt::format("{} bypass this workqueue: no scope affects them, only {}",
                          reads ? "reads" : "writes", reads ? "writes" : "reads");
    if (submit && !writes)
        out += fmt::format(
            "{}the kworker that encrypted a write also sends it, so a scope says from which "
            "CPUs writes come",
            out.empty() ? "" : "; ");
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
    const auto is_set = [&](std::string_view option) {
        return target.find(option) != std::string_view::npos;
    };
    return {is_set(",no_read_workqueue=y"), is_set(",no_write_workqueue=y"),
            is_set(",submit_from_crypt_cpus=y")};
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
    return bypass_in(request.answer());
}

}  // namespace wq
