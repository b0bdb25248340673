// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/kernel_devices.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "ctl/lab/dm_control.h"

namespace wq::bench {
namespace {

constexpr std::uint64_t kSector = 512;
constexpr unsigned kKeyWords = 8;  // of 64 bits: two AES keys of 256 bits, the default of LUKS2
constexpr const char* kCipher = "aes-xts-plain64";

constexpr useconds_t kPause = 20'000;   // us
constexpr unsigned kDriverLooks = 250;  // for systemd to mount configfs, which is a module too
constexpr unsigned kRemoveLooks = 500;  // for udev to close the device
constexpr unsigned kUnloadLooks = 500;  // likewise

std::string uuid_of(const std::string& name) {
    return "WQ-TUNED-" + name;
}

// Calls ATTEMPT until it returns true, up to LOOKS times.
template <class Try>
bool wait_until(unsigned looks, const Try& attempt) {
    for (unsigned i = 0; i < looks; i++) {
        if (attempt()) return true;
        ::usleep(kPause);
    }
    return false;
}

// Opens without O_CREAT. Error ENOENT: this null_blk is too old for the attribute.
Status write_attribute(const std::string& path, const std::string& value) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) return fail_errno(path, errno);
    return write_all(fd.get(), value).map_error([&](const Error& e) { return e.in(path); });
}

std::string random_key() {
    std::string key;
    for (unsigned i = 0; i < kKeyWords; i++) key += fmt::format("{:016x}", random_number());
    return key;
}

}  // namespace

bool KernelDevices::has_driver() const {
    return exists(root_ + "/sys/module/null_blk");
}

Status KernelDevices::load_driver() {
    if (!has_driver())
        if (auto loaded = run_({"modprobe", "--quiet", "null_blk", "nr_devices=0"}); !loaded)
            return fail("null_blk, the device below: " + loaded.error().text);
    if (wait_until(kDriverLooks, [&] { return exists(drivers_folder()); })) return {};
    return fail(drivers_folder() +
                ": is not there; if configfs is not mounted: mount -t configfs none /sys/kernel/config");
}

Result<std::string> KernelDevices::make_ram(const std::string& name, std::uint64_t bytes) {
    const std::string folder = drivers_folder() + "/" + name;
    if (::mkdir(folder.c_str(), 0755) != 0) return fail_errno(folder, errno);
    const long cpus = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
    // Avoid everything that all CPUs share, because it would hide the effect of a scope: no memory_backed,
    // which copies under a lock of the device (drivers/block/null_blk/main.c, null_handle_data_transfer());
    // one queue per CPU, so that there is no I/O scheduler; irqmode 0, so that a request completes on the CPU
    // that sent it. Other attributes keep the values of the module parameters.
    const std::array<std::pair<const char*, std::string>, 8> attributes{
        {{"size", std::to_string(bytes >> 20U)},
         {"memory_backed", "0"},
         {"zoned", "0"},
         {"mbps", "0"},
         {"cache_size", "0"},
         {"irqmode", "0"},
         {"submit_queues", std::to_string(cpus)},
         {"power", "1"}}};
    for (const auto& [file, value] : attributes)
        if (auto written = write_attribute(folder + "/" + file, value); !written)
            return tl::unexpected(written.error());
    // The device has the name of its folder (since Linux 5.19).
    const auto number = read_file(fmt::format("{}/sys/block/{}/dev", root_, name));
    if (!number) return tl::unexpected(number.error());
    return number->substr(0, number->find('\n'));
}

Result<CryptDevice> KernelDevices::make_crypt(const std::string& name, const std::string& ram,
                                              std::uint64_t bytes) {
    const auto dm = DmControl::open(root_);
    if (!dm) return tl::unexpected(dm.error());
    const auto has = dm->has_target("crypt");
    if (!has) return tl::unexpected(has.error());
    if (!*has) return fail("this kernel has no dm-crypt");
    const std::string uuid = uuid_of(name);
    const auto number = dm->create(name, uuid);
    if (!number) return tl::unexpected(number.error());
    const std::string table = fmt::format("{} {} 0 {} 0", kCipher, random_key(), ram);
    if (auto loaded = dm->load(uuid, bytes / kSector, "crypt", table); !loaded)
        return fail(fmt::format("dm-crypt, {}: {}", kCipher, loaded.error().text), loaded.error().code);
    if (auto resumed = dm->resume(uuid); !resumed) return tl::unexpected(resumed.error());
    return CryptDevice{fmt::format("{}/dev/dm-{}", root_, minor(*number)),
                       fmt::format("{}:{}", major(*number), minor(*number))};
}

Status KernelDevices::remove_crypt(const std::string& name) {
    const auto dm = DmControl::open(root_);
    if (!dm && (dm.error().code == ENOENT || dm.error().code == ENODEV)) return {};  // no device mapper
    if (!dm) return tl::unexpected(dm.error());
    if (auto removed = dm->remove(uuid_of(name)); !removed) return removed;
    Status looked;
    const bool gone = wait_until(kRemoveLooks, [&] {
        const auto exists = dm->exists(uuid_of(name));
        looked = exists ? Status{} : Status(tl::unexpected(exists.error()));
        return !exists || !*exists;
    });
    if (!looked) return looked;
    return gone ? Status{} : fail_errno(name, EBUSY);
}

// Also removes a device that is powered on.
Status KernelDevices::remove_ram(const std::string& name) {
    const std::string folder = drivers_folder() + "/" + name;
    if (::rmdir(folder.c_str()) != 0 && errno != ENOENT) return fail_errno(folder, errno);
    return {};
}

// udev examines a device again when its last writer closes it, so this tries several times. We load the
// driver with nr_devices=0; if it has another value, another program has loaded it meanwhile.
bool KernelDevices::unload_driver() {
    return wait_until(kUnloadLooks, [&] {
        if (!has_driver()) return true;
        const auto devices = read_file(root_ + "/sys/module/null_blk/parameters/nr_devices");
        if (devices && *devices != "0\n") return true;
        (void)run_({"modprobe", "--quiet", "--remove", "null_blk"});
        return !has_driver();
    });
}

}  // namespace wq::bench
