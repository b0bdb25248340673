// SPDX-License-Identifier: LGPL-2.1-or-later
#include "engine/coins.h"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace wq {
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
