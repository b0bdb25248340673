// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/conditions.h"

#include <gtest/gtest.h>

#include "temp_tree.h"

namespace wq {
namespace {

using test::Dir;
using test::File;
using test::TempTree;

TEST(Conditions, EachIsAReason) {
    EXPECT_EQ(why_no_slot({}), "");
    EXPECT_EQ(why_no_slot({.paused = true}), "paused by `wq-tunectl pause`");
    EXPECT_EQ(why_no_slot({.in_hours = false}), "outside judge.hours");
    EXPECT_EQ(why_no_slot({.system_state = "starting", .uptime = 20 * 60 - 1}), "systemd is 'starting'");
    EXPECT_EQ(why_no_slot({.system_state = "starting", .uptime = 20 * 60}), "") << "it may never end";
    EXPECT_EQ(why_no_slot({.system_state = "stopping", .uptime = 20 * 60}), "systemd is 'stopping'");
    EXPECT_EQ(why_no_slot({.system_state = "degraded"}), "");
    EXPECT_EQ(why_no_slot({.uptime = 360, .settle = std::chrono::seconds(600)}),
              "settling after boot (4 min left)");
    EXPECT_EQ(why_no_slot({.uptime = 600, .settle = std::chrono::seconds(600)}), "");
    EXPECT_EQ(why_no_slot({.delay = 30}), "random delay: 30 s left");
    EXPECT_EQ(why_no_slot({.memory_is_short = true}), "memory is short");
    EXPECT_EQ(why_no_slot({.on_battery = true}), "on battery");
    EXPECT_EQ(why_no_slot({.hotplug = true}), "CPUs came or went just now");
    EXPECT_EQ(why_no_slot({.observing = "mode is observe", .paused = true}), "observing: mode is observe");
}

TEST(Conditions, MemoryIsShortByItsPressure) {
    TempTree tree{Dir("proc/pressure")};
    const Paths paths{tree.root()};
    EXPECT_FALSE(is_memory_short(paths)) << "a kernel that does not tell";
    const auto say = [&](const char* some, const char* full) {
        tree.write("proc/pressure/memory", std::string("some avg10=") + some +
                                               " avg60=9.00 total=1\nfull avg10=" + full +
                                               " avg60=9.00 total=1\n");
    };
    say("1.00", "0.00");
    EXPECT_FALSE(is_memory_short(paths));
    say("1.01", "0.00");
    EXPECT_TRUE(is_memory_short(paths));
    say("0.00", "0.01");
    EXPECT_TRUE(is_memory_short(paths));
}

TEST(Conditions, OnBatteryUnlessTheMainsAreOnline) {
    TempTree tree{Dir("sys/class/power_supply",
                      {Dir("BAT0", {File("type", "Battery\n"), File("status", "Discharging\n")}),
                       Dir("AC", {File("type", "Mains\n"), File("online", "0\n")})})};
    const Paths paths{tree.root()};
    EXPECT_TRUE(is_on_battery(paths));
    tree.write("sys/class/power_supply/AC/online", "1\n");
    EXPECT_FALSE(is_on_battery(paths));
    tree.write("sys/class/power_supply/AC/online", "0\n");
    tree.write("sys/class/power_supply/BAT0/scope", "Device\n");
    EXPECT_FALSE(is_on_battery(paths)) << "the battery of a device such as a mouse does not count";
    EXPECT_FALSE(is_on_battery(Paths{tree.root() + "/none"}));
}

TEST(Conditions, StealAboveTwoPercent) {
    TempTree tree{Dir("proc", {File("stat", "cpu  100 0 100 700 0 0 0 100 50 0\ncpu0 1\n")})};
    const CpuTimes times = read_cpu_times(Paths{tree.root()});
    EXPECT_EQ(times.all, 1000U);
    EXPECT_EQ(times.steal, 100U);
    EXPECT_FALSE(was_stolen({0, 0}, {20, 1000}));
    EXPECT_TRUE(was_stolen({0, 0}, {21, 1000}));
    EXPECT_FALSE(was_stolen({}, {}));
}

TEST(Conditions, TheSchedulerInForce) {
    TempTree tree{Dir("sys/kernel")};
    const Paths paths{tree.root()};
    EXPECT_EQ(scheduler_in_force(paths), "");
    tree.add(Dir("sys/kernel/sched_ext", {File("state", "enabled\n"), Dir("root", {File("ops", "lavd\n")})}));
    EXPECT_EQ(scheduler_in_force(paths), "lavd");
    tree.write("sys/kernel/sched_ext/state", "disabled\n");
    EXPECT_EQ(scheduler_in_force(paths), "");
    tree.add(Dir("sys/kernel/debug/sched/llc_balancing", {File("enabled", "1\n")}));
    EXPECT_EQ(scheduler_in_force(paths), "cache-aware");
}

TEST(Conditions, IsolatedAndRealtimeHosts) {
    TempTree tree{Dir("sys/devices/system/cpu", {File("isolated", "\n"), File("nohz_full", "(null)\n")})};
    const Paths paths{tree.root()};
    EXPECT_EQ(read_named_only(paths).host, "");
    tree.write("sys/devices/system/cpu/isolated", "2-3\n");
    EXPECT_EQ(read_named_only(paths).host, "isolcpus= is set");
    tree.write("sys/devices/system/cpu/isolated", "\n");
    tree.write("sys/devices/system/cpu/nohz_full", "2-3\n");
    EXPECT_EQ(read_named_only(paths).host, "nohz_full= is set");
    tree.write("sys/kernel/realtime", "1\n");
    EXPECT_EQ(read_named_only(paths).host, "a realtime kernel");
}

}  // namespace
}  // namespace wq
