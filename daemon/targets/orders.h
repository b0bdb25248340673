// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "targets/engine.h"

namespace wq {

// An operator's orders, which survive a restart. Error: why one could not be carried out; after pin() the
// earlier order then stays in force.
class Orders {
  public:
    // ENGINE must outlive it.
    explicit Orders(Engine& engine) : engine_(engine), targets_(engine.targets()) {}

    Status pin(const std::string& name, const std::string& scope);
    Status unpin(const std::string& name);
    Status revert(const std::optional<std::string>& name);       // empty: all targets
    [[nodiscard]] unsigned reverts() const { return reverts_; }  // of settings, since the start
    // What the orders to revert do to @default, for people; "" if nothing.
    [[nodiscard]] std::string note() const;

  private:
    Engine& engine_;
    Targets& targets_;
    unsigned reverts_ = 0;
};

}  // namespace wq
