// SPDX-License-Identifier: LGPL-2.1-or-later
#include "state/described.h"

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

namespace wq {

using nlohmann::json;

void JsonText::begin_line() {
    if (lines) text.append(1, '\n').append(depth, ' ');
}

void JsonText::next() {
    if (!text.ends_with('{') && !text.ends_with('[')) text += ',';
    begin_line();
}

void JsonText::string(std::string_view value) {
    const auto plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
    if (std::ranges::all_of(value, plain))
        text.append(1, '"').append(value).append(1, '"');
    else
        text += json(value).dump(
            -1, ' ', false,
            may_replace_bytes ? json::error_handler_t::replace : json::error_handler_t::strict);
}

void JsonText::open(char bracket) {
    text += bracket;
    depth++;
}

void JsonText::close(char bracket) {
    depth--;
    if (!text.ends_with('{') && !text.ends_with('[')) begin_line();
    text += bracket;
}

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

JsonPlace JsonPlace::place_in(std::string_view name, std::size_t index) const {
    JsonPlace out = *this;
    out.outer_ = this;
    out.name_ = name;
    out.index_ = index;
    return out;
}

JsonPlace JsonPlace::member(std::string_view name) {
    JsonPlace out = place_in(name, 0);
    if (writes()) {
        to_->next();
        to_->string(name);
        to_->text += to_->lines ? ": " : ":";
        return out;
    }
    static json nothing;
    const bool object = from_->is_object();
    const auto found = object ? from_->find(name) : from_->end();
    if (!object) refuse("not an object");
    if (object && found == from_->end()) refuse("key '" + std::string(name) + "' not found");
    out.from_ = refused() ? &nothing : &*found;
    return out;
}

JsonPlace JsonPlace::element(std::size_t index) {
    JsonPlace out = place_in("", index);
    if (writes())
        to_->next();
    else
        out.from_ = &from_->at(index);
    return out;
}

void JsonPlace::drop(std::string_view name) {
    if (!refused()) from_->erase(from_->find(name));
}

void JsonPlace::end_object() {
    if (!writes() && !refused() && from_->is_object() && !from_->empty())
        refuse("unknown key '" + from_->begin().key() + "'");
}

std::size_t JsonPlace::list_size() {
    if (!from_->is_array()) refuse("not a list");
    return refused() ? 0 : from_->size();
}

bool JsonPlace::null(bool writes_null) {
    if (!writes()) return from_->is_null();
    if (writes_null) to_->text += "null";
    return writes_null;
}

void JsonPlace::value(bool& value) {
    if (writes())
        to_->text += value ? "true" : "false";
    else if (from_->is_boolean())
        value = from_->get<bool>();
    else
        refuse("neither true nor false");
}

void JsonPlace::value(std::string& value) {
    if (writes())
        to_->string(value);
    else if (from_->is_string())
        value = std::move(from_->get_ref<std::string&>());
    else
        refuse("not a text");
}

void JsonPlace::value(double& value, double low, double high) {
    if (!writes() && !from_->is_number()) return refuse("not a number");
    const double number = writes() ? value : from_->get<double>();
    if (!(number >= low && number <= high)) return refuse("out of range");
    if (writes()) to_->text += json(number).dump();
    value = number;
}

template <class Wide>
void JsonPlace::whole(Wide& value, Wide low, Wide high) {
    if (!writes() && !from_->is_number_integer()) return refuse("not a whole number");
    // Of the other sign, or above the largest signed one: get() would make another number of it.
    const bool fits =
        writes() || (std::is_signed_v<Wide> ? !from_->is_number_unsigned() || from_->get<std::int64_t>() >= 0
                                            : from_->is_number_unsigned());
    const Wide number = writes() ? value : from_->get<Wide>();
    if (!fits || number < low || number > high) return refuse("out of range");
    if (writes()) to_->text += std::to_string(number);
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
