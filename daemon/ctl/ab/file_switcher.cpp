// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/ab/file_switcher.h"

#include <fmt/format.h>

namespace wq::ab {

FileSwitcher::FileSwitcher(ValueFiles& files, const LeftStore& store, std::string path,
                           std::vector<std::string> values)
    : files_(files), store_(store), values_(std::move(values)), shown_(values_.size()) {
    left_.path = std::move(path);
}

Status FileSwitcher::begin() {
    const auto original = files_.read(left_.path);
    if (!original) return tl::unexpected(original.error());
    left_.original = in_place_ = *original;
    left_.any = true;
    if (auto saved = store_.save(left_); !saved) return saved;
    if (auto back = put_value_back(files_, left_.path, *original); !back) return back;
    for (std::size_t arm = 0; arm < values_.size(); arm++)
        if (auto learned = learn(arm); !learned) return learned;
    return {};
}

Status FileSwitcher::learn(std::size_t arm) {
    if (auto switched = to(arm); !switched) return switched;
    for (std::size_t other = 0; other < arm; other++)
        if (is_same_value(*shown_[other], *shown_[arm]))
            return fail(fmt::format("{}: '{}' and '{}' are the same setting: the file shows '{}' after each",
                                    left_.path, values_[other], values_[arm], value_in(*shown_[arm])));
    return {};
}

Status FileSwitcher::check() {
    const auto now = files_.read(left_.path);
    if (!now) return tl::unexpected(now.error());
    if (is_same_value(*now, in_place_)) return {};
    const std::string text =
        fmt::format("{}: an external writer wrote '{}', which is left as it is", left_.path, value_in(*now));
    if (const auto cleared = store_.clear(); !cleared) return tl::unexpected(cleared.error().in(text));
    return fail(text);
}

Status FileSwitcher::to(std::size_t arm) {
    if (auto ours = check(); !ours) return ours;
    auto& shown = shown_.at(arm);
    left_.ours = {in_place_};
    left_.any = !shown;
    if (shown) left_.ours.push_back(*shown);
    if (auto saved = store_.save(left_); !saved) return saved;
    if (auto wrote = files_.write(left_.path, values_[arm]); !wrote) return wrote;
    const auto now = files_.read(left_.path);
    if (!now) return tl::unexpected(now.error());
    in_place_ = *now;
    left_.ours = {*now};
    left_.any = false;
    if (auto saved = store_.save(left_); !saved) return saved;
    if (!shown) shown = *now;
    if (is_same_value(*shown, *now)) return {};
    return fail(fmt::format("{}: after writing '{}', the file showed '{}' earlier and shows '{}' now",
                            left_.path, values_[arm], value_in(*shown), value_in(*now)));
}

}  // namespace wq::ab
