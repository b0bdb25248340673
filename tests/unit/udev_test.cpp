// SPDX-License-Identifier: LGPL-2.1-or-later
// The monitor with a real queue, in a network namespace of its own. Events of the machine do not arrive
// there, and events of the test do not leave it.
#include "machine/udev.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/file.h"

namespace wq {
namespace {

constexpr int kSkipped = 77;
constexpr unsigned kUdevGroup = 2;  // MONITOR_GROUP_UDEV

// What systemd-udevd puts before an event's properties (sd-device, monitor_netlink_header).
struct Header {
    char prefix[8] = "libudev";
    std::uint32_t magic = htonl(0xfeedcafe);
    std::uint32_t header_size = sizeof(Header);
    std::uint32_t properties_offset = sizeof(Header);
    std::uint32_t properties_length = 0;
    std::uint32_t subsystem_hash = 0;
    std::uint32_t devtype_hash = 0;
    std::uint32_t tag_bloom[2] = {0xffffffff, 0xffffffff};  // may have any tag
};

std::string event_of(const std::string& subsystem, std::size_t padding,
                     const std::string& action = "change") {
    std::string properties;
    const auto add = [&](const std::string& text) { properties += text + '\0'; };
    add("ACTION=" + action);
    add("DEVPATH=/devices/virtual/" + subsystem + "/of-a-test");
    add("SUBSYSTEM=" + subsystem);
    add("SEQNUM=1");
    add("TAGS=:wq-tuned:");
    add("CURRENT_TAGS=:wq-tuned:");
    add("PADDING=" + std::string(padding, 'x'));
    Header header;
    header.properties_length = static_cast<std::uint32_t>(properties.size());
    std::string out(sizeof(header), '\0');
    std::memcpy(out.data(), &header, sizeof(header));
    return out + properties;
}

bool send(int fd, const std::string& message) {
    sockaddr_nl to = {};
    to.nl_family = AF_NETLINK;
    to.nl_groups = kUdevGroup;
    return ::sendto(fd, message.data(), message.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof(to)) >= 0;
}

bool enter_own_namespace() {
    const uid_t uid = ::getuid();
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
    const std::string map = "0 " + std::to_string(uid) + " 1";  // events must come from root
    const int fd = ::open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
    const bool mapped = fd >= 0 && ::write(fd, map.data(), map.size()) >= 0;
    if (fd >= 0) ::close(fd);
    return mapped;
}

struct Received {
    unsigned workqueue = 0, cpu = 0, cpu_online = 0, lost = 0;
};

// Returns whether libudev can make the monitor that Udev::start() needs.
bool has_monitor() {
    udev* const context = ::udev_new();
    udev_monitor* const monitor =
        context != nullptr ? ::udev_monitor_new_from_netlink(context, "udev") : nullptr;
    const bool good = monitor != nullptr && ::udev_monitor_enable_receiving(monitor) >= 0;
    if (monitor != nullptr) ::udev_monitor_unref(monitor);
    if (context != nullptr) ::udev_unref(context);
    return good;
}

// Runs SCENE(fd, read_all, udev) in a child: fd sends events, read_all() reads all events and returns their
// counts. The test fails if SCENE returns false.
template <class Scene>
void play(Scene scene) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (!enter_own_namespace() || !has_monitor()) ::_exit(kSkipped);
        const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
        sd_event* event = nullptr;
        Received seen;
        auto udev = ::sd_event_new(&event) < 0 ? Result<std::unique_ptr<Udev>>(fail_errno("sd-event", errno))
                                               : Udev::start(event, [&](Udev::Change change) {
                                                     if (change == Udev::Change::workqueue) seen.workqueue++;
                                                     if (change == Udev::Change::cpu) seen.cpu++;
                                                     if (change == Udev::Change::cpu_online)
                                                         seen.cpu_online++;
                                                     if (change == Udev::Change::lost) seen.lost++;
                                                 });
        if (!udev || fd < 0) ::_exit(1);
        const auto read_all = [&] {
            seen = {};
            while (::sd_event_run(event, 0) > 0) continue;
            return seen;
        };
        const bool good = scene(fd, read_all, **udev);
        ::_exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kSkipped)
        GTEST_SKIP() << "no network namespace to be had, or no monitor in it";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(UdevTest, TellsOfWorkqueuesAndCpus) {
    play([](int fd, auto read_all, const Udev& /*udev*/) {
        if (!send(fd, event_of("workqueue", 0)) || !send(fd, event_of("cpu", 0, "offline")) ||
            !send(fd, event_of("cpu", 0, "online")))
            return false;
        const Received seen = read_all();
        return seen.workqueue == 1 && seen.cpu == 1 && seen.cpu_online == 1 && seen.lost == 0;
    });
}

// After ENOBUFS the monitor gets the events that the queue holds, and later events as usual.
TEST(UdevTest, AnOverflowOfTheQueueIsToldAndDoesNotEndIt) {
    play([](int fd, auto read_all, const Udev& /*udev*/) {
        const std::string large = event_of("workqueue", 7000);
        constexpr unsigned kSent = 10'000;  // 7 kB each; the queue holds at most 16 MiB
        for (unsigned i = 0; i < kSent; i++)
            if (!send(fd, large)) return false;
        const Received full = read_all();
        if (full.lost == 0 || full.workqueue == 0 || full.workqueue >= kSent) return false;
        if (!send(fd, event_of("cpu", 0))) return false;
        const Received after = read_all();
        return after.cpu == 1 && after.lost == 0;
    });
}

// Without file descriptors libudev cannot read the device (EMFILE): a udev rule may have opted it out.
TEST(UdevTest, AWorkqueueThatCannotBeReadIsNotKnownToBeOptedIn) {
    const std::vector<std::string> workqueues = names_or_none("/sys/bus/workqueue/devices");
    if (workqueues.empty()) GTEST_SKIP() << "/sys has no workqueue";
    play([&](int /*fd*/, auto /*read_all*/, const Udev& udev) {
        if (udev.opted_out("no-such-workqueue") != std::optional(false)) return false;
        const rlimit none{0, 0};
        return ::setrlimit(RLIMIT_NOFILE, &none) == 0 && !udev.opted_out(workqueues.front()).has_value();
    });
}

}  // namespace
}  // namespace wq
