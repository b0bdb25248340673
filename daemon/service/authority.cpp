// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/authority.h"

#include <algorithm>
#include <cstdint>
#include <list>
#include <string>

#include "service/bus.h"

namespace wq {
namespace {

// With the time that finding the caller may take (Callers), shorter than the timeout of wq-tunectl, so that
// an order does not run after wq-tunectl reported a failure. (Other callers may give up sooner.)
constexpr std::uint64_t kAnswerTimeout = kPatience - kOrderTimeout;  // us

// If a user's agent never answers, polkit keeps the question forever, and dbus-daemon allows only 128 pending
// calls (max_replies_per_connection). So we limit how many users are asked at the same time, and we cancel a
// question after the timeout.
constexpr std::size_t kMostAsked = 16;
// The limit for all pending questions to polkit: if polkit hangs, they must not accumulate here.
constexpr std::size_t kMostPending = 64;

constexpr const char* kPolkit = "org.freedesktop.PolicyKit1";
constexpr const char* kAuthority = "/org/freedesktop/PolicyKit1/Authority";
constexpr const char* kAuthorityInterface = "org.freedesktop.PolicyKit1.Authority";

// Replies to an order: an empty reply, or the error text.
int reply(sd_bus_message* request, const Status& done) {
    if (done) return ::sd_bus_reply_method_return(request, "");
    return ::sd_bus_reply_method_errorf(request, "org.wqtuned1.Error.Failed", "%s",
                                        done.error().text.c_str());
}

int refuse(sd_bus_message* request, const char* why) {
    return ::sd_bus_reply_method_errorf(request, SD_BUS_ERROR_ACCESS_DENIED, "not allowed: %s", why);
}

// ID: "" if polkit must not ask the user.
Result<MessagePtr> make_question(sd_bus_message* request, const char* action, const std::string& id) {
    sd_bus_message* raw = nullptr;
    int r = ::sd_bus_message_new_method_call(::sd_bus_message_get_bus(request), &raw, kPolkit, kAuthority,
                                             kAuthorityInterface, "CheckAuthorization");
    MessagePtr question(raw);
    // The subject, the action, no details, whether to ask the user, the id for cancelling.
    if (r >= 0)
        r = ::sd_bus_message_append(raw, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s",
                                    ::sd_bus_message_get_sender(request), action, 0,
                                    static_cast<std::uint32_t>(!id.empty()), id.c_str());
    if (r < 0) return fail_errno("polkit", -r);
    return question;
}

}  // namespace

int Authority::on_answer(sd_bus_message* answer, void* userdata, sd_bus_error* /*error*/) {
    auto* question = static_cast<Question*>(userdata);
    auto& all = question->all->questions_;
    std::list<Question> answered;
    answered.splice(answered.end(), all,
                    std::ranges::find(all, question, [](Question& one) { return &one; }));
    sd_bus_message* request = question->request.get();
    if (!question->id.empty() && ::sd_bus_message_is_method_error(answer, SD_BUS_ERROR_NO_REPLY) != 0)
        (void)::sd_bus_call_method_async(::sd_bus_message_get_bus(request), nullptr, kPolkit, kAuthority,
                                         kAuthorityInterface, "CancelCheckAuthorization", nullptr, nullptr,
                                         "s", question->id.c_str());
    if (::sd_bus_message_is_method_error(answer, nullptr) != 0) {
        const sd_bus_error* error = ::sd_bus_message_get_error(answer);
        const std::string why = error->message != nullptr ? error->message : error->name;
        return refuse(request, ("polkit cannot be asked (" + why + "), so only root may do this").c_str());
    }
    int authorized = 0;
    int challenge = 0;
    if (::sd_bus_message_enter_container(answer, 'r', "bba{ss}") < 0 ||
        ::sd_bus_message_read(answer, "bb", &authorized, &challenge) < 0)
        return refuse(request, "invalid answer from polkit");
    if (authorized != 0) return reply(request, question->order());
    return refuse(request, challenge != 0 ? "polkit asks for authentication" : "polkit refused");
}

std::size_t Authority::count_asked() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(questions_, [](const Question& one) { return !one.id.empty(); }));
}

int Authority::carry_out(sd_bus_message* message, bool by_root, const char* action,
                         std::function<Status()> order) {
    if (by_root) return reply(message, order());
    if (questions_.size() >= kMostPending)
        return ::sd_bus_reply_method_errorf(message, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                            "too many requests wait for polkit, try again later");
    // Above kMostAsked, polkit still authorizes callers for which it need not ask a user.
    const bool interactive =
        ::sd_bus_message_get_allow_interactive_authorization(message) > 0 && count_asked() < kMostAsked;
    const std::string id = interactive ? "wq-tuned " + std::to_string(++number_) : "";
    const auto question = make_question(message, action, id);
    if (!question) return -question.error().code;
    Question& asked = questions_.emplace_back(
        Question{this, MessagePtr(::sd_bus_message_ref(message)), std::move(order), id});
    sd_bus_slot* slot = nullptr;
    const int r = ::sd_bus_call_async(::sd_bus_message_get_bus(message), &slot, question->get(), on_answer,
                                      &asked, interactive ? kAnswerTimeout : 0);
    asked.slot.reset(slot);
    if (r < 0) questions_.pop_back();
    return r < 0 ? r : 1;
}

}  // namespace wq
