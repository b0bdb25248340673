// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/callers.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace wq {
namespace {

// How long the first answer of the bus may take, in us; each further one may take twice as long.
constexpr std::uint64_t kFirstAnswer = 1'000'000;
// All of them together take less than kOrderTimeout, so that an order rarely runs after wq-tunectl gave up.
constexpr std::uint64_t kLastAnswer = kOrderTimeout / 2;
constexpr const char* kBus = "org.freedesktop.DBus";

// Returns "" if the bus is a direct connection to the caller.
const char* sender_of(sd_bus_message* message) {
    const char* sender = ::sd_bus_message_get_sender(message);
    return sender != nullptr ? sender : "";
}

// For a direct connection without a bus: checks the peer's credentials on the socket.
bool is_peer_root(sd_bus_message* message) {
    sd_bus_creds* creds = nullptr;
    if (::sd_bus_query_sender_creds(message, SD_BUS_CREDS_EUID, &creds) < 0) return false;
    uid_t uid = 0;
    const bool root = ::sd_bus_creds_get_euid(creds, &uid) >= 0 && uid == 0;
    ::sd_bus_creds_unref(creds);
    return root;
}

bool wants_reply(sd_bus_message* message) {
    return ::sd_bus_message_get_expect_reply(message) > 0;
}

int ask_to_retry(sd_bus_message* message, const char* why) {
    if (!wants_reply(message) || !Callers::has_room(::sd_bus_message_get_bus(message))) return 1;
    return ::sd_bus_reply_method_errorf(message, SD_BUS_ERROR_LIMITS_EXCEEDED, "%s, try again later", why);
}

int refuse_more(sd_bus_message* message) {
    return ask_to_retry(message, "too many calls by others than root");
}

}  // namespace

// sd-bus does not tell the number of unsent bytes. Assumes that all unsent messages are as long as this
// reply.
bool Callers::has_room(sd_bus* bus, std::size_t bytes) {
    std::uint64_t unsent = 0;
    return ::sd_bus_get_n_queued_write(bus, &unsent) >= 0 && unsent <= kMostReplies &&
           unsent * bytes <= kMostReplyBytes;
}

Callers::Callers(sd_bus* bus) : bus_(bus) {
    sd_bus_slot* slot = nullptr;
    (void)::sd_bus_add_filter(bus, &slot, on_message, this);  // fails only if memory is exhausted
    filter_.reset(slot);
}

int Callers::when_known(sd_bus_message* message, Then then) {
    const auto found = callers_.find(sender_of(message));
    if (found == callers_.end()) return refuse_more(message);
    Caller& caller = found->second;
    if (caller.who != Who::asked) return then(message, caller.who == Who::root);
    caller.held.push_back({MessagePtr(::sd_bus_message_ref(message)), std::move(then)});
    return 1;
}

int Callers::on_message(sd_bus_message* message, void* self, sd_bus_error* /*error*/) {
    auto* callers = static_cast<Callers*>(self);
    std::uint8_t type = 0;
    (void)::sd_bus_message_get_type(message, &type);
    if (type == SD_BUS_MESSAGE_METHOD_RETURN) return callers->is_late_answer(message) ? 1 : 0;
    return type != SD_BUS_MESSAGE_METHOD_CALL || callers->may_call(message) ? 0 : refuse_more(message);
}

bool Callers::may_call(sd_bus_message* message) {
    Caller* caller = find_or_ask(message);
    if (caller == nullptr) return false;
    if (caller->who == Who::asked) return caller->unanswered++ < kMostUnanswered;
    return caller->who == Who::root || is_within_budget(message);
}

// A call that wants no reply is not executed.
bool Callers::is_within_budget(sd_bus_message* message) {
    return wants_reply(message) && has_room(bus_) && budget_.take(monotonic_us());
}

// Returns nullptr if there are too many callers whose user is not known yet.
Callers::Caller* Callers::find_or_ask(sd_bus_message* message) {
    const char* name = sender_of(message);
    if (const auto found = callers_.find(name); found != callers_.end()) return &found->second;
    if (callers_.size() >= kMostKnown) forget_known();
    if (callers_.size() >= kMostKnown) return nullptr;
    Caller& caller = callers_.emplace(name, Caller{this, name}).first->second;
    if (caller.name.empty()) {
        caller.who = is_peer_root(message) ? Who::root : Who::other;
        return &caller;
    }
    if (ask(caller, kFirstAnswer)) return &caller;
    callers_.erase(caller.name);
    return nullptr;
}

// Forgets callers whose user is known. We ask again at their next call.
void Callers::forget_known() {
    std::erase_if(callers_, [](const auto& each) { return each.second.who != Who::asked; });
}

bool Callers::ask(Caller& caller, std::uint64_t timeout) {
    sd_bus_message* raw = nullptr;
    int r = ::sd_bus_message_new_method_call(bus_, &raw, kBus, "/org/freedesktop/DBus", kBus,
                                             "GetConnectionUnixUser");
    const MessagePtr question(raw);
    sd_bus_slot* slot = nullptr;
    if (r >= 0) r = ::sd_bus_message_append(raw, "s", caller.name.c_str());
    if (r >= 0) r = ::sd_bus_call_async(bus_, &slot, raw, on_answer, &caller, timeout);
    std::uint64_t cookie = 0;
    if (r >= 0) r = ::sd_bus_message_get_cookie(raw, &cookie);
    caller.question.reset(slot);
    caller.timeout = timeout;
    caller.cookies.push_back(cookie);
    return r >= 0;
}

// If a flood fills the queue that dbus-daemon holds for us, it drops its answers without an error
// (dbus, bus/connection.c, bus_transaction_send_from_driver()). So we ask again some times.
int Callers::on_answer(sd_bus_message* answer, void* userdata, sd_bus_error* /*error*/) {
    auto* caller = static_cast<Caller*>(userdata);
    if (::sd_bus_message_is_method_error(answer, SD_BUS_ERROR_NO_REPLY) == 0 ||
        2 * caller->timeout > kLastAnswer || !caller->all->ask(*caller, 2 * caller->timeout))
        caller->all->settle(*caller, answer);
    return 1;
}

// Answers to earlier questions, which were behind the flood. sd-bus no longer knows these questions.
bool Callers::is_late_answer(sd_bus_message* message) {
    std::uint64_t cookie = 0;
    const char* sender = ::sd_bus_message_get_sender(message);
    if (sender == nullptr || std::string_view(sender) != kBus ||
        ::sd_bus_message_get_reply_cookie(message, &cookie) < 0)
        return false;
    for (auto& [name, caller] : callers_) {
        if (caller.who != Who::asked || std::ranges::find(caller.cookies, cookie) == caller.cookies.end())
            continue;
        settle(caller, message);
        return true;
    }
    return false;
}

// If ANSWER does not tell the user (the caller is gone, or the bus never answered), the calls are refused,
// and we ask again at the next call.
void Callers::settle(Caller& caller, sd_bus_message* answer) {
    std::uint32_t uid = 0;
    const bool known = ::sd_bus_message_is_method_error(answer, nullptr) == 0 &&
                       ::sd_bus_message_read(answer, "u", &uid) > 0;
    const bool root = known && uid == 0;
    caller.who = root ? Who::root : Who::other;
    caller.question.reset();
    for (const Held& each : std::exchange(caller.held, {}))
        if (!known)
            (void)ask_to_retry(each.message.get(), "the bus does not say who calls");
        else if (root || is_within_budget(each.message.get()))
            (void)each.then(each.message.get(), root);
        else
            (void)refuse_more(each.message.get());
    if (!known) callers_.erase(std::string(caller.name));
}

}  // namespace wq
