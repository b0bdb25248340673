// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "engine/baseline.h"

namespace wq {

class Engine;

// An operator's orders. They are in the baseline entries of their targets, so that they outlive a restart.
// Each is carried out at once; the error says why it could not be, and then the order before it stands.
class Orders {
  public:
    explicit Orders(Engine& engine) : engine_(engine) {}

    Status pin(const std::string& name, const std::string& scope);
    Status unpin(const std::string& name);
    Status revert(const std::optional<std::string>& name);  // empty: all targets

    [[nodiscard]] unsigned reverts() const { return reverts_; }  // of settings, since the start

  private:
    Engine& engine_;
    unsigned reverts_ = 0;
};

}  // namespace wq
