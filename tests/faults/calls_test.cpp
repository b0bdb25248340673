// SPDX-License-Identifier: LGPL-2.1-or-later
// Each call on files in the life of a daemon fails in each way, one at a time.
#include <gtest/gtest.h>

#include <cerrno>
#include <iostream>
#include <set>

#include "scenario.h"

namespace wq::faults {
namespace {

using Kind = Fault::Kind;
using Where = Fault::Where;

// ENOENT and ENODEV do not last: a file that stays absent is gone, and the daemon may forget it.
std::vector<Fault> all_faults() {
    std::vector<Fault> out;
    for (const int code : {EINTR, EAGAIN, EIO, ENOMEM, ENOSPC, EINVAL, ENODEV, ENOENT, EROFS})
        out.push_back({.code = code});
    out.push_back({.kind = Kind::short_one});
    out.push_back({.kind = Kind::torn, .code = EIO});
    out.push_back({.kind = Kind::torn, .code = ENOSPC});
    for (const int code : {EIO, ENOMEM}) {
        out.push_back({.code = code, .lasting = true});
        out.push_back({.code = code, .lasting = true, .where = Where::kernel});
        out.push_back({.code = code, .lasting = true, .where = Where::stores});
    }
    for (const int code : {ENOSPC, EROFS})
        out.push_back({.code = code, .lasting = true, .where = Where::stores, .writing = true});
    for (const int code : {EINVAL, EPERM})
        out.push_back({.code = code, .lasting = true, .where = Where::kernel, .writing = true});
    out.push_back({.kind = Kind::torn, .code = ENOSPC, .lasting = true, .where = Where::stores});
    out.push_back({.kind = Kind::short_one, .lasting = true});
    return out;
}

// `asked`: the daemon's status is asked for after each step. `next_start`: the daemon starts and stops once
// more before ExecStopPost=.
struct Variant {
    bool asked = false;
    bool next_start = false;
};

struct Result {
    std::string struck;  // which call failed
    std::string wrong;
};

Result run(const Scenario& scenario, unsigned at, const Fault& fault, const Variant& variant) {
    Host host(scenario.options());
    host.edge.fail(at, fault);
    Result out;
    live(scenario, host, [&](const Step& step) {
        std::string wrong = wrong_on_disk(host);
        if (variant.asked) wrong += wrong_in_status(host);
        if (!wrong.empty()) out.wrong += "after " + step.name + ": " + wrong;
    });
    out.struck = host.edge.struck();
    host.edge.heal();
    host.edge.watch();
    if (variant.next_start) {
        host.start();
        host.ticks(1);
        host.stop();
    }
    const std::string restored = host.restore();
    host.edge.rest();
    if (const std::string wrong = restored + wrong_at_the_end(host); !wrong.empty())
        out.wrong += "at the end: " + wrong;
    return out;
}

// How many calls a life makes, and which of them are fsyncs.
struct Counted {
    unsigned all = 0;
    std::set<unsigned> fsyncs;
};

Counted calls_of(const Scenario& scenario) {
    Counted out;
    Host host(scenario.options());
    host.edge.record = [&](const Done& done) {
        if (done.call == Call::fsync) out.fsyncs.insert(host.edge.calls());
    };
    live(scenario, host);
    out.all = host.edge.calls();
    return out;
}

// Short: some calls, each in one way, so that similar ones fail differently. A long life, whose slots repeat
// calls: each in a fourth of the ways. Both: each fsync with EIO, as the disk's content is not known then.
bool is_tried(unsigned at, std::size_t way, const std::vector<Fault>& faults, const Counted& calls) {
    const Fault& fault = faults[way];
    if (calls.fsyncs.contains(at) && fault.code == EIO && fault.kind == Kind::error && !fault.lasting)
        return true;
    if (is_long()) return calls.all < 1000 || (at / 4 + way) % 4 == 0;  // not at + way, as Variant has it
    return at % 11 == 0 && (at / 11 * std::size_t{7}) % faults.size() == way;
}

class Calls : public testing::TestWithParam<std::size_t> {
  protected:
    const Scenario& scenario_ = scenarios()[GetParam()];
};

TEST_P(Calls, FailEachInEachWay) {
    const auto faults = all_faults();
    const Counted calls = calls_of(scenario_);
    ASSERT_GT(calls.all, 100U);
    unsigned runs = 0;
    unsigned struck = 0;
    unsigned wrong = 0;
    for (unsigned at = 1; at <= calls.all; at++) {
        for (std::size_t i = 0; i < faults.size(); i++) {
            if (!is_tried(at, i, faults, calls)) continue;
            const Variant variant{(at + i) % 2 != 0, (at + i) % 4 < 2};
            const auto result = run(scenario_, at, faults[i], variant);
            runs++;
            struck += result.struck.empty() ? 0 : 1;
            if (!result.wrong.empty() && ++wrong <= 10)
                ADD_FAILURE() << scenario_.name << ", call " << at << " (" << result.struck << "), "
                              << faults[i].text() << (variant.asked ? ", asked" : "")
                              << (variant.next_start ? ", next start" : "") << ":\n"
                              << result.wrong;
        }
    }
    std::cout << scenario_.name << ": " << calls.all << " calls, " << faults.size() << " ways, " << runs
              << " lives, a fault struck in " << struck << ", wrong " << wrong << "\n";
    EXPECT_EQ(wrong, 0U);
    EXPECT_GT(struck, runs / 3) << "most faults come to nothing";
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Calls, testing::Range<std::size_t>(0, scenarios().size()),
                         [](const auto& info) { return scenarios()[info.param].name; });

// An idle tick costs the same with any number of workqueues.
TEST(Lives, TicksReadWhatWeOwnAlone) {
    const std::string folder = "sys/devices/virtual/workqueue/";
    Host host(scenarios()[0].options());
    std::set<std::string> seen;  // workqueues
    host.edge.record = [&](const Done& done) {
        const std::size_t end = done.path.find('/', folder.size());
        if (done.path.starts_with(folder) && end != std::string::npos)
            seen.insert(done.path.substr(folder.size(), end - folder.size()));
    };
    const auto read_in_ticks = [&] {
        seen.clear();
        host.edge.watch();
        host.ticks(4);
        host.edge.rest();
        return seen;
    };
    host.start();
    EXPECT_TRUE(read_in_ticks().empty());
    host.pin("nvme-wq", "cpu");
    EXPECT_EQ(read_in_ticks(), std::set<std::string>{"nvme-wq"});
    host.write("nvme-wq", "numa");
    EXPECT_EQ(read_in_ticks().size(), kTargets.size() - 1) << "something changed: all are looked at";
    EXPECT_EQ(host.daemon->parts().targets.all().at("nvme-wq").state, State::external);
}

// Without a fault, each scenario does what it is there to test.
TEST(Lives, DoWhatTheySay) {
    for (const Scenario& scenario : scenarios()) {
        Host host(scenario.options());
        std::string wrong;
        live(scenario, host, [&](const Step& step) {
            wrong = wrong_on_disk(host) + wrong_in_status(host);
            EXPECT_EQ(wrong, "") << scenario.name << " after " << step.name;
        });
        if (scenario.name == "trials") {
            EXPECT_EQ(host.log.count(Event::verdict), 2U);
            EXPECT_EQ(host.log.count(Event::external), 0U);
        }
        if (scenario.name == "default") {
            EXPECT_GE(host.log.count(Event::verdict), 1U);
        }
        if (scenario.name == "foreign") {
            EXPECT_EQ(host.log.count(Event::external), 4U) << "two noticed, the same two left as found";
            EXPECT_GE(host.log.count(Event::comparison_cut_off), 1U);
        }
        if (scenario.name == "unsupported") {
            EXPECT_EQ(host.log.count(Event::unsupported), 3U);
        }
        EXPECT_EQ(host.restore(), "") << scenario.name;
        EXPECT_EQ(wrong_at_the_end(host), "") << scenario.name;
    }
}

}  // namespace
}  // namespace wq::faults
