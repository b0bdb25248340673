// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/left_store.h"

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace wq::ab {
namespace {

using nlohmann::json;

constexpr std::size_t kMost = 1U << 20U;  // bytes; a file of /sys has at most a page

json to_json(const LeftFile& left) {
    return {
        {"file", {{"path", left.path}, {"original", left.original}, {"ours", left.ours}, {"any", left.any}}}};
}

json to_json(const LeftArm& left) {
    return {{"arm", {{"name", left.name}, {"undo", left.undo}, {"failed", left.failed}}}};
}

Left from_json(const json& document) {
    if (const auto file = document.find("file"); file != document.end())
        return LeftFile{file->at("path").get<std::string>(), file->at("original").get<std::string>(),
                        file->at("ours").get<std::vector<std::string>>(), file->at("any").get<bool>()};
    const json& arm = document.at("arm");
    return LeftArm{arm.at("name").get<std::string>(), arm.at("undo").get<std::string>(),
                   arm.at("failed").get<bool>()};
}

}  // namespace

Result<std::optional<Left>> LeftStore::load() const {
    const auto text = read_if_there(path_, kMost);
    if (!text) return tl::unexpected(text.error());
    if (!*text) return std::nullopt;
    try {
        return std::optional(from_json(json::parse(**text)));
    } catch (const json::exception& e) {
        return fail(path_ + ": " + json_error_text(e.what()), EBADMSG);
    }
}

Status LeftStore::save(const Left& left) const {
    std::string text;
    try {
        json document = std::visit([](const auto& each) { return to_json(each); }, left);
        document["version"] = 1;
        text = document.dump(1) + "\n";
    } catch (const json::exception&) {
        return fail(path_ + ": a path, name, value or command to be saved is not UTF-8", EILSEQ);
    }
    return replace_file(path_, text, 0600);  // commands may have secrets
}

Status LeftStore::clear() const {
    return remove_file(path_);
}

}  // namespace wq::ab
