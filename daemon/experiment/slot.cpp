// SPDX-License-Identifier: LGPL-2.1-or-later
#include "experiment/slot.h"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace wq {
namespace {

struct Row {
    SlotAction action;
    unsigned window;
};

constexpr std::array kRows = {
    Row{SlotAction::put, 1},   Row{SlotAction::put, 0},    Row{SlotAction::open, 0}, Row{SlotAction::look, 0},
    Row{SlotAction::close, 0}, Row{SlotAction::put, 1},    Row{SlotAction::open, 1}, Row{SlotAction::look, 1},
    Row{SlotAction::close, 1}, Row{SlotAction::finish, 1},
};
constexpr std::uint64_t kShare = 100;  // the writes of a window may take 1/100 of it

}  // namespace

SlotClock::SlotClock(const SlotTimes& times, std::uint64_t now) : times_(times), due_(now) {}

SlotAction SlotClock::action() const {
    return kRows.at(step_).action;
}

unsigned SlotClock::window() const {
    return kRows.at(step_).window;
}

void SlotClock::done(std::uint64_t now) {
    switch (action()) {
        case SlotAction::put:
            due_ = now + (step_ == 0 ? times_.lead : times_.washout);
            break;
        case SlotAction::open:
            opened_ = now;
            due_ = now + std::min(times_.look, times_.counted());
            break;
        case SlotAction::look:
            due_ = opened_ + times_.counted();
            break;
        case SlotAction::close:
            due_ = window() == 0 ? now : now + times_.drain;
            break;
        case SlotAction::finish:
            break;
    }
    step_++;
}

SlotSize size_of_slot(const std::vector<std::uint64_t>& writes, std::uint64_t window, std::size_t most) {
    SlotSize out{0, window};
    std::uint64_t sum = 0;
    for (const std::uint64_t one : writes) {
        if (out.targets == most || (out.targets > 0 && (sum + one) * kShare > window)) break;
        sum += one;
        out.targets++;
    }
    if (out.targets == 1) out.window = std::clamp(sum * kShare, window, std::max(window, kLongestWindow));
    return out;
}

namespace {

using nlohmann::json;

constexpr std::size_t kMaxCoins = 1U << 20;  // bytes; 16 members take 20 KB

}  // namespace

Side Coins::side_of(const Member& member) const {
    return member.candidate_first == (running == 0U) ? Side::candidate : Side::reference;
}

std::string Coins::text() const {
    json list = json::array();
    for (const Member& member : members)
        list.push_back({{"target", member.target},
                        {"comparison", member.comparison},
                        {"candidate_first", member.candidate_first}});
    return json{{"members", list}, {"running", running ? json(*running) : json(nullptr)}}.dump(
               -1, ' ', false, json::error_handler_t::replace) +
           "\n";
}

Result<Coins> Coins::from_text(std::string_view text) {
    try {
        const json document = json::parse(text);
        Coins out;
        for (const json& j : document.at("members"))
            out.members.push_back({j.at("target").get<std::string>(), j.at("comparison").get<std::string>(),
                                   j.at("candidate_first").get<bool>()});
        if (const json& running = document.at("running"); !running.is_null())
            out.running = running.get<unsigned>();
        return out;
    } catch (const json::exception& error) {
        return fail(json_error_text(error.what()), EBADMSG);
    }
}

Status keep_coins(const std::string& path, const Coins& coins) {
    return replace_file(path, coins.text());
}

Result<std::optional<Coins>> take_coins(const std::string& path) {
    const auto text = read_if_there(path, kMaxCoins);
    if (text && !*text) return std::nullopt;
    forget_coins(path);
    if (!text) return tl::unexpected(text.error());
    auto coins = Coins::from_text(**text);
    if (!coins) return tl::unexpected(coins.error().in(path));
    return std::optional(std::move(*coins));
}

void forget_coins(const std::string& path) {
    (void)::unlink(path.c_str());
}

}  // namespace wq
