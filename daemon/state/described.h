// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace wq {

class JsonPlace;

// JSON that is written as text. As nlohmann::json, a document of 1,000 targets took a tenth of the time of
// applying them.
struct JsonText {
    bool lines = false;              // each member in a line of its own
    bool may_replace_bytes = false;  // that are not UTF-8; else string() throws json::exception
    std::string text = {};
    std::size_t depth = 0;

    void next();  // before each member and element
    void string(std::string_view value);
    void open(char bracket);
    void close(char bracket);

  private:
    void begin_line();
};

// Each described type has its own.
template <class T>
void describe(JsonPlace& at, T& value) = delete;

// A place in a JSON document that is written or read. A struct is described once, by a function that names
// each member; it serves both directions:
//
//     void describe(JsonPlace& at, Coin& coin) {
//         at("target", coin.target);
//         at("weight", coin.weight, 0.0, 1.0);  // a number, or each of a list, has to be in this range
//         at("arms", coin.arms);                // of described structs, strings, numbers, bools; optional,
//     }                                         // vector, deque, array of these; optional is null or a value
//
// Reading is strict: a missing, unknown or wrong-typed member and a number out of its range or type are
// refused with their place ("members[2].weight: out of range"). Checks of more than one member follow the
// members: `if (coin.weight > limit) at.refuse("...")`. An enum uses at.word().
class JsonPlace {
  public:
    // The first refusal is in ERROR, which is empty before. The text is no JSON after one. A description does
    // not change what it writes.
    JsonPlace(nlohmann::json& from, std::string& error) : from_(&from), error_(error) {}
    JsonPlace(JsonText& to, std::string& error) : to_(&to), error_(error) {}
    [[nodiscard]] bool writes() const { return to_ != nullptr; }
    [[nodiscard]] bool refused() const { return !error_.empty(); }
    void refuse(std::string_view why);
    void end_object();  // of the outermost object that is read: refuses members that no description named

    template <class T, class... Range>
    void operator()(std::string_view name, T& part, Range... range) {
        if (JsonPlace inner = member(name); !refused()) inner.value(part, range...);
        if (!writes()) drop(name);
    }
    // A list whose elements are values of maps. ADD takes each element that was read.
    template <class T, class Add, class... Map>
    void list_of_values(std::string_view name, Add add, Map&... maps) {
        JsonPlace inner = member(name);
        if (!writes()) {
            if (!refused()) inner.template read_list<T>(add);
            return drop(name);
        }
        to_->open('[');
        std::size_t at = 0;
        const auto write = [&](auto& map) {
            for (auto& [key, value] : map) inner.element(at++).value(const_cast<T&>(value));
        };
        (write(maps), ...);
        to_->close(']');
    }

    void value(bool& value);
    void value(std::string& value);
    void value(double& value, double low = std::numeric_limits<double>::lowest(),
               double high = std::numeric_limits<double>::max());
    template <class T, class... Range>
    void value(T& value, Range... range) {
        if constexpr (std::is_integral_v<T>) {
            whole_in(value, range...);
        } else if constexpr (requires { value.reset(); }) {
            if (null(!value)) return value.reset();
            if (!value) value.emplace();
            this->value(*value, range...);
        } else if constexpr (requires { value.push_back(std::move(value.front())); }) {
            if (writes()) return write_list(value, range...);
            value.clear();
            read_list<typename T::value_type>([&](auto each) { value.push_back(std::move(each)); }, range...);
        } else if constexpr (requires { value.fill(value.front()); }) {
            if (writes()) return write_list(value, range...);
            if (list_size() != value.size()) return refuse("wrong number of elements");
            for (std::size_t i = 0; i < value.size(); i++) element(i).value(value[i], range...);
        } else {
            const bool writes_object = writes() && !std::is_enum_v<T>;
            if (writes_object) to_->open('{');
            describe(*this, value);
            if (writes_object) to_->close('}');
            end_object();
        }
    }
    // One of ALL, by the text that NAME gives it.
    template <class T, class Name>
    void word(T& value, std::initializer_list<T> all, Name name) {
        std::string text = writes() ? std::string(name(value)) : "";
        this->value(text);
        if (writes() || refused()) return;
        for (const T each : all)
            if (text == name(each)) return void(value = each);
        refuse("unknown word");
    }

  private:
    JsonPlace place_in(std::string_view name, std::size_t index) const;
    JsonPlace member(std::string_view name);
    JsonPlace element(std::size_t index);
    void drop(std::string_view name);  // a member that was read; what is left at the end is unknown
    std::size_t list_size();           // refuses what is no list
    bool null(bool writes_null);
    template <class Wide>  // std::int64_t or std::uint64_t
    void whole(Wide& value, Wide low, Wide high);
    [[nodiscard]] std::string where() const;

    template <class T>
    void whole_in(T& value, T low = std::numeric_limits<T>::min(), T high = std::numeric_limits<T>::max()) {
        using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
        Wide wide = value;
        whole<Wide>(wide, low, high);
        value = static_cast<T>(wide);
    }
    template <class All, class... Range>
    void write_list(All&& all, Range... range) {
        to_->open('[');
        std::size_t at = 0;
        for (auto& each : all)
            element(at++).value(const_cast<std::remove_cvref_t<decltype(each)>&>(each), range...);
        to_->close(']');
    }
    template <class T, class Add, class... Range>
    void read_list(Add add, Range... range) {
        const std::size_t size = list_size();
        for (std::size_t i = 0; i < size && !refused(); i++) {
            T each{};
            element(i).value(each, range...);
            if (!refused()) add(std::move(each));
        }
    }

    nlohmann::json* from_ = nullptr;  // one of these two
    JsonText* to_ = nullptr;
    std::string& error_;
    const JsonPlace* outer_ = nullptr;
    std::string_view name_;  // in the outer one; empty for an element
    std::size_t index_ = 0;
};

// TEXT as JSON, or how it is not: "empty", "cut off", "not JSON" (EBADMSG).
Result<nlohmann::json> parse_json(std::string_view text);

}  // namespace wq
