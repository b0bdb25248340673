// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cerrno>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ctl/lab/bench.h"
#include "ctl/lab/devices.h"
#include "fake_machine.h"

namespace wq::test {

// Devices that are files in a tree, so a removal by a guardian process is visible here too:
//   dev/driver    the driver is loaded
//   dev/ram       the device below exists; contains its name. dev/crypt: the same for the crypt device
//   dev/busy      the crypt device cannot be removed
class FakeDevices : public lab::Devices {
  public:
    static constexpr const char* kWorkqueue = "kcryptd-254:7-1";

    explicit FakeDevices(TempTree& tree) : lab::Devices("", {}), tree_(tree) {}

    // Called before and after each change. A change fails if it returns an error.
    std::function<Status(const std::string& step)> at_step = [](const auto&) { return Status{}; };
    bool in_sysfs = true;  // whether the workqueue is in sysfs

    [[nodiscard]] bool has_driver() const override { return tree_.exists("dev/driver"); }
    Status load_driver() override {
        return change("load driver", [&] { tree_.add(File("dev/driver")); });
    }
    Result<std::string> make_ram(const std::string& name, std::uint64_t /*bytes*/) override {
        return change("make ram", [&] { tree_.add(File("dev/ram", name)); }).map([] { return "250:0"; });
    }
    Result<lab::CryptDevice> make_crypt(const std::string& name, const std::string& /*ram*/,
                                        std::uint64_t /*bytes*/) override {
        return change("make crypt",
                      [&] {
                          tree_.add(File("dev/crypt", name));
                          if (in_sysfs)
                              tree_.add(Dir("sys/devices/virtual/workqueue", {workqueue(kWorkqueue)}));
                      })
            .map([&] {
                return lab::CryptDevice{tree_.path("dev/crypt"), "254:7"};
            });
    }
    Status remove_crypt(const std::string& name) override {
        if (tree_.exists("dev/busy")) return fail_errno(name, EBUSY);
        if (!tree_.exists("dev/crypt")) return {};
        if (tree_.read("dev/crypt") != name) return fail("not ours", EINVAL);
        tree_.remove(std::string("sys/devices/virtual/workqueue/") + kWorkqueue);
        tree_.remove("dev/crypt");
        return {};
    }
    Status remove_ram(const std::string& /*name*/) override {
        if (tree_.exists("dev/crypt")) return fail("in use", EBUSY);
        tree_.remove("dev/ram");
        return {};
    }
    bool unload_driver() override {
        tree_.remove("dev/driver");
        return true;
    }

  private:
    Status change(const std::string& step, const std::function<void()>& what) {
        if (auto before = at_step(step); !before) return before;
        what();
        return at_step(step + " done");
    }
    TempTree& tree_;
};

// Reports the MB/s that mb_per_s has for the scope in place.
class FakeFio : public lab::Fio {
  public:
    FakeFio(TempTree& tree, const lab::Processes& processes) : lab::Fio(processes), tree_(tree) {}

    std::map<std::string, double> mb_per_s;  // by load and scope, "write smt"; 100 for others
    std::function<Status(unsigned run)> at_run = [](unsigned) { return Status{}; };  // RUN from 0
    std::vector<std::string> runs;  // load and the scope in place
    lab::BenchSettings settings;    // of the last run
    Status installed;

    [[nodiscard]] Status check() const override { return installed; }
    Result<lab::Figures> run(const lab::CryptDevice& /*device*/, const lab::BenchSettings& s,
                             const std::string& load) override {
        const auto file = parse_scope_file(tree_.read(wq_path(FakeDevices::kWorkqueue)));
        runs.push_back(load + " " + (file ? file->word : "?"));
        settings = s;
        if (auto went = at_run(static_cast<unsigned>(runs.size() - 1)); !went)
            return tl::unexpected(went.error());
        const auto found = mb_per_s.find(runs.back());
        const double mb = found == mb_per_s.end() ? 100 : found->second;
        lab::Figures out{.value = mb, .mb_per_s = mb};
        out.seconds = 2;
        return out;
    }

  private:
    TempTree& tree_;
};

}  // namespace wq::test
