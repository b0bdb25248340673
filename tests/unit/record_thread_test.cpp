// SPDX-License-Identifier: LGPL-2.1-or-later
#include "state/record_thread.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

#include "base/file.h"
#include "temp_tree.h"

namespace wq {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr milliseconds kLong{20'000};

class RecordThreadTest : public testing::Test {
  protected:
    RecordThreadTest() {
        sd_event* event = nullptr;
        EXPECT_GE(::sd_event_new(&event), 0);
        event_.reset(event);
        EXPECT_TRUE(writer_->start(event, [this] { rounds_++; }));
    }
    ~RecordThreadTest() override { disk_answers(); }

    // Work that waits until disk_answers().
    RecordWriter::Work stuck(const std::string& what) {
        return [what, gate = gate_.get_future().share(), log = log_] {
            gate.wait();
            log->push_back(what);
            return Status();
        };
    }
    void disk_answers() {
        if (!answered_) gate_.set_value();
        answered_ = true;
    }
    RecordWriter::Work does(const std::string& what, Status result = {}) {
        return [log = log_, what, result] {
            log->push_back(what);
            return result;
        };
    }
    RecordWriter::Done tell(const std::string& what) {
        return [this, what](const Status& status) {
            told_.push_back(what + (status ? ": done" : ": " + status.error().text));
        };
    }
    void loop_until_told(std::size_t n) {
        while (told_.size() < n && ::sd_event_run(event_.get(), 20'000'000) > 0) {
        }
        EXPECT_EQ(told_.size(), n);
    }

    struct Unref {
        void operator()(sd_event* event) const { ::sd_event_unref(event); }
    };
    std::unique_ptr<sd_event, Unref> event_;
    std::promise<void> gate_;
    bool answered_ = false;
    // Written by the thread; read only after the work was reported.
    std::shared_ptr<std::vector<std::string>> log_ = std::make_shared<std::vector<std::string>>();
    std::vector<std::string> told_;
    int rounds_ = 0;
    std::unique_ptr<RecordThread> writer_ = std::make_unique<RecordThread>();
};

TEST_F(RecordThreadTest, WorkIsDoneAndToldOnTheLoop) {
    writer_->put("a", does("a"), tell("a"));
    writer_->put("b", does("b", fail("full", ENOSPC)), tell("b"));
    writer_->put(
        "c", []() -> Status { throw std::runtime_error("thrown"); }, tell("c"));
    EXPECT_THAT(told_, IsEmpty()) << "not before the loop runs";
    loop_until_told(3);
    EXPECT_THAT(told_, ElementsAre("a: done", "b: full", "c: thrown"));
    EXPECT_GE(rounds_, 1);
    writer_->put("d", does("d"), tell("d"));
    loop_until_told(4);
    EXPECT_THAT(*log_, ElementsAre("a", "b", "d")) << "a second thread does what comes later";
}

TEST_F(RecordThreadTest, NobodyWaitsForWorkThatIsStuckAndTheNewestWins) {
    std::promise<void> begun;
    writer_->put(
        "a",
        [&begun, wait = stuck("a 1")] {
            begun.set_value();
            return wait();
        },
        tell("a 1"));
    begun.get_future().wait();
    writer_->put("b", does("b"), tell("b"));
    for (const char* what : {"a 2", "a 3", "a 4"}) writer_->put("a", does(what), tell(what));
    EXPECT_THAT(told_, IsEmpty());
    disk_answers();
    loop_until_told(5);
    EXPECT_THAT(*log_, ElementsAre("a 1", "b", "a 4"));
    EXPECT_THAT(told_, ElementsAre("a 1: done", "b: done", "a 2: done", "a 3: done", "a 4: done"));
}

TEST_F(RecordThreadTest, AtTheEndAllIsWaitedFor) {
    for (const char* what : {"a", "b", "c"}) writer_->put(what, does(what), tell(what));
    EXPECT_THAT(writer_->finish(kLong), IsEmpty());
    EXPECT_THAT(told_, ElementsAre("a: done", "b: done", "c: done"));
}

// The process is about to exit: no thread may start new work in it.
TEST_F(RecordThreadTest, AtTheEndWhatADoneAsksForIsNotBegun) {
    writer_->put("a", does("a"), [this](const Status&) { writer_->put("b", does("b"), tell("b")); });
    EXPECT_THAT(writer_->finish(kLong), IsEmpty());
    EXPECT_THAT(writer_->finish(kLong), ElementsAre("b"));
    EXPECT_THAT(*log_, ElementsAre("a"));
}

TEST_F(RecordThreadTest, AtTheEndWhatIsStuckIsGivenUpAndNamed) {
    std::promise<void> begun;
    writer_->put(
        "a",
        [&begun, wait = stuck("a")] {
            begun.set_value();
            return wait();
        },
        tell("a"));
    begun.get_future().wait();
    writer_->put("b", does("b"), tell("b"));
    EXPECT_THAT(writer_->finish(milliseconds(50)), ElementsAre("a", "b"));
    EXPECT_THAT(told_, IsEmpty());
    writer_.reset();  // the destructor does not wait for it either
}

TEST_F(RecordThreadTest, WithoutWorkThereIsNoThread) {
    const auto threads = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
    };
    const auto before = threads();
    writer_->put("a", does("a"), tell("a"));
    EXPECT_THAT(writer_->finish(kLong), IsEmpty());
    for (int i = 0; i < 2000 && threads() > before; i++) std::this_thread::sleep_for(milliseconds(10));
    EXPECT_LE(threads(), before);
}

// A killed daemon stays until its thread that waits for a disk is gone. The lock and the BPF programs must be
// released before that, so the thread does not hold them.
TEST_F(RecordThreadTest, TheThreadHoldsNothingOpenOfTheDaemons) {
    test::TempTree tree{test::File("lock")};
    const Fd lock(::open(tree.path("lock").c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_TRUE(lock);
    const auto is_open = [fd = lock.get()] { return ::fcntl(fd, F_GETFD) >= 0; };
    writer_->put(
        "a",
        [is_open]() -> Status {
            if (is_open()) return fail("the lock is open here");
            return {};
        },
        tell("a"));
    loop_until_told(1);
    EXPECT_THAT(told_, ElementsAre("a: done"));
    EXPECT_TRUE(is_open());
}

}  // namespace
}  // namespace wq
