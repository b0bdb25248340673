// SPDX-License-Identifier: LGPL-2.1-or-later
// Files of state: what was saved comes back, and nothing else is taken for it.
#include "state/state_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <deque>
#include <filesystem>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "base/file.h"
#include "state/record_thread.h"
#include "temp_tree.h"

namespace wq {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

enum class Colour { red, green };
std::string_view name_of(Colour colour) {
    return colour == Colour::red ? "red" : "green";
}
void describe(JsonPlace& at, Colour& colour) {
    at.word(colour, {Colour::red, Colour::green}, [](Colour each) { return name_of(each); });
}

struct Part {
    std::string name = "part";
    double weight = 0.25;
    std::optional<bool> strict = {};
    friend bool operator==(const Part&, const Part&) = default;
};
void describe(JsonPlace& at, Part& part) {
    at("name", part.name);
    at("weight", part.weight, 0.0, 1.0);
    at("strict", part.strict);
}

struct Whole {
    std::vector<Part> parts = {{}};
    std::array<double, 2> pair = {1, -2.5};
    std::deque<std::string> texts = {"a", "b"};
    std::uint8_t small = 255;
    std::int64_t whole = std::numeric_limits<std::int64_t>::min();
    std::uint64_t large = std::numeric_limits<std::uint64_t>::max();
    Colour colour = Colour::green;
    std::map<std::string, Part> by_name = {{"x", {"x", 1, true}}};
    friend bool operator==(const Whole&, const Whole&) = default;
};
void describe(JsonPlace& at, Whole& whole) {
    at("parts", whole.parts);
    at("pair", whole.pair);
    at("texts", whole.texts);
    at("small", whole.small);
    at("whole", whole.whole);
    at("large", whole.large);
    at("colour", whole.colour);
    at.list_of_values<Part>(
        "by_name", [&](Part part) { whole.by_name[part.name] = part; }, whole.by_name);
    if (!at.writes() && whole.parts.size() > 2) at.refuse("too many parts");
}

constexpr std::size_t kLimit = 2000;

// All files that this process writes can have at most so many bytes, as on a disk that is full.
class FullDisk {
  public:
    explicit FullDisk(rlim_t bytes) {
        ::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit now{bytes, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &now);
    }
    ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }
    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;

  private:
    rlimit before_{};
};

class StateFiles : public testing::Test {
  protected:
    [[nodiscard]] StateFile<Whole> file(IfBroken if_broken = IfBroken::set_aside) const {
        return {tree_.path("lib/state.json"), {.limit = kLimit, .version = 3, .if_broken = if_broken}};
    }
    [[nodiscard]] json good() const { return json::parse(*file().text({})); }
    [[nodiscard]] std::string refusal(const std::string& text) {
        tree_.write("lib/state.json", text);
        const auto read = file().read();
        return read ? "" : read.error().text.substr(file().path().size() + 2);
    }
    [[nodiscard]] std::string refusal(const char* pointer, const json& value) {
        json bad = good();
        bad[json::json_pointer(pointer)] = value;
        return refusal(bad.dump());
    }

    test::TempTree tree_{test::Dir("lib")};
};

TEST_F(StateFiles, WhatWasSavedComesBack) {
    tree_.remove("lib");
    auto first = file();
    EXPECT_EQ(*first.load(), std::nullopt) << "there is none";
    Whole whole{.texts = {}};
    whole.parts.push_back({std::string("[\"\\\n\0\x7f\u00e9{", 9), 1, false});
    whole.by_name["x"].strict = {};
    ASSERT_TRUE(first.save(whole));
    EXPECT_EQ(*file().load(), whole);
    EXPECT_FALSE(tree_.exists("lib/state.json.new"));
    tree_.write("lib/state.json", "hidden");
    ASSERT_TRUE(first.save(whole));
    EXPECT_EQ(tree_.read("lib/state.json"), "hidden") << "nothing is new, so nothing is written";
    ASSERT_TRUE(first.save({}));
    EXPECT_EQ(*file().read(), Whole());
    EXPECT_EQ(*StateFile<Part>("", {.limit = kLimit}).text({}),
              "{\n \"version\": 1,\n \"name\": \"part\",\n \"weight\": 0.25,\n \"strict\": null\n}\n");
    ASSERT_TRUE(first.remove());
    EXPECT_EQ(*file().read(), std::nullopt);
}

TEST_F(StateFiles, AHandWrittenFileIsReadStrictly) {
    EXPECT_EQ(refusal(good().dump(7)), "") << "in any layout";
    const struct {
        const char* pointer;
        json value;
        const char* says;
    } rows[] = {
        {"/version", 2, "unknown version 2"},
        {"/version", "3", "version: not a whole number"},
        {"/more", 1, "unknown key 'more'"},
        {"/parts", json::object(), "parts: not a list"},
        {"/parts", nullptr, "parts: not a list"},
        {"/parts", {1}, "parts[0]: not an object"},
        {"/parts", {{{"name", "x"}}}, "parts[0]: key 'weight' not found"},
        {"/parts", {good()["parts"][0], good()["parts"][0], good()["parts"][0]}, "too many parts"},
        {"/parts/0/name", 1, "parts[0].name: not a text"},
        {"/parts/0/weight", 1.001, "parts[0].weight: out of range"},
        {"/parts/0/weight", nullptr, "parts[0].weight: not a number"},
        {"/parts/0/weight", "1", "parts[0].weight: not a number"},
        {"/parts/0/strict", 0, "parts[0].strict: neither true nor false"},
        {"/parts/0/more", 0, "parts[0]: unknown key 'more'"},
        {"/by_name/0/weight", -1, "by_name[0].weight: out of range"},
        {"/pair", {1}, "pair: wrong number of elements"},
        {"/pair", {1, 2, 3}, "pair: wrong number of elements"},
        {"/texts", {"a", true}, "texts[1]: not a text"},
        {"/small", 256, "small: out of range"},
        {"/small", -1, "small: out of range"},
        {"/small", 1.0, "small: not a whole number"},
        {"/whole", std::numeric_limits<std::uint64_t>::max(), "whole: out of range"},
        {"/colour", "blue", "colour: unknown word"},
        {"/colour", 1, "colour: not a text"},
    };
    for (const auto& row : rows) EXPECT_EQ(refusal(row.pointer, row.value), row.says) << row.pointer;
    EXPECT_NE(refusal(R"({"version":3,"small":1e999})"), "");
    const struct {
        std::string text;
        const char* says;
    } texts[] = {{"", "empty"},
                 {"{", "cut off"},
                 {"{\"version\": 3,\n", "cut off"},
                 {"nonsense", "not JSON"},
                 {"{} {}", "not JSON"},
                 {std::string("\0\0\0", 3), "empty"},
                 {"[]", "not an object"},
                 {"null", "not an object"},
                 {"{}", "key 'version' not found"}};
    for (const auto& row : texts) EXPECT_EQ(refusal(row.text), row.says) << row.text;
}

TEST_F(StateFiles, OneThatIsCutOffAnywhereIsBroken) {
    const std::string text = *file().text({});
    for (std::size_t end = 0; end + 1 < text.size(); end++)
        EXPECT_NE(refusal(text.substr(0, end)), "") << end;
}

TEST_F(StateFiles, ABrokenOneIsSetAsideOnceAndItsOwnerBeginsAnew) {
    for (const std::string& bad : {std::string("{"), std::string(kLimit + 1, ' '), *file().text({}) + "x"}) {
        tree_.write("lib/state.json", bad);
        auto owner = file();
        const auto loaded = owner.load();
        ASSERT_FALSE(loaded);
        EXPECT_THAT(loaded.error().text, HasSubstr("; renamed to " + owner.path() + ".broken"));
        EXPECT_EQ(tree_.read("lib/state.json.broken"), bad);
        EXPECT_TRUE(file().load()) << "the next start has nothing to complain of";
        EXPECT_TRUE(owner.save({}));
    }
}

TEST_F(StateFiles, OneThatMustNotOrCannotBeSetAsideStaysAndIsNotReplaced) {
    tree_.write("lib/state.json", "{");
    auto careful = file(IfBroken::refuse);
    EXPECT_EQ(careful.load().error().code, EBADMSG);
    EXPECT_EQ(careful.save({}).error().text, careful.path() + ": could not be read, and is not replaced");
    EXPECT_FALSE(tree_.exists("lib/state.json.broken"));
    tree_.add(test::File("lib/state.json.broken/in/the/way"));
    auto stuck = file();
    EXPECT_THAT(stuck.load().error().text, HasSubstr("cut off; cannot be renamed: "));
    EXPECT_FALSE(stuck.save({}));
    EXPECT_EQ(tree_.read("lib/state.json"), "{");
}

TEST_F(StateFiles, OneThatCannotBeReadIsNeitherSetAsideNorReplaced) {
    EXPECT_EQ(refusal("{"), "cut off");
    EXPECT_EQ(tree_.read("lib/state.json"), "{") << "who only reads sets nothing aside";
    tree_.remove("lib/state.json");
    tree_.add(test::Dir("lib/state.json"));
    auto owner = file();
    EXPECT_EQ(owner.load().error().code, EISDIR);
    EXPECT_FALSE(owner.may_save());
    EXPECT_FALSE(owner.save({}));
    EXPECT_TRUE(tree_.exists("lib/state.json"));
    EXPECT_FALSE(tree_.exists("lib/state.json.broken"));
}

TEST_F(StateFiles, AFullDiskLeavesWhatWasThere) {
    auto owner = file();
    Whole first;
    first.small = 1;
    ASSERT_TRUE(owner.save(first));
    {
        const FullDisk full(100);
        EXPECT_FALSE(owner.save({}));
    }
    EXPECT_EQ(*file().read(), first);
    EXPECT_FALSE(tree_.exists("lib/state.json.new"));
    EXPECT_TRUE(owner.save({})) << "is tried again";
    EXPECT_EQ(*file().read(), Whole());
}

TEST_F(StateFiles, WhatCouldNotBeReadAgainIsNotSaved) {
    Whole whole;
    whole.parts[0].weight = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THAT(file().save(whole).error().text, HasSubstr("parts[0].weight: out of range"));
    whole = {};
    whole.texts[0] = "\xff";
    EXPECT_EQ(file().save(whole).error().code, EILSEQ);
    StateFile<Whole> lax(file().path(), {.limit = kLimit, .version = 3, .may_replace_bytes = true});
    ASSERT_TRUE(lax.save(whole));
    EXPECT_EQ((*lax.read())->texts[0], "\xef\xbf\xbd");
}

class AppendLogs : public testing::Test {
  protected:
    using Log = AppendLog<Part>;
    static Log::Line line(std::uint64_t number) { return {number, {"n\n" + std::to_string(number), 1, {}}}; }
    [[nodiscard]] Status append(std::uint64_t number) const { return log_.append({line(number)}); }
    [[nodiscard]] std::vector<std::uint64_t> numbers() const {
        std::vector<std::uint64_t> out;
        const auto lines = log_.read();
        if (!lines) return {0};
        for (const auto& each : *lines) {
            EXPECT_EQ(each.value, line(each.number).value);
            out.push_back(each.number);
        }
        return out;
    }

    test::TempTree tree_;
    Log log_{tree_.path("lib/log"), {.limit = 400}};
};

TEST_F(AppendLogs, LinesComeBackInTheirOrder) {
    EXPECT_THAT(*log_.load(), testing::SizeIs(0));
    for (const std::uint64_t number : {1, 2, 5}) ASSERT_TRUE(append(number));
    EXPECT_THAT(numbers(), ElementsAre(1, 2, 5));
    EXPECT_FALSE(log_.append({{6, {"\xff", 1, {}}}}));
    ASSERT_TRUE(append(5)) << "it was written already";
    ASSERT_TRUE(append(4));
    EXPECT_THAT(numbers(), ElementsAre(1, 2, 5));
}

TEST_F(AppendLogs, ATornLineIsCutOff) {
    for (const std::uint64_t number : {1, 2}) ASSERT_TRUE(append(number));
    const std::string text = tree_.read("lib/log");
    const std::size_t first = text.find('\n') + 1;
    for (std::size_t end = first; end < text.size(); end++) {
        tree_.write("lib/log", text.substr(0, end));
        EXPECT_THAT(numbers(), ElementsAre(1)) << end;
        EXPECT_TRUE(log_.load());
        ASSERT_TRUE(append(3));
        EXPECT_THAT(numbers(), ElementsAre(1, 3)) << end;
    }
    // A disk may get the last blocks of a line and not the first ones.
    tree_.write("lib/log", text.substr(0, first) + std::string(9, '\0') + text.substr(first + 9));
    EXPECT_THAT(numbers(), ElementsAre(1));
    ASSERT_TRUE(append(3));
    EXPECT_THAT(numbers(), ElementsAre(1, 3));
}

TEST_F(AppendLogs, ABrokenLineIsNamedAndTheFileSetAside) {
    for (const std::uint64_t number : {1, 2}) ASSERT_TRUE(append(number));
    const std::string text = tree_.read("lib/log");
    for (const auto& [bad, says] : std::vector<std::pair<std::string, std::string>>{
             {"x\n" + text, "line 1: not JSON"},
             {text + text, "line 3: number: out of range"},
             {text + R"({"version":1,"number":3,"name":"","weight":2,"strict":null})" + "\n",
              "line 3: weight: out of range"},
             {std::string(1601, '\n'), "File too large"}}) {
        tree_.write("lib/log", bad);
        const auto read = log_.read();
        ASSERT_FALSE(read);
        EXPECT_THAT(read.error().text, HasSubstr(says));
        EXPECT_THAT(log_.load().error().text, HasSubstr("; renamed to "));
        EXPECT_EQ(tree_.read("lib/log.broken"), bad);
        ASSERT_TRUE(append(9));
        EXPECT_THAT(numbers(), ElementsAre(9));
    }
}

TEST_F(AppendLogs, IsRewrittenAboveItsLimit) {
    std::size_t most = 0;
    for (std::uint64_t number = 1; number <= 100; number++) {
        ASSERT_TRUE(append(number));
        most = std::max(most, tree_.read("lib/log").size());
    }
    EXPECT_LE(most, 400U);
    EXPECT_EQ(numbers().back(), 100U);
    EXPECT_GE(numbers().size(), 2U);
}

TEST_F(AppendLogs, AFullDiskLeavesNoPartOfALine) {
    ASSERT_TRUE(append(1));
    const std::string before = tree_.read("lib/log");
    {
        const FullDisk full(before.size() + 10);
        EXPECT_FALSE(append(2));
    }
    EXPECT_EQ(tree_.read("lib/log"), before);
    ASSERT_TRUE(append(2));
    EXPECT_THAT(numbers(), ElementsAre(1, 2));
}

TEST_F(AppendLogs, OneThatCannotBeReadStays) {
    tree_.add(test::Dir("lib/log"));
    EXPECT_EQ(log_.load().error().code, EISDIR);
    EXPECT_FALSE(append(1));
    EXPECT_FALSE(tree_.exists("lib/log.broken"));
}

// ---- the thread that writes records

constexpr milliseconds kPatience{20'000};

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
    // Puts stuck() work, and returns when it has begun.
    void put_stuck(const std::string& name, const std::string& what) {
        std::promise<void> begun;
        writer_->put(
            name,
            [&begun, wait = stuck(what)] {
                begun.set_value();
                return wait();
            },
            tell(what));
        begun.get_future().wait();
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
    put_stuck("a", "a 1");
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
    EXPECT_THAT(writer_->finish(kPatience), IsEmpty());
    EXPECT_THAT(told_, ElementsAre("a: done", "b: done", "c: done"));
}

// The process is about to exit: no thread may start new work in it.
TEST_F(RecordThreadTest, AtTheEndWhatADoneAsksForIsNotBegun) {
    writer_->put("a", does("a"), [this](const Status&) { writer_->put("b", does("b"), tell("b")); });
    EXPECT_THAT(writer_->finish(kPatience), IsEmpty());
    EXPECT_THAT(writer_->finish(kPatience), ElementsAre("b"));
    EXPECT_THAT(*log_, ElementsAre("a"));
}

TEST_F(RecordThreadTest, AtTheEndWhatIsStuckIsGivenUpAndNamed) {
    put_stuck("a", "a");
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
    EXPECT_THAT(writer_->finish(kPatience), IsEmpty());
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
