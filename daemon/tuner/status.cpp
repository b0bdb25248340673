// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tuner/status.h"

#include "model/version.h"

namespace wq {
namespace {

using nlohmann::json;

json word_or_null(const std::string& word) {
    return word.empty() ? json(nullptr) : json(word);
}

json name_or_null(const std::optional<Scope>& scope) {
    return scope ? json(name_of(*scope)) : json(nullptr);
}

json target_json(const Target& target, const BaselineEntry* entry) {
    return {{"name", target.now.name},
            {"kind", name_of(target.now.kind)},
            {"scope", word_or_null(target.now.scope.word)},
            {"effective", name_or_null(target.now.scope.effective)},
            {"baseline", word_or_null(entry != nullptr ? entry->scope : target.now.scope.word)},
            {"planned", name_or_null(target.plan.planned)},
            {"state", name_of(target.state)},
            {"reason", target.reason},
            {"trial", nullptr},
            {"verdict", nullptr}};
}

}  // namespace

json status_json(const Tuner& tuner, const std::string& daemon_state) {
    json targets = json::array();
    for (const auto& [name, target] : tuner.targets())
        targets.push_back(target_json(target, tuner.baseline_of(name)));
    return {{"daemon",
             {{"state", daemon_state},
              {"mode", name_of(tuner.policy().mode)},
              {"version", version()},
              {"reason", tuner.observing()},
              {"writes", tuner.writes()},
              {"topology_reads", tuner.topology_reads()}}},
            {"targets", std::move(targets)}};
}

std::string dump_json(const json& document) {
    return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace wq
