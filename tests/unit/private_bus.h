// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <string>

#include "temp_tree.h"

namespace wq::test {

// A dbus-daemon with the policy of Debian's system bus and conf/org.wqtuned1.conf. While the
// object lives, DBUS_SYSTEM_BUS_ADDRESS names it. If dbus-daemon does not start, is_there() is false.
class PrivateBus {
  public:
    PrivateBus();
    ~PrivateBus();
    PrivateBus(const PrivateBus&) = delete;
    PrivateBus& operator=(const PrivateBus&) = delete;
    [[nodiscard]] bool is_there() const { return pid_ > 0; }
    [[nodiscard]] pid_t pid() const { return pid_; }

  private:
    TempTree tree_;
    pid_t pid_ = -1;
};

// A socket that takes connections and never answers. While it lives, DBUS_SYSTEM_BUS_ADDRESS names it.
class SilentBus {
  public:
    SilentBus();
    ~SilentBus();
    SilentBus(const SilentBus&) = delete;
    SilentBus& operator=(const SilentBus&) = delete;

  private:
    TempTree tree_;
    int fd_ = -1;
};

}  // namespace wq::test
