// SPDX-License-Identifier: LGPL-2.1-or-later
#include "owned/owned.h"

#include <algorithm>
#include <utility>

#include "base/cpu_set.h"

namespace wq {
namespace {

constexpr StateRules rules_of(OwnedStore::Of of) {
    return {
        .limit = 16U << 20,  // a host with tens of thousands of workqueues stays below this
        .if_broken = IfBroken::refuse,
        .mode = of == OwnedStore::Of::lab ? 0600U : 0644U,
    };
}

constexpr std::string_view kFileNames[] = {"affinity_scope", "affinity_strict", "cpumask",
                                           "value",          "command",         "device"};
constexpr std::string_view kHolders[] = {"external", "udev", "slot", "pin", "revert", "policy"};

// Whether the kernel's file can hold TEXT.
bool is_possible(Knob file, const std::string& text) {
    if (file == Knob::strict) return text == "0" || text == "1";
    return file != Knob::mask || CpuSet::parse_mask(text).has_value();
}

std::string_view without_line_ends(std::string_view content) {
    while (content.ends_with('\n')) content.remove_suffix(1);
    return content;
}

// The only word in brackets; "" if there is not exactly one.
std::string_view chosen_word(std::string_view content) {
    std::string_view chosen;
    for (std::size_t at = 0; at < content.size();) {
        const std::size_t end = std::min(content.find_first_of(" \t\n", at), content.size());
        const std::string_view word = content.substr(at, end - at);
        at = end + 1;
        if (word.size() <= 2 || word.front() != '[' || word.back() != ']') continue;
        if (!chosen.empty()) return "";
        chosen = word.substr(1, word.size() - 2);
    }
    return chosen;
}

}  // namespace

void describe(JsonPlace& at, Knob& file) {
    at.word(file, {Knob::scope, Knob::strict, Knob::mask, Knob::value, Knob::command, Knob::device},
            [](Knob each) { return kFileNames[static_cast<std::size_t>(each)]; });
}

void describe(JsonPlace& at, Holder& holder) {
    at.word(holder, {Holder::slot, Holder::pin, Holder::revert, Holder::policy},
            [](Holder each) { return kHolders[static_cast<std::size_t>(each)]; });
}

void describe(JsonPlace& at, Attribute& attribute) {
    at("file", attribute.file);
    at("baseline", attribute.baseline);
    at("claim", attribute.claim);
    if (at.writes() || at.refused()) return;
    bool good = is_possible(attribute.file, attribute.baseline);
    for (const std::string& text : attribute.claim) good = good && is_possible(attribute.file, text);
    if (!good) at.refuse("the file cannot hold this");
}

void describe(JsonPlace& at, Owned& entry) {
    at("target", entry.name);
    at("inode", entry.inode);
    describe(at, entry.main);
    at("strict", entry.strict);
    at("holder", entry.holder);
    at("note", entry.note);
    at("external", entry.external);
    if (at.writes() || at.refused()) return;
    const bool misplaced = entry.strict && (entry.strict->file != Knob::strict || entry.is_mask());
    if (misplaced || entry.main.file == Knob::strict) at.refuse("a strictness belongs to a scope");
    if ((entry.main.file == Knob::value) != entry.name.starts_with('/'))
        at.refuse("a value belongs to a path");
}

void describe(JsonPlace& at, OwnedFile& file) {
    at.list_of_values<Owned>(
        "entries",
        [&](Owned&& entry) {
            if (is_of_lab(entry.main.file) && !file.lab)
                return at.refuse("an entry that belongs in lab.json");
            OwnedEntries& entries = entry.is_mask() ? file.masks : file.scopes;
            std::string name = entry.name;
            entries.insert_or_assign(std::move(name), std::move(entry));
        },
        file.scopes, file.masks);
}

std::string_view name_of_order(Holder holder) {
    return is_order(holder) ? kHolders[static_cast<std::size_t>(holder)] : "";
}

std::string plain(Knob file, const std::string& text) {
    if (file == Knob::scope) return text;
    if (file == Knob::strict) return text == "1" ? "strict" : "not strict";
    if (is_of_lab(file)) return value_in(text);
    return CpuSet::parse_mask(text).value_or(CpuSet{}).list();
}

std::string quoted(Knob file, const std::string& text) {
    if (file == Knob::command || file == Knob::device) return "";
    return file == Knob::mask ? "CPUs " + plain(file, text) : "'" + plain(file, text) + "'";
}

std::string value_in(std::string_view content) {
    const std::string_view chosen = chosen_word(content);
    return std::string(chosen.empty() ? without_line_ends(content) : chosen);
}

std::string misparse_of(const std::string& word) {
    return word == "cache_shard" ? "cache" : "";
}

// ---- an attribute

bool Attribute::same(const std::string& a, const std::string& b) const {
    if (a == b) return true;
    if (file == Knob::value) {
        const std::string_view chosen = chosen_word(a);
        return without_line_ends(a) == without_line_ends(b) || (!chosen.empty() && chosen == chosen_word(b));
    }
    if (file != Knob::mask) return false;
    const auto first = CpuSet::parse_mask(a);
    const auto second = CpuSet::parse_mask(b);
    return first && second && *first == *second;
}

bool Attribute::is_claimed(const std::string& text) const {
    return std::ranges::any_of(claim,
                               [&](const std::string& each) { return each == kAnyText || same(each, text); });
}

bool Attribute::may_be_ours() const {
    return std::ranges::any_of(claim, [&](const std::string& each) { return !same(each, baseline); });
}

Whose Attribute::whose(const std::string& text) const {
    if (same(text, baseline)) return claim.empty() || is_claimed(text) ? Whose::baseline : Whose::foreign;
    return is_claimed(text) ? Whose::ours : Whose::foreign;
}

void Attribute::allow(const std::string& text) {
    if (is_claimed(text)) return;
    claim.push_back(text);
    on_disk.yes = false;
}

void Attribute::announce(const std::string& text) {
    if (is_of_lab(file)) return allow(kAnyText);
    if (claim.empty() && same(text, baseline)) return;
    allow(baseline);
    allow(text);
    if (const std::string other = misparse_of(text); !other.empty()) allow(other);
}

void Attribute::announce_baseline() {
    if (!claim.empty()) allow(baseline);
}

Whose Attribute::settle(const std::string& text) {
    const Whose found = whose(text);
    claim.clear();
    if (found == Whose::ours) claim.push_back(text);
    return found;
}

// ---- an entry

Found Owned::whose(const Values& values) const {
    Found out{main.whose(values.main)};
    if (values.strict) out.strict = strict ? strict->whose(text_of_strict(*values.strict)) : Whose::foreign;
    return out;
}

void Owned::announce(const Values& values) {
    main.announce(values.main);
    if (values.strict && strict) strict->announce(text_of_strict(*values.strict));
}

void Owned::announce_baseline() {
    main.announce_baseline();
    if (strict) strict->announce_baseline();
}

Found Owned::settle(const Values& values) {
    const Found out = whose(values);
    main.settle(values.main);
    if (values.strict && strict) strict->settle(text_of_strict(*values.strict));
    return out;
}

void Owned::release() {
    main.claim.clear();
    if (strict) strict->claim.clear();
}

Owned entry_of(const Workqueue& target) {
    Owned out{target.name, target.inode, {Knob::scope, target.scope.word}};
    if (target.strict) out.strict = Attribute{Knob::strict, text_of_strict(*target.strict)};
    return out;
}

// ---- the file

OwnedStore::OwnedStore(const std::string& path, Of of) : file_(path, rules_of(of)) {
    now_.lab = of == Of::lab;
}

Status OwnedStore::load() {
    there_ = true;
    OwnedFile fresh;
    fresh.lab = now_.lab;
    auto found = file_.load(std::move(fresh));
    if (!found) return tl::unexpected(found.error());
    there_ = found->has_value();
    if (there_) now_ = std::move(**found);
    mark_saved();
    return {};
}

Status OwnedStore::save() {
    const bool empty = now_.scopes.empty() && now_.masks.empty();
    if (empty && now_.lab) return file_.remove();
    if (empty && !there_) return {};
    there_ = true;
    auto saved = file_.save(now_);
    if (saved) mark_saved();
    return saved;
}

void OwnedStore::mark_saved() {
    for (Owned* entry : all()) {
        entry->main.on_disk.yes = true;
        if (entry->strict) entry->strict->on_disk.yes = true;
    }
}

Owned* OwnedStore::find(const std::string& name, Knob file) {
    const auto found = of(file).find(name);
    return found == of(file).end() ? nullptr : &found->second;
}

Owned& OwnedStore::put(Owned entry) {
    entry.main.on_disk.yes = false;
    if (entry.strict) entry.strict->on_disk.yes = false;
    Owned& place = of(entry.main.file)[entry.name];
    place = std::move(entry);
    return place;
}

void OwnedStore::remove(const std::string& name, Knob file) {
    of(file).erase(name);
}

void OwnedStore::start_over(Knob file) {
    for (auto& [name, entry] : of(file)) {
        if (entry.holder == Holder::revert) entry.hold(Holder::policy);
        entry.external = false;
        entry.announce_baseline();
    }
}

Status OwnedStore::keep() {
    for (auto& [name, entry] : now_.scopes) {
        const bool goes_back =
            entry.has_claim() &&
            (entry.holder == Holder::slot || entry.holder == Holder::revert || name == kDefaultTarget);
        entry.hold(goes_back ? Holder::slot : Holder::policy);
    }
    std::erase_if(now_.scopes, [](const auto& item) { return item.second.is_settled(); });
    return save();
}

std::vector<Owned*> OwnedStore::all() {
    std::vector<Owned*> out;
    for (OwnedEntries* entries : {&now_.scopes, &now_.masks})
        for (auto& [name, entry] : *entries) out.push_back(&entry);
    return out;
}

}  // namespace wq
