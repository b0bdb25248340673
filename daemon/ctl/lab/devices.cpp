// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/devices.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/dm-ioctl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "ctl/device_mapper.h"

namespace wq::lab {
namespace {

constexpr std::uint64_t kSector = 512;
constexpr unsigned kKeyWords = 8;  // of 64 bits: two AES keys of 256 bits, the default of LUKS2
constexpr const char* kCipher = "aes-xts-plain64";

constexpr useconds_t kPause = 20'000;   // us
constexpr unsigned kDriverLooks = 250;  // for systemd to mount configfs, which is a module too
constexpr unsigned kRemoveLooks = 500;  // for udev to close the device
constexpr unsigned kUnloadLooks = 500;  // likewise

constexpr std::string_view kNamePrefix = "wq-bench-";
constexpr std::size_t kNameDigits = 16;

// A device is found by its UUID, so no call can affect a device of another program.
std::string uuid_of(const std::string& name) {
    return "WQ-TUNED-" + name;
}

// Makes the device NAME of a dm-crypt table with PARAMETERS. The kernel loads the module.
Result<dev_t> make_mapped(const Fd& mapper, const std::string& name, std::uint64_t bytes,
                          const std::string& parameters) {
    const std::string uuid = uuid_of(name);
    MapperRequest create(uuid), load(uuid), resume(uuid);
    create.set_name(name);
    if (auto made = create.call(mapper, DM_DEV_CREATE, "creating"); !made)
        return tl::unexpected(made.error());
    load.head().flags = DM_SECURE_DATA_FLAG;  // the kernel wipes its buffer too
    load.set_target(bytes / kSector, "crypt", parameters);
    if (auto loaded = load.call(mapper, DM_TABLE_LOAD, "loading a table"); !loaded)
        return tl::unexpected(loaded.error().in(fmt::format("dm-crypt, {}", kCipher)));
    if (auto resumed = resume.call(mapper, DM_DEV_SUSPEND, "resuming"); !resumed)
        return tl::unexpected(resumed.error());
    return create.head().dev;
}

// Whether the device NAME exists.
Result<bool> is_mapped(const Fd& mapper, const std::string& name) {
    MapperRequest request(uuid_of(name));
    const auto looked = request.call(mapper, DM_DEV_STATUS, "looking");
    if (!looked && looked.error().code != ENXIO) return tl::unexpected(looked.error());
    return looked.has_value();
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

}  // namespace

std::string new_device_name() {
    return fmt::format("{}{:016x}", kNamePrefix, random_number());
}

// Only root can write the file with a name, but a name becomes part of a path.
bool is_device_name(const std::string& name) {
    return name.starts_with(kNamePrefix) && name.size() == kNamePrefix.size() + kNameDigits &&
           name.find_first_not_of("0123456789abcdef", kNamePrefix.size()) == std::string::npos;
}

RunCommand runs(const Processes& processes) {
    return [&processes](const std::vector<std::string>& words) {
        return processes.must_run(words, fmt::format("{}", fmt::join(words, " ")), true);
    };
}

bool Devices::has_driver() const {
    return exists(root_ + "/sys/module/null_blk");
}

Status Devices::load_driver() {
    if (!has_driver())
        if (auto loaded = run_({"modprobe", "--quiet", "null_blk", "nr_devices=0"}); !loaded)
            return fail("null_blk, the device below: " + loaded.error().text);
    if (wait_until(kDriverLooks, [&] { return exists(drivers_folder()); })) return {};
    return fail(drivers_folder() +
                ": is not there; if configfs is not mounted: mount -t configfs none /sys/kernel/config");
}

Result<std::string> Devices::make_ram(const std::string& name, std::uint64_t bytes) {
    const std::string folder = drivers_folder() + "/" + name;
    if (::mkdir(folder.c_str(), 0755) != 0) return fail_errno(folder, errno);
    const long cpus = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
    // Avoid everything that all CPUs share, because it would hide the effect of a scope: no memory_backed,
    // which copies under a lock of the device (drivers/block/null_blk/main.c, null_handle_data_transfer());
    // one queue per CPU, so that there is no I/O scheduler; irqmode 0, so that a request completes on the CPU
    // that sent it. Other attributes keep the values of the module parameters.
    const std::array<std::pair<const char*, std::string>, 5> attributes{
        {{"size", std::to_string(bytes >> 20U)},
         {"memory_backed", "0"},
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

Result<CryptDevice> Devices::make_crypt(const std::string& name, const std::string& ram,
                                        std::uint64_t bytes) {
    const auto mapper = open_mapper(root_);
    if (!mapper) return tl::unexpected(mapper.error());
    std::string key;
    for (unsigned i = 0; i < kKeyWords; i++) key += fmt::format("{:016x}", random_number());
    const auto number = make_mapped(*mapper, name, bytes, fmt::format("{} {} 0 {} 0", kCipher, key, ram));
    if (!number) return tl::unexpected(number.error());
    return CryptDevice{fmt::format("{}/dev/dm-{}", root_, minor(*number)),
                       fmt::format("{}:{}", major(*number), minor(*number))};
}

// A device in use is removed when its last user closes it.
Status Devices::remove_crypt(const std::string& name) {
    const auto mapper = open_mapper(root_);
    if (!mapper && (mapper.error().code == ENOENT || mapper.error().code == ENODEV)) return {};
    if (!mapper) return tl::unexpected(mapper.error());
    MapperRequest request(uuid_of(name));
    request.head().flags = DM_DEFERRED_REMOVE;
    if (auto removed = request.call(*mapper, DM_DEV_REMOVE, "removing"); !removed)
        return removed.error().code == ENXIO ? Status{} : removed;
    Result<bool> there = true;
    wait_until(kRemoveLooks, [&] {
        there = is_mapped(*mapper, name);
        return !there || !*there;
    });
    if (!there) return tl::unexpected(there.error());
    return *there ? fail_errno(name, EBUSY) : Status{};
}

// Also removes a device that is powered on.
Status Devices::remove_ram(const std::string& name) {
    const std::string folder = drivers_folder() + "/" + name;
    if (::rmdir(folder.c_str()) != 0 && errno != ENOENT) return fail_errno(folder, errno);
    return {};
}

// udev examines a device again when its last writer closes it, so this tries several times. We load the
// driver with nr_devices=0; if it has another value, another program has loaded it meanwhile.
bool Devices::unload_driver() {
    return wait_until(kUnloadLooks, [&] {
        if (!has_driver()) return true;
        const auto devices = read_file(root_ + "/sys/module/null_blk/parameters/nr_devices");
        if (devices && *devices != "0\n") return true;
        (void)run_({"modprobe", "--quiet", "--remove", "null_blk"});
        return !has_driver();
    });
}

}  // namespace wq::lab
