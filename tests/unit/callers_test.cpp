// SPDX-License-Identifier: LGPL-2.1-or-later
// Who calls the daemon. The other end of a socket plays all callers, and the bus that knows their users.
#include "service/callers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <map>
#include <string>
#include <vector>

#include "service/budget.h"
#include "service/server.h"

namespace wq {
namespace {

using testing::ElementsAre;

class CallersTest : public testing::Test {
  protected:
    CallersTest() {
        int sockets[2];
        sd_id128_t id;
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets) != 0) return;
        ::sd_id128_randomize(&id);
        BusPtr daemon = make_end(sockets[0]);
        others_ = make_end(sockets[1]);
        ::sd_bus_set_server(daemon.get(), 1, id);
        ::sd_bus_start(daemon.get());
        ::sd_bus_start(others_.get());
        BusHandlers handlers;
        handlers.status = [this](bool by_root) {
            asked.push_back(by_root);
            return std::string("{}");
        };
        server_ = std::move(*BusServer::serve(std::move(daemon), journal_, std::move(handlers)));
        ::sd_bus_add_filter(others_.get(), nullptr, on_question, this);
        settle();
    }

    void call(const std::string& sender, bool wants_reply = true) {
        sd_bus_message* raw = nullptr;
        ::sd_bus_message_new_method_call(others_.get(), &raw, nullptr, kBusPath, kBusInterface, "GetStatus");
        const MessagePtr message(raw);
        ::sd_bus_message_set_sender(raw, sender.c_str());
        if (wants_reply) {
            ::sd_bus_call_async(others_.get(), nullptr, raw, on_reply, this, 0);
        } else {
            ::sd_bus_message_set_expect_reply(raw, 0);
            ::sd_bus_send(others_.get(), raw, nullptr);
        }
        settle();
    }
    void call_often(const std::string& sender, unsigned times) {
        for (unsigned i = 0; i < times; i++) call(sender);
    }
    // From now on the other end reads nothing, and the socket buffer is small. (sd-bus asks for 8 MB.)
    void stop_reading() {
        reading_ = false;
        const int little = 4096;
        ::setsockopt(::sd_bus_get_fd(server_->bus()), SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
    }
    BusServer& server() { return *server_; }
    // Answers the oldest question about SENDER as the bus would.
    void tell(const std::string& sender, std::uint32_t uid) {
        ::sd_bus_reply_method_return(take(sender).get(), "u", uid);
        settle();
    }
    // Returns the question.
    MessagePtr tell_error(const std::string& sender, const char* name) {
        MessagePtr question = take(sender);
        ::sd_bus_reply_method_errorf(question.get(), name, "no answer");
        settle();
        return question;
    }
    void tell_late(const MessagePtr& question, std::uint32_t uid) {
        sd_bus_message* raw = nullptr;
        ::sd_bus_message_new_method_return(question.get(), &raw);
        const MessagePtr answer(raw);
        ::sd_bus_message_append(raw, "u", uid);
        ::sd_bus_message_set_sender(raw, "org.freedesktop.DBus");
        ::sd_bus_send(others_.get(), raw, nullptr);
        settle();
    }

    std::vector<bool> asked;                           // for each status call: by root?
    std::multimap<std::string, MessagePtr> questions;  // to the bus, by sender
    std::map<std::string, unsigned> replies;           // number by error name; "": success

  private:
    static BusPtr make_end(int fd) {
        sd_bus* bus = nullptr;
        ::sd_bus_new(&bus);
        ::sd_bus_set_fd(bus, fd, fd);
        return BusPtr(bus);
    }
    void settle() {
        for (int idle = 0; idle < 2;) {
            if (!reading_) (void)::sd_bus_flush(others_.get());
            const bool busy = ::sd_bus_process(server_->bus(), nullptr) > 0 ||
                              (reading_ && ::sd_bus_process(others_.get(), nullptr) > 0);
            idle = busy ? 0 : idle + 1;
        }
    }
    MessagePtr take(const std::string& sender) {
        auto node = questions.extract(questions.find(sender));
        return std::move(node.mapped());
    }
    static int on_question(sd_bus_message* message, void* self, sd_bus_error* /*error*/) {
        if (::sd_bus_message_is_method_call(message, "org.freedesktop.DBus", "GetConnectionUnixUser") <= 0)
            return 0;
        const char* name = "";
        ::sd_bus_message_read(message, "s", &name);
        static_cast<CallersTest*>(self)->questions.emplace(name, ::sd_bus_message_ref(message));
        return 1;
    }
    static int on_reply(sd_bus_message* reply, void* self, sd_bus_error* /*error*/) {
        const sd_bus_error* error = ::sd_bus_message_get_error(reply);
        static_cast<CallersTest*>(self)->replies[error == nullptr ? "" : error->name]++;
        return 1;
    }

    Journal journal_;
    bool reading_ = true;
    std::unique_ptr<BusServer> server_;
    BusPtr others_;
};

TEST_F(CallersTest, TheBusIsAskedOnceWhoCallsAndNobodyWaitsForIt) {
    call(":1.7");
    call(":1.8");
    EXPECT_THAT(asked, ElementsAre());
    tell(":1.8", 65534);
    EXPECT_THAT(asked, ElementsAre(false)) << "the other's answer is still to come";
    tell(":1.7", 0);
    EXPECT_THAT(asked, ElementsAre(false, true));
    call(":1.7");
    call(":1.8");
    EXPECT_THAT(asked, ElementsAre(false, true, true, false));
    EXPECT_TRUE(questions.empty());
    EXPECT_EQ(replies[""], 4U);
}

TEST_F(CallersTest, WhomTheBusDoesNotKnowIsRefusedAndIsAskedAboutAgain) {
    call_often(":1.7", 2);
    tell_error(":1.7", SD_BUS_ERROR_NAME_HAS_NO_OWNER);
    EXPECT_TRUE(asked.empty());
    EXPECT_EQ(replies[SD_BUS_ERROR_LIMITS_EXCEEDED], 2U);
    EXPECT_TRUE(questions.empty());
    call(":1.7");
    tell(":1.7", 0);
    EXPECT_THAT(asked, ElementsAre(true));
}

// sd-bus makes this error when a question times out.
TEST_F(CallersTest, WithoutAnAnswerTheBusIsAskedFourTimes) {
    call_often(":1.7", 2);
    for (int i = 0; i < 4; i++) {
        ASSERT_EQ(questions.size(), 1U) << i;
        EXPECT_TRUE(replies.empty());
        tell_error(":1.7", SD_BUS_ERROR_NO_REPLY);
    }
    EXPECT_TRUE(questions.empty());
    EXPECT_TRUE(asked.empty());
    EXPECT_EQ(replies[SD_BUS_ERROR_LIMITS_EXCEEDED], 2U);
}

TEST_F(CallersTest, ALateAnswerCounts) {
    call_often(":1.7", 2);
    const MessagePtr first = tell_error(":1.7", SD_BUS_ERROR_NO_REPLY);
    call(":1.8");
    tell_late(first, 0);
    EXPECT_THAT(asked, ElementsAre(true, true));
    tell(":1.7", 65534);
    EXPECT_EQ(asked.size(), 2U) << "the second question is settled";
    tell(":1.8", 65534);
    EXPECT_THAT(asked, ElementsAre(true, true, false));
    EXPECT_EQ(replies[""], 3U);
}

TEST_F(CallersTest, BeforeTheAnswerAFewCallsOfACallerAreHeld) {
    call_often(":1.7", 100);
    EXPECT_EQ(replies[SD_BUS_ERROR_LIMITS_EXCEEDED], 96U);
    EXPECT_EQ(questions.size(), 1U);
    call(":1.8");
    tell(":1.7", 65534);
    EXPECT_EQ(asked.size(), Callers::kMostUnanswered);
    tell(":1.8", 0);
    EXPECT_EQ(asked.size(), Callers::kMostUnanswered + 1) << "one does not keep another out";
}

TEST_F(CallersTest, WhatWasHeldIsOfTheBudgetToo) {
    for (unsigned i = 0; i < Budget::kBurst; i++) {
        const std::string name = fmt::format(":1.{}", i);
        call_often(name, Callers::kMostUnanswered);
        tell(name, 65534);
    }
    EXPECT_LT(asked.size(), Budget::kBurst * 2) << "new connections do not bypass the budget";
    EXPECT_GT(replies[SD_BUS_ERROR_LIMITS_EXCEEDED], Budget::kBurst);
}

TEST_F(CallersTest, WhoReadsNoRepliesGetsNoMoreAndTheConnectionIsSaidToBeStuck) {
    call(":1.7");
    tell(":1.7", 65534);
    stop_reading();
    EXPECT_FALSE(server().is_stuck());
    for (int i = 0; i < 1000; i++) call(":1.7");
    std::uint64_t unsent = 0;
    ASSERT_EQ(::sd_bus_get_n_queued_write(server().bus(), &unsent), 0);
    EXPECT_LE(unsent, Callers::kMostReplies + 1);
    ASSERT_GT(unsent, 0U) << "the socket buffer took all replies, so the test checks nothing";
    EXPECT_FALSE(server().is_stuck()) << "the peer may still read the replies";
    EXPECT_TRUE(server().is_stuck());
}

TEST_F(CallersTest, OthersThanRootHaveOneBudget) {
    call(":1.6");
    tell(":1.6", 0);
    call(":1.7");
    tell(":1.7", 65534);
    call(":1.8");
    tell(":1.8", 1000);
    asked.clear();
    call_often(":1.7", Budget::kBurst / 2);
    call_often(":1.8", Budget::kBurst / 2);
    call_often(":1.7", 1000);
    EXPECT_GE(asked.size(), Budget::kBurst - 2) << "two were used already";
    EXPECT_LT(asked.size(), Budget::kBurst + 500)
        << "the budget did not limit the calls (or the test was very slow)";
    EXPECT_GT(replies[SD_BUS_ERROR_LIMITS_EXCEEDED], 500U);
    asked.clear();
    call_often(":1.6", 1000);
    EXPECT_EQ(asked, std::vector<bool>(1000, true)) << "root may ask as often as he likes";
}

TEST_F(CallersTest, WhatWantsNoReplyIsDropped) {
    for (int i = 0; i < 100; i++) call(":1.7", false);
    EXPECT_TRUE(replies.empty());
    tell(":1.7", 65534);
    EXPECT_THAT(asked, ElementsAre()) << "a call that expects no reply is dropped, except from root";
    call(":1.8", false);
    tell(":1.8", 0);
    EXPECT_THAT(asked, ElementsAre(true)) << "root's is done";
}

TEST_F(CallersTest, OnlySoManyAreRemembered) {
    for (std::size_t i = 0; i < Callers::kMostKnown; i++) call(fmt::format(":1.{}", i));
    call(":2.1");
    EXPECT_EQ(questions.size(), Callers::kMostKnown);
    EXPECT_EQ(replies[SD_BUS_ERROR_LIMITS_EXCEEDED], 1U);
    tell(":1.0", 0);
    call(":2.1");
    EXPECT_EQ(questions.count(":2.1"), 1U) << "a known caller is evicted for a new one";
    tell(":2.1", 0);
    EXPECT_THAT(asked, ElementsAre(true, true));
}

TEST(Budget, IsABurstAndThenARate) {
    constexpr std::uint64_t kSecond = 1'000'000;
    Budget budget;
    unsigned taken = 0;
    for (int i = 0; i < 1000; i++) taken += budget.take(kSecond) ? 1 : 0;
    EXPECT_EQ(taken, Budget::kBurst);
    for (std::uint64_t now = kSecond; now < 11 * kSecond; now += 1000) taken += budget.take(now) ? 1 : 0;
    EXPECT_NEAR(taken, Budget::kBurst + 10 * kSecond / Budget::kInterval, 1);
    EXPECT_TRUE(budget.take(100 * kSecond));
}

}  // namespace
}  // namespace wq
