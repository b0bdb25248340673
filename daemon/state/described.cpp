// SPDX-License-Identifier: LGPL-2.1-or-later
#include "state/described.h"

#include <cerrno>
#include <nlohmann/json.hpp>

namespace wq {

using nlohmann::json;

std::string JsonPlace::where() const {
    if (outer_ == nullptr) return "";
    if (name_.empty()) return outer_->where() + "[" + std::to_string(index_) + "]";
    const std::string outer = outer_->where();
    return outer + (outer.empty() ? "" : ".") + std::string(name_);
}

void JsonPlace::refuse(std::string_view why) {
    if (refused()) return;
    const std::string place = where();
    error_ = place + (place.empty() ? "" : ": ") + std::string(why);
}

JsonPlace JsonPlace::member(std::string_view name) {
    static json nothing;
    const bool object = json_.is_object();
    const auto found = object && !writes_ ? json_.find(name) : json_.end();
    if (!writes_ && !object) refuse("not an object");
    if (!writes_ && object && found == json_.end()) refuse("key '" + std::string(name) + "' not found");
    JsonPlace out(writes_, writes_ ? json_[std::string(name)] : refused() ? nothing : *found, error_);
    out.outer_ = this;
    out.name_ = name;
    return out;
}

JsonPlace JsonPlace::element(std::size_t index) {
    if (writes_) json_.push_back(nullptr);
    JsonPlace out(writes_, json_.at(index), error_);
    out.outer_ = this;
    out.index_ = index;
    return out;
}

void JsonPlace::begin_object() {
    if (!json_.is_object()) json_ = json::object();
}

void JsonPlace::drop(std::string_view name) {
    if (!refused()) json_.erase(json_.find(name));
}

void JsonPlace::end_object() {
    if (!writes_ && !refused() && json_.is_object() && !json_.empty())
        refuse("unknown key '" + json_.begin().key() + "'");
}

void JsonPlace::begin_list() {
    json_ = json::array();
}

std::size_t JsonPlace::list_size() {
    if (!json_.is_array()) refuse("not a list");
    return refused() ? 0 : json_.size();
}

bool JsonPlace::null(bool writes_null) {
    return writes_ ? writes_null : json_.is_null();
}

void JsonPlace::value(bool& value) {
    if (writes_)
        json_ = value;
    else if (json_.is_boolean())
        value = json_.get<bool>();
    else
        refuse("neither true nor false");
}

void JsonPlace::value(std::string& value) {
    if (writes_)
        json_ = value;
    else if (json_.is_string())
        value = std::move(json_.get_ref<std::string&>());
    else
        refuse("not a text");
}

void JsonPlace::value(double& value, double low, double high) {
    if (!writes_ && !json_.is_number()) return refuse("not a number");
    const double number = writes_ ? value : json_.get<double>();
    if (!(number >= low && number <= high)) return refuse("out of range");
    if (writes_) json_ = number;
    value = number;
}

template <class Wide>
void JsonPlace::whole(Wide& value, Wide low, Wide high) {
    if (!writes_ && !json_.is_number_integer()) return refuse("not a whole number");
    // Of the other sign, or above the largest signed one: get() would make another number of it.
    const bool fits = std::is_signed_v<Wide> ? !json_.is_number_unsigned() || json_.get<std::int64_t>() >= 0
                                             : json_.is_number_unsigned();
    if (!writes_ && !fits) return refuse("out of range");
    const Wide number = writes_ ? value : json_.get<Wide>();
    if (number < low || number > high) return refuse("out of range");
    if (writes_) json_ = number;
    value = number;
}
template void JsonPlace::whole(std::int64_t& value, std::int64_t low, std::int64_t high);
template void JsonPlace::whole(std::uint64_t& value, std::uint64_t low, std::uint64_t high);

Result<json> parse_json(std::string_view text) {
    try {
        return json::parse(text);
    } catch (const json::exception& error) {
        return fail(json_error_text(error.what()), EBADMSG);
    }
}

}  // namespace wq
