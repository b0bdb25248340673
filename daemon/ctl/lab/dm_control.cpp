// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/dm_control.h"

#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

namespace wq::bench {
namespace {

// The argument of an ioctl: struct dm_ioctl and the data after it.
class Request {
  public:
    static constexpr std::size_t kRoom = 4096;  // bytes, for a target and its parameters, or for an answer

    explicit Request(const std::string& uuid) : words_((sizeof(dm_ioctl) + kRoom) / sizeof(std::uint64_t)) {
        dm_ioctl& h = head();
        h.version[0] = DM_VERSION_MAJOR;
        h.data_size = static_cast<std::uint32_t>(words_.size() * sizeof(std::uint64_t));
        h.data_start = sizeof(dm_ioctl);
        copy(h.uuid, sizeof h.uuid, uuid);
    }
    ~Request() { ::explicit_bzero(words_.data(), words_.size() * sizeof(std::uint64_t)); }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

    dm_ioctl& head() { return *reinterpret_cast<dm_ioctl*>(words_.data()); }
    void set_name(const std::string& name) { copy(head().name, sizeof head().name, name); }
    void set_target(std::uint64_t sectors, const std::string& type, const std::string& parameters) {
        head().target_count = 1;
        char* const at = reinterpret_cast<char*>(words_.data()) + sizeof(dm_ioctl);
        auto& spec = *reinterpret_cast<dm_target_spec*>(at);
        spec.length = sectors;
        copy(spec.target_type, sizeof spec.target_type, type);
        copy(at + sizeof spec, kRoom - sizeof spec, parameters);
    }

  private:
    static void copy(char* to, std::size_t room, const std::string& text) {
        std::memcpy(to, text.c_str(), std::min(text.size(), room - 1));
    }
    std::vector<std::uint64_t> words_;  // 64-bit words, to align the structures
};

// Returns 0 or an errno.
int call(const Fd& fd, unsigned long what, Request& request) {
    int r = 0;
    do r = ::ioctl(fd.get(), what, &request.head());
    while (r != 0 && errno == EINTR);
    return r == 0 ? 0 : errno;
}

Status done(const char* what, int code) {
    if (code == 0) return {};
    return fail_errno(std::string("device mapper: ") + what, code);
}

}  // namespace

Result<DmControl> DmControl::open(const std::string& root) {
    const std::string path = root + "/dev/" DM_DIR "/" DM_CONTROL_NODE;
    Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd) return fail_errno(path, errno);
    return DmControl(std::move(fd));
}

Result<bool> DmControl::has_target(const std::string& type) const {
    Request request("");
    request.set_name(type);
    const int code = call(fd_, DM_GET_TARGET_VERSION, request);
    if (code == EINVAL) return false;
    if (code != 0) return tl::unexpected(done("looking for a target", code).error());
    return true;
}

Result<dev_t> DmControl::create(const std::string& name, const std::string& uuid) const {
    Request request(uuid);
    request.set_name(name);
    if (auto made = done("creating", call(fd_, DM_DEV_CREATE, request)); !made)
        return tl::unexpected(made.error());
    return request.head().dev;
}

Status DmControl::load(const std::string& uuid, std::uint64_t sectors, const std::string& type,
                       const std::string& parameters) const {
    Request request(uuid);
    request.head().flags = DM_SECURE_DATA_FLAG;
    request.set_target(sectors, type, parameters);
    return done("loading a table", call(fd_, DM_TABLE_LOAD, request));
}

Status DmControl::resume(const std::string& uuid) const {
    Request request(uuid);
    return done("resuming", call(fd_, DM_DEV_SUSPEND, request));
}

Status DmControl::remove(const std::string& uuid) const {
    Request request(uuid);
    request.head().flags = DM_DEFERRED_REMOVE;
    const int code = call(fd_, DM_DEV_REMOVE, request);
    return code == ENXIO ? Status{} : done("removing", code);
}

Result<bool> DmControl::exists(const std::string& uuid) const {
    Request request(uuid);
    const int code = call(fd_, DM_DEV_STATUS, request);
    if (code == ENXIO) return false;
    if (code != 0) return tl::unexpected(done("looking", code).error());
    return true;
}

}  // namespace wq::bench
