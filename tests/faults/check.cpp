// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scenario.h"

#include <fmt/format.h>

namespace wq::faults {
namespace {

std::string baseline_word(const std::string& name) {
    return name == kDefaultTarget ? "cache" : "default";
}

bool is_at_baseline(const Host& host, const std::string& name) {
    return host.word(name) == baseline_word(name) && host.strict(name) != "1";
}

// Checks the files of a target that are not at their baseline.
std::string wrong_of(const Host& host, const std::string& name, OwnedStore& store) {
    const std::string word = host.word(name);
    const std::string strict = host.strict(name);
    if (const auto foreign = host.foreign.find(name); foreign != host.foreign.end())
        return word == foreign->second ? ""
                                       : fmt::format("{}: '{}' was written over\n", name, foreign->second);
    if (is_at_baseline(host, name)) return "";
    const Owned* entry = store.find(name);
    if (entry == nullptr) return fmt::format("{}: holds '{}' {}, and has no entry\n", name, word, strict);
    std::string out;
    if (entry->main.baseline != baseline_word(name) || (entry->strict && entry->strict->baseline != "0"))
        out += fmt::format("{}: its baseline is said to be '{}'\n", name, entry->main.baseline);
    if (word != entry->main.baseline && !entry->main.is_claimed(word))
        out += fmt::format("{}: holds '{}', which no entry records as ours\n", name, word);
    if (strict == "1" && !(entry->strict && entry->strict->is_claimed(strict)))
        out += fmt::format("{}: is strict, which no entry records as ours\n", name);
    return out;
}

// What STATE says about the files. True: they hold values of ours. False: they hold the baseline.
std::optional<bool> says_ours(State state) {
    switch (state) {
        case State::set:
        case State::kept:
        case State::pinned:
            return true;
        case State::unmanaged:
        case State::leave:
        case State::as_planned:
        case State::reverted:
        case State::unsupported:
            return false;
        default:  // between two writes, or after an error, which the reason names
            return {};
    }
}

}  // namespace

std::string wrong_on_disk(const Host& host) {
    OwnedStore store(Paths{host.tree.root()}.owned());
    if (const auto loaded = store.load(); !loaded) return loaded.error().text + "\n";
    std::string out;
    for (const std::string& name : kTargets) out += wrong_of(host, name, store);
    return out;
}

std::string wrong_in_status(Host& host) {
    if (!host.daemon || host.daemon->is_blind()) return "";
    test::TargetParts& parts = host.daemon->parts();
    parts.engine.look();
    host.daemon->record();
    std::string out;
    for (const std::string& name : kTargets) {
        const auto found = parts.targets.all().find(name);
        if (found == parts.targets.all().end()) {
            out += name + ": is not known\n";
            continue;
        }
        const Target& target = found->second;
        const bool foreign = host.foreign.contains(name);
        if (target.now.scope.word != host.word(name))
            out += fmt::format("{}: is said to hold '{}'\n", name, target.now.scope.word);
        // (The reverse is not checked: an external write to a target that we did not set is not shown.)
        if (target.state == State::external && !foreign)
            out += fmt::format("{}: is said to be {}: {}\n", name, name_of(target.state), target.reason);
        const auto ours = says_ours(target.state);
        if (ours && (foreign ? *ours : *ours == is_at_baseline(host, name)))
            out += fmt::format("{}: is said to be {}, and holds '{}' {}\n", name, name_of(target.state),
                               host.word(name), host.strict(name));
    }
    return out;
}

std::string wrong_at_the_end(const Host& host) {
    std::string out;
    for (const std::string& name : kTargets) {
        const auto foreign = host.foreign.find(name);
        if (foreign == host.foreign.end() ? !is_at_baseline(host, name) : host.word(name) != foreign->second)
            out += fmt::format("{}: is left at '{}' {}\n", name, host.word(name), host.strict(name));
    }
    OwnedStore store(Paths{host.tree.root()}.owned());
    if (const auto loaded = store.load(); !loaded) out += loaded.error().text + "\n";
    for (const auto& [name, entry] : store.entries()) out += name + ": has an entry left\n";
    VerdictStore verdicts(Paths{host.tree.root()}.verdicts());
    if (const auto loaded = verdicts.load(); !loaded) out += loaded.error().text + "\n";
    return out;
}

}  // namespace wq::faults
