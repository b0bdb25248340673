// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "owned/owned.h"

namespace wq {

class Engine;

// An operator's orders. They are in the baseline entries of their targets, so they survive a restart. Each is
// carried out at once. Error: why this was not possible; after pin() and unpin() the earlier order then stays
// in force.
class Orders {
  public:
    explicit Orders(Engine& engine) : engine_(engine) {}

    Status pin(const std::string& name, const std::string& scope);
    Status unpin(const std::string& name);
    Status revert(const std::optional<std::string>& name);  // empty: all targets

    // What the orders to revert do to @default, for people; "" if nothing.
    [[nodiscard]] std::string note() const;
    [[nodiscard]] unsigned reverts() const { return reverts_; }  // of settings, since the start

  private:
    Engine& engine_;
    unsigned reverts_ = 0;
};

}  // namespace wq
