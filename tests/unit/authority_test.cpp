// SPDX-License-Identifier: LGPL-2.1-or-later
// Who may give orders. At the other end of a socket, a caller who is not root gives orders, and the test
// answers in place of polkit.
#include "service/authority.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <vector>

#include "as_nobody.h"
#include "service/bus.h"

namespace wq {
namespace {

using test::as_nobody;

struct Question {
    MessagePtr message;
    bool person;  // polkit may ask the person
    std::string id;
};

class Ends {
  public:
    Ends() {
        int sockets[2];
        sd_id128_t id;
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets) != 0) return;
        ::sd_id128_randomize(&id);
        daemon_ = make_end(sockets[0]);
        caller_ = make_end(sockets[1]);
        ::sd_bus_set_server(daemon_.get(), 1, id);
        ::sd_bus_add_filter(daemon_.get(), nullptr, on_order, this);
        ::sd_bus_add_filter(caller_.get(), nullptr, on_question, this);
        ::sd_bus_start(daemon_.get());
        ::sd_bus_start(caller_.get());
        settle();
    }

    void order(bool interactive) {
        sd_bus_message* raw = nullptr;
        ::sd_bus_message_new_method_call(caller_.get(), &raw, kBusName, kBusPath, kBusInterface, "Order");
        const MessagePtr message(raw);
        ::sd_bus_message_set_allow_interactive_authorization(raw, interactive ? 1 : 0);
        ::sd_bus_call_async(caller_.get(), nullptr, raw, on_reply, this, 0);
        settle();
    }
    void say_yes(const Question& question) {
        ::sd_bus_reply_method_return(question.message.get(), "(bba{ss})", 1, 0, 0);
        settle();
    }
    // The error that sd-bus delivers when the answer does not arrive in time.
    void say_nothing(const Question& question) {
        ::sd_bus_reply_method_errorf(question.message.get(), SD_BUS_ERROR_NO_REPLY, "too late");
        settle();
    }

    std::vector<Question> questions;
    std::vector<std::string> cancelled;  // ids
    std::string replies;
    unsigned carried_out = 0;

  private:
    static BusPtr make_end(int fd) {
        sd_bus* bus = nullptr;
        ::sd_bus_new(&bus);
        ::sd_bus_set_fd(bus, fd, fd);
        return BusPtr(bus);
    }
    void settle() {
        for (int idle = 0; idle < 2;) {
            const bool busy =
                ::sd_bus_process(daemon_.get(), nullptr) > 0 || ::sd_bus_process(caller_.get(), nullptr) > 0;
            idle = busy ? 0 : idle + 1;
        }
    }
    static int on_order(sd_bus_message* message, void* self, sd_bus_error* /*error*/) {
        if (::sd_bus_message_is_method_call(message, kBusInterface, "Order") <= 0) return 0;
        auto* ends = static_cast<Ends*>(self);
        return ends->authority_.carry_out(message, false, "org.wqtuned1.pin", [ends] {
            ends->carried_out++;
            return Status{};
        });
    }
    static int on_question(sd_bus_message* message, void* userdata, sd_bus_error* /*error*/) {
        auto* self = static_cast<Ends*>(userdata);
        const char* id = "";
        if (::sd_bus_message_is_method_call(message, nullptr, "CancelCheckAuthorization") > 0) {
            ::sd_bus_message_read(message, "s", &id);
            self->cancelled.emplace_back(id);
            return 1;
        }
        if (::sd_bus_message_is_method_call(message, nullptr, "CheckAuthorization") <= 0) return 0;
        std::uint32_t flags = 0;
        ::sd_bus_message_skip(message, "(sa{sv})sa{ss}");
        ::sd_bus_message_read(message, "us", &flags, &id);
        self->questions.push_back({MessagePtr(::sd_bus_message_ref(message)), flags == 1, id});
        return 1;
    }
    static int on_reply(sd_bus_message* reply, void* self, sd_bus_error* /*error*/) {
        const sd_bus_error* error = ::sd_bus_message_get_error(reply);
        static_cast<Ends*>(self)->replies +=
            error == nullptr ? "done\n" : fmt::format("{}: {}\n", error->name, error->message);
        return 1;
    }

    BusPtr daemon_;
    BusPtr caller_;
    Authority authority_;
};

TEST(Authority, WhomPolkitLetsMayOrder) {
    EXPECT_EQ(as_nobody([] {
                  Ends ends;
                  ends.order(true);
                  if (ends.carried_out != 0 || ends.questions.size() != 1) return std::string("not asked");
                  ends.say_yes(ends.questions[0]);
                  return fmt::format("{}{}", ends.carried_out, ends.replies);
              }),
              "1done\n");
}

TEST(Authority, SixteenPersonsAreAskedAtATime) {
    EXPECT_EQ(as_nobody([] {
                  Ends ends;
                  for (int i = 0; i < 18; i++) ends.order(true);
                  ends.say_yes(ends.questions[3]);  // frees a slot
                  ends.order(true);
                  std::string asked;
                  for (const Question& question : ends.questions) asked += question.person ? '1' : '0';
                  return asked;
              }),
              "1111111111111111001");
}

TEST(Authority, AtMost64QuestionsWaitForPolkit) {
    EXPECT_EQ(as_nobody([] {
                  Ends ends;
                  for (int i = 0; i < 100; i++) ends.order(false);
                  const auto asked = ends.questions.size();
                  const auto refused = std::count(ends.replies.begin(), ends.replies.end(), '\n');
                  ends.say_yes(ends.questions[3]);  // frees a slot
                  ends.order(false);
                  return fmt::format("{} {} {}", asked, refused, ends.questions.size());
              }),
              "64 36 65");
}

TEST(Authority, AQuestionThatIsGivenUpIsTakenBack) {
    EXPECT_EQ(
        as_nobody([] {
            Ends ends;
            ends.order(true);
            ends.order(true);
            ends.say_nothing(ends.questions[1]);
            const bool that_one = ends.cancelled == std::vector{ends.questions[1].id};
            return fmt::format("{} {} {}", that_one, ends.carried_out, ends.replies);
        }),
        "true 0 org.freedesktop.DBus.Error.AccessDenied: not allowed: polkit cannot be asked (too late), "
        "so only root may do this\n");
}

// Answers on a closed connection never arrive, so they must not take up places of the new one.
TEST(Authority, ANewConnectionHasAllPlacesAgain) {
    EXPECT_EQ(as_nobody([] {
                  {
                      Ends before;
                      for (int i = 0; i < 64; i++) before.order(true);
                  }
                  Ends ends;
                  ends.order(true);
                  return fmt::format("{} {}", ends.questions.size(), ends.questions.at(0).person);
              }),
              "1 true");
}

TEST(Authority, WhereNoPersonIsAskedNothingIsTakenBack) {
    EXPECT_EQ(as_nobody([] {
                  Ends ends;
                  ends.order(false);
                  ends.say_nothing(ends.questions[0]);
                  return fmt::format("{} {}", ends.questions[0].person, ends.cancelled.size());
              }),
              "false 0");
}

}  // namespace
}  // namespace wq
