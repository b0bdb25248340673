// SPDX-License-Identifier: LGPL-2.1-or-later
//
// TOML 1.0 says what may be defined where in prose ("Keys", "Table", "Inline Table", "Array of Tables"). As a
// table: what was made in one way (rows) may be used in another (columns) or not.
//
//                    [it.x], [[it.x]]   it.x = 1   [it]   [[it]]
//     closed         -                  -          -      -
//     implicit       yes                -          yes    -
//     header         yes                -          -      -
//     dotted         yes                yes        -      -
//     list           its last element   -          -      a new element
//
// `it = 1` is never allowed where `it` is there. A table that a dotted key made is closed to dotted keys
// below other headers, too; that needs no row: to get there, their path would lead through a table with a
// header. That a dotted key may not add to what is implicit is how the test suite of TOML reads its text.
#include "policy/toml_definitions.h"

#include <algorithm>
#include <array>

namespace wq {
namespace {

enum class Use { header_path, dotted_path, header, list };

struct Row {
    TomlMade made;
    std::array<bool, 4> uses;  // by Use
};
constexpr std::array kRows = {
    Row{TomlMade::closed, {false, false, false, false}}, Row{TomlMade::implicit, {true, false, true, false}},
    Row{TomlMade::header, {true, false, false, false}},  Row{TomlMade::dotted, {true, true, false, false}},
    Row{TomlMade::list, {true, false, false, true}},
};

bool allows(TomlMade made, Use use) {
    const auto* row = std::ranges::find(kRows, made, &Row::made);
    return row->uses.at(static_cast<std::size_t>(use));
}

// The table that VALUE, a table or a list, stands for.
TomlValue& table_of(TomlValue& value) {
    return value.made == TomlMade::list ? std::get<TomlArray>(value.value).back() : value;
}

TomlValue new_table(TomlMade made, std::size_t offset) {
    return {made, offset, offset, TomlMembers{}};
}

// Goes from TOP along KEY, adding to PARTS of it.
class Path {
  public:
    Path(TomlValue& top, const TomlKey& key) : at_(&top), key_(key) {}

    // What is there under the next part of the key, or nothing; it is the next step's then.
    TomlValue* next() {
        auto& members = std::get<TomlMembers>(at_->value);
        const auto found = members.find(key_[parts_++].name);
        return found == members.end() ? nullptr : found->second.get();
    }

    // Adds VALUE as that.
    TomlValue* add(TomlValue value) {
        const TomlName& name = key_[parts_ - 1];
        value.key_offset = name.offset;
        auto& slot = std::get<TomlMembers>(at_->value)[name.name];
        slot = std::make_unique<TomlValue>(std::move(value));
        return slot.get();
    }

    // Through all parts but the last, as a PATH; what is not there is MADE, at OFFSET or where its name is.
    TomlDefined<void> walk(Use path, TomlMade made, const std::size_t* offset) {
        while (parts_ + 1 < key_.size()) {
            TomlValue* there = next();
            if (there == nullptr)
                there = add(new_table(made, offset != nullptr ? *offset : key_[parts_ - 1].offset));
            else if (!allows(there->made, path))
                return conflict(there, true);
            at_ = &table_of(*there);
        }
        return {};
    }

    [[nodiscard]] tl::unexpected<TomlConflict> conflict(const TomlValue* by, bool addition) const {
        std::string name = key_[0].name;
        for (std::size_t i = 1; i < parts_; ++i) name += "." + key_[i].name;
        return tl::unexpected(TomlConflict{key_[parts_ - 1].offset, std::move(name), by, addition});
    }

  private:
    TomlValue* at_;
    const TomlKey& key_;
    std::size_t parts_ = 0;
};

}  // namespace

TomlDefined<TomlValue*> define_table(TomlValue& top, const TomlKey& key, std::size_t offset) {
    Path path(top, key);
    if (auto walked = path.walk(Use::header_path, TomlMade::implicit, &offset); !walked)
        return tl::unexpected(walked.error());
    TomlValue* there = path.next();
    if (there == nullptr) return path.add(new_table(TomlMade::header, offset));
    if (!allows(there->made, Use::header)) return path.conflict(there, false);
    there->made = TomlMade::header;
    there->offset = offset;
    there->key_offset = key.back().offset;
    return there;
}

TomlDefined<TomlValue*> define_element(TomlValue& top, const TomlKey& key, std::size_t offset) {
    Path path(top, key);
    if (auto walked = path.walk(Use::header_path, TomlMade::implicit, &offset); !walked)
        return tl::unexpected(walked.error());
    TomlValue* there = path.next();
    if (there == nullptr)
        there = path.add({TomlMade::list, offset, offset, TomlArray{}});
    else if (!allows(there->made, Use::list))
        return path.conflict(there, false);
    return &std::get<TomlArray>(there->value).emplace_back(new_table(TomlMade::header, offset));
}

TomlDefined<TomlValue*> define_value(TomlValue& top, const TomlKey& key) {
    Path path(top, key);
    if (auto walked = path.walk(Use::dotted_path, TomlMade::dotted, nullptr); !walked)
        return tl::unexpected(walked.error());
    if (const TomlValue* there = path.next()) return path.conflict(there, false);
    return path.add({TomlMade::closed, key.back().offset, 0, false});
}

}  // namespace wq
