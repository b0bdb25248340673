// SPDX-License-Identifier: LGPL-2.1-or-later
#include "owned/mask_store.h"

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace wq {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxMasks = 16U << 20;

json to_json(const MaskEntry& entry) {
    json may_hold = json::array();
    for (const CpuSet& cpus : entry.may_hold) may_hold.push_back(cpus.list());
    return {{"name", entry.name},
            {"inode", entry.inode},
            {"baseline", entry.baseline},
            {"may_hold", std::move(may_hold)},
            {"external", entry.external}};
}

Result<CpuSet> cpus_from(const Result<CpuSet>& cpus, const char* what) {
    if (!cpus) return fail(std::string(what) + ": " + cpus.error().text, EBADMSG);
    return *cpus;
}

// Throws json::exception. Error: the entry is not one of ours.
Result<MaskEntry> mask_from_json(const json& j) {
    if (!j.at("inode").is_number_unsigned()) return fail("\"inode\" is not an unsigned integer", EBADMSG);
    MaskEntry out{j.at("name").get<std::string>(), j.at("inode").get<ino_t>(),
                  j.at("baseline").get<std::string>()};
    if (const auto before = cpus_from(CpuSet::parse_mask(out.baseline), "baseline"); !before)
        return tl::unexpected(before.error());
    for (const json& list : j.at("may_hold")) {
        auto cpus = cpus_from(CpuSet::parse_list(list.get<std::string>()), "may_hold");
        if (!cpus) return tl::unexpected(cpus.error());
        out.may_hold.push_back(std::move(*cpus));
    }
    out.external = j.at("external").get<bool>();
    return out;
}

}  // namespace

CpuSet MaskEntry::before() const {
    return CpuSet::parse_mask(baseline).value_or(CpuSet{});
}

bool MaskEntry::may_be_ours(const CpuSet& cpus) const {
    return std::ranges::find(may_hold, cpus) != may_hold.end();
}

Whose MaskEntry::whose(const CpuSet& cpus) const {
    if (cpus == before()) return may_hold.empty() || may_be_ours(cpus) ? Whose::baseline : Whose::foreign;
    return may_be_ours(cpus) ? Whose::ours : Whose::foreign;
}

void MaskEntry::allow(const CpuSet& cpus) {
    if (may_be_ours(cpus)) return;
    may_hold.push_back(cpus);
    on_disk.yes = false;
}

void MaskEntry::announce(const CpuSet& cpus) {
    allow(before());
    allow(cpus);
}

void MaskEntry::announce_baseline() {
    if (!may_hold.empty()) allow(before());
}

Whose MaskEntry::settle(const CpuSet& cpus) {
    const Whose found = whose(cpus);
    may_hold.clear();
    if (found == Whose::ours) may_hold.push_back(cpus);
    return found;
}

Status MaskStore::load() {
    const auto text = read_if_there(path_, kMaxMasks);
    if (text && !*text) return {};
    broken_ = true;
    if (!text) return tl::unexpected(text.error());
    std::map<std::string, MaskEntry> entries;
    try {
        const json document = json::parse(**text);
        for (const json& item : document.at("entries")) {
            auto entry = mask_from_json(item);
            if (!entry) return tl::unexpected(entry.error().in(path_));
            entries[entry->name] = std::move(*entry);
        }
    } catch (const json::exception& e) {
        return fail(path_ + ": " + json_error_text(e.what()), EBADMSG);
    }
    entries_ = std::move(entries);
    saved_ = **text;
    broken_ = false;
    return mark_saved();
}

Status MaskStore::save() {
    if (broken_) return fail(path_ + ": could not be read, and is not replaced", EBADMSG);
    if (entries_.empty() && saved_.empty()) return {};
    json list = json::array();
    for (const auto& [name, entry] : entries_) list.push_back(to_json(entry));
    std::string text;
    try {
        text = json{{"version", 1}, {"entries", std::move(list)}}.dump(1) + "\n";
    } catch (const json::exception& e) {  // a name that is not UTF-8
        return fail(path_ + ": " + json_error_text(e.what()), EILSEQ);
    }
    if (text == saved_) return mark_saved();
    if (auto done = replace_file(path_, text); !done) {
        saved_.assign(1, '?');  // the file may have been replaced or not
        return done;
    }
    saved_ = std::move(text);
    return mark_saved();
}

Status MaskStore::mark_saved() {
    for (auto& [name, entry] : entries_) entry.on_disk.yes = true;
    return {};
}

MaskEntry* MaskStore::find(const std::string& name) {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
}

MaskEntry& MaskStore::put(MaskEntry entry) {
    entry.on_disk.yes = false;
    MaskEntry& place = entries_[entry.name];
    place = std::move(entry);
    return place;
}

std::vector<std::string> MaskStore::names() const {
    std::vector<std::string> out;
    for (const auto& [name, entry] : entries_) out.push_back(name);
    return out;
}

}  // namespace wq
