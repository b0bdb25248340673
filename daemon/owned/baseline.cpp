// SPDX-License-Identifier: LGPL-2.1-or-later
#include "owned/baseline.h"

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/file.h"

namespace wq {
namespace {

using nlohmann::json;

// A host with tens of thousands of workqueues stays below this.
constexpr std::size_t kMaxBaseline = 16U << 20;

// Values of `order` in the file.
constexpr std::string_view kPin = "pin ";
constexpr std::string_view kRevert = "revert";
constexpr std::string_view kSlot = "slot";

json to_json(const std::optional<bool>& value) {
    return value ? json(*value) : json(nullptr);
}

std::string order_text(const BaselineEntry& e) {
    switch (e.holder) {
        case Holder::pin:
            return std::string(kPin) + e.pinned;
        case Holder::revert:
            return std::string(kRevert) + (e.why.empty() ? "" : " " + e.why);
        case Holder::slot:
            return std::string(kSlot);
        default:
            return "";
    }
}

// Ignores an order that this version does not know.
void read_order(BaselineEntry& e, const std::string& text) {
    if (text.starts_with(kPin)) {
        e.holder = Holder::pin;
        e.pinned = text.substr(kPin.size());
    } else if (text.starts_with(kRevert)) {
        e.holder = Holder::revert;
        e.why = text.substr(std::min(text.size(), kRevert.size() + 1));
    } else if (text == kSlot) {
        e.holder = Holder::slot;
    }
}

json to_json(const BaselineEntry& e) {
    // An initializer list would create each of these values three times.
    json out;
    out["name"] = e.name;
    out["inode"] = e.inode;
    out["scope"] = e.scope;
    out["strict"] = to_json(e.strict);
    out["may_hold"] = e.may_hold;
    out["may_strict"] = to_json(e.may_strict);
    out["order"] = order_text(e);
    if (e.external) out["external"] = true;
    return out;
}

std::optional<bool> maybe_bool(const json& value) {
    return value.is_null() ? std::nullopt : std::optional(value.get<bool>());
}

// Rejects a number that cannot be an inode: we did not write it, and a conversion could turn it into the
// inode of a workqueue.
ino_t inode_from(const json& value) {
    if (!value.is_number_unsigned())
        throw json::other_error::create(501, "\"inode\" is not an unsigned integer", nullptr);
    return value.get<ino_t>();
}

BaselineEntry baseline_from_json(const json& j) {
    BaselineEntry out{j.at("name").get<std::string>(),
                      inode_from(j.at("inode")),
                      j.at("scope").get<std::string>(),
                      maybe_bool(j.at("strict")),
                      j.at("may_hold").get<std::vector<std::string>>(),
                      maybe_bool(j.at("may_strict"))};
    const auto order = j.at("order").get<std::string>();
    read_order(out, order);
    out.external = j.value("external", false);
    return out;
}

// Detects changes without a copy of all entries, which would need as much memory again.
std::uint64_t hash_of_entries(const std::map<std::string, BaselineEntry>& entries) {
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    const auto add_number = [&](std::uint64_t n) { XXH64_update(&state, &n, sizeof(n)); };
    const auto add_bool = [&](std::optional<bool> value) {
        add_number(value ? static_cast<std::uint64_t>(*value) : 2);
    };
    const auto add_text = [&](const std::string& text) {
        add_number(text.size());
        XXH64_update(&state, text.data(), text.size());
    };
    for (const auto& [name, e] : entries) {
        add_text(e.name);
        add_number(e.inode);
        add_text(e.scope);
        add_bool(e.strict);
        add_number(e.may_hold.size());
        for (const std::string& word : e.may_hold) add_text(word);
        add_bool(e.may_strict);
        add_number(static_cast<std::uint64_t>(e.holder));
        add_text(e.pinned);
        add_text(e.why);
        add_number(e.external ? 1 : 0);
    }
    return XXH64_digest(&state);
}

}  // namespace

BaselineStore::BaselineStore(std::string path) : path_(std::move(path)), saved_(hash_of_entries({})) {}

std::string_view name_of_order(Holder holder) {
    return holder == Holder::pin ? "pin" : holder == Holder::revert ? "revert" : "";
}

bool BaselineEntry::may_be_ours(const std::string& word) const {
    return std::find(may_hold.begin(), may_hold.end(), word) != may_hold.end();
}

void BaselineEntry::allow(const std::string& word) {
    if (may_be_ours(word)) return;
    may_hold.push_back(word);
    on_disk.yes = false;
}

Whose BaselineEntry::whose(const std::string& word) const {
    if (word == scope) return may_hold.empty() || may_be_ours(scope) ? Whose::baseline : Whose::foreign;
    return may_be_ours(word) ? Whose::ours : Whose::foreign;
}

Whose BaselineEntry::whose_strict(bool value) const {
    if (may_strict == value) return Whose::ours;
    const bool possible = !may_strict || may_be_ours(scope);  // whether it may be the baseline
    return strict == value && possible ? Whose::baseline : Whose::foreign;
}

Found BaselineEntry::whose(const std::string& word, std::optional<bool> value) const {
    return {whose(word), value ? whose_strict(*value) : Whose::baseline};
}

void BaselineEntry::announce_baseline() {
    if (has_claim()) allow(scope);
}

void BaselineEntry::announce(const std::string& word, std::optional<bool> value) {
    allow(scope);
    allow(word);
    if (const std::string other = misparse_of(word); !other.empty()) allow(other);
    if (!value || !strict || value == strict || may_strict == value) return;
    may_strict = value;
    on_disk.yes = false;
}

Found BaselineEntry::settle(const std::string& word, std::optional<bool> value) {
    const Found found = whose(word, value);
    const bool unsure = may_strict && !value && may_be_ours(scope);
    may_hold.clear();
    if (found.word == Whose::ours) may_hold.push_back(word);
    if (value && may_strict != value) may_strict.reset();
    if (unsure) allow(scope);
    return found;
}

void BaselineEntry::disown(bool its_strict) {
    if (its_strict) return may_strict.reset();
    may_hold.clear();
    announce_baseline();  // it is not known whether a strictness was written
}

void BaselineEntry::release() {
    may_hold.clear();
    may_strict.reset();
}

BaselineEntry entry_of(const Workqueue& target) {
    return {target.name, target.inode, target.scope.word, target.strict, {}, {}};
}

std::string misparse_of(const std::string& word) {
    return word == "cache_shard" ? "cache" : "";
}

Status BaselineStore::load() {
    const auto text = read_if_there(path_, kMaxBaseline);
    if (text && !*text) return {};
    broken_ = true;
    if (!text) return tl::unexpected(text.error());
    try {
        const json document = json::parse(**text);
        std::map<std::string, BaselineEntry> entries;
        for (const json& item : document.at("entries")) {
            BaselineEntry entry = baseline_from_json(item);
            entries[entry.name] = std::move(entry);
        }
        entries_ = std::move(entries);
        saved_ = hash_of_entries(entries_);
        mark_saved();
        broken_ = false;
    } catch (const json::exception& e) {
        return fail(path_ + ": " + json_error_text(e.what()), EBADMSG);
    }
    return {};
}

Status BaselineStore::save() {
    if (broken_) return fail(path_ + ": could not be read, and is not replaced", EBADMSG);
    const std::uint64_t hash = hash_of_entries(entries_);
    if (hash == saved_) return mark_saved();
    json list = json::array();
    for (const auto& [name, entry] : entries_) list.push_back(to_json(entry));
    // Names come from the kernel and need not be UTF-8. Saving such a name fails, because it must be read
    // back as the same bytes.
    std::string text;
    try {
        text = json{{"version", 1}, {"entries", std::move(list)}}.dump(1) + "\n";
    } catch (const json::exception& e) {
        return fail(path_ + ": " + json_error_text(e.what()), EILSEQ);
    }
    if (auto done = replace_file(path_, text); !done) {
        saved_.reset();
        return done;
    }
    saved_ = hash;
    return mark_saved();
}

Status BaselineStore::mark_saved() {
    for (auto& [name, entry] : entries_) entry.on_disk.yes = true;
    return {};
}

BaselineEntry* BaselineStore::find(const std::string& name) {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
}

void BaselineStore::put(BaselineEntry entry) {
    entry.on_disk.yes = false;
    entries_[entry.name] = std::move(entry);
}

void BaselineStore::remove(const std::string& name) {
    entries_.erase(name);
}

}  // namespace wq
