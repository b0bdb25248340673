// SPDX-License-Identifier: LGPL-2.1-or-later
// `wq-tunectl report`: its parts, its drawings, and the command on trees.
#include <gmock/gmock.h>
#include <pty.h>
#include <sys/stat.h>
#include <unistd.h>

#include <limits>

#include "ctl/render/page.h"
#include "fake_machine.h"
#include "run_command.h"
#include "verdict_files.h"

namespace wq::ctl {
namespace {

using test::machine;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kNasty = "<script>alert(\"1\")</script>&'\x1b[31m\xff\u009b";

// Returns how often WHAT occurs in TEXT.
std::size_t count(const std::string& text, const std::string& what) {
    std::size_t n = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) n++;
    return n;
}

// Expects that each element is closed, in order, except elements without an end tag.
void expect_well_formed(const std::string& html) {
    std::vector<std::string> open;
    for (auto at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
        const auto end = html.find('>', at);
        ASSERT_NE(end, std::string::npos);
        const std::string tag = html.substr(at + 1, end - at - 1);
        const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
        if (tag.back() == '/' || name == "meta" || name == "!DOCTYPE") continue;
        if (tag.front() != '/') {
            open.push_back(name);
            continue;
        }
        ASSERT_FALSE(open.empty()) << tag;
        ASSERT_EQ("/" + open.back(), tag);
        open.pop_back();
    }
    EXPECT_TRUE(open.empty());
}

TEST(Page, LoadsNothingAndObeysNoText) {
    EXPECT_EQ(escape("kcryptd-254:0-1 größer"), "kcryptd-254:0-1 größer");
    Table table({"NAME", "STATE"});
    table.paint(1, [](std::string_view) -> std::string_view { return "\x1b[1m"; });
    table.add({kNasty, kNasty});
    Shown shown;
    shown.add(kNasty);
    shown.add("");
    shown.add(std::move(table));
    const std::string html = page(kNasty, kNasty, section("Plan", shown.html()));
    expect_well_formed(html);
    EXPECT_EQ(count(html, "&lt;script"), 7U) << "title, h1, head, paragraph, two cells and the class of one";
    EXPECT_EQ(count(html, "?[31m???"), 7U);
    EXPECT_EQ(count(html, "<p>"), 2U);
    EXPECT_THAT(html, AllOf(HasSubstr("default-src 'none'"), HasSubstr("<td data-label=\"NAME\">"),
                            Not(HasSubstr("<script")), Not(HasSubstr("http:")), Not(HasSubstr("https:")),
                            Not(HasSubstr("url("))));
}

TEST(EffectsFigure, HasADotForEachPairAndStaysInItsFrame) {
    for (const std::vector<double>& percent : {std::vector<double>{5},
                                               {-20, 30, 0},
                                               std::vector<double>(64, 0.0),
                                               {std::numeric_limits<double>::infinity(), -100, 1e300}}) {
        const std::string html = effects_html(kNasty, percent, {3, Effect::Interval{-1e9, 1e9}});
        expect_well_formed(html);
        EXPECT_THAT(html, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("inf")), Not(HasSubstr("nan"))));
        const auto dots = html.substr(html.find("class=\"dots\""));
        EXPECT_EQ(count(dots, "h0"), percent.size());
        EXPECT_LT(html.size(), 900 + 16 * percent.size()) << "coordinates are of the frame";
    }
}

std::string drawn(const Topology& topology, const Isolation& isolation = {}) {
    const KernelInfo kernel = test::kernel_72();
    const std::string html = machine_html({topology, kernel, 8, isolation});
    expect_well_formed(html);
    return html;
}

TEST(DrawnMachine, HasAnElementPerCoreAndPerThread) {
    const std::string html = drawn(machine({.sockets = 2, .cores = 12, .threads = 2}));
    EXPECT_EQ(count(html, " data-core=\""), 24U);
    EXPECT_EQ(count(html, "<p>Package "), 2U);
    EXPECT_EQ(count(html, "<p>LLC "), 2U);
    EXPECT_EQ(count(html, "<div class=\"shard \" title=\"CPUs 0-5,24-29\""), 1U);
    EXPECT_EQ(count(html, "<div class=\"shard "), 5U) << "12 cores are two shards; one is in the legend";
    EXPECT_THAT(html, HasSubstr("data-core=\"23\"><b class=\"\">23</b><b class=\"\">47</b></span>"));
    EXPECT_THAT(html, HasSubstr("LLC 1, node 1 <small>12-23,36-47</small>"));
}

TEST(DrawnMachine, MarksWhatIsSetApart) {
    Topology topology = test::without(machine({.cores = 6, .threads = 2}), "5,11");
    topology.isolated = {2, 8, 3};  // a core, and one thread of another
    for (Llc& llc : topology.llcs) llc.cpus -= topology.isolated;
    const std::string html =
        drawn(topology, {topology.isolated, {3, 4}, {{"/rt", {4}, "isolated"}, {"/all", {0}, "root"}}, true});
    EXPECT_EQ(count(html, " data-core=\""), 5U);
    for (const char* part : {"In no LLC <small>2,8", "data-core=\"0\"><b class=\"\">0</b>",
                             "data-core=\"2\"><b class=\"i\">2</b><b class=\"i\">8</b></span>",
                             "data-core=\"3\"><b class=\"i n\">3</b><b class=\"\">9</b></span>",
                             "data-core=\"4\"><b class=\"i n\">4</b><b class=\"\">10</b></span>",
                             "<b class=\"o\">11</b>", "isolated: CPUs 2-4,8", "(nohz_full): CPUs 3-4"})
        EXPECT_THAT(html, HasSubstr(part));
}

TEST(DrawnMachine, OfMoreThan64CpusIsFolded) {
    EXPECT_EQ(count(drawn(machine({.sockets = 2, .cores = 16, .threads = 2})), "<details"), 0U) << "64 CPUs";
    const std::string large = drawn(machine({.sockets = 2, .cores = 17, .threads = 2}));
    const auto fold = large.find("<details><summary>Drawing of all 68 CPUs</summary>");
    ASSERT_NE(fold, std::string::npos);
    EXPECT_GT(large.find(" data-core=\""), fold);
    EXPECT_EQ(count(large, " data-core=\""), 34U);
}

TEST(DrawnMachine, OfNoKnownPackageIsStillDrawn) {
    Topology topology = machine({.sockets = 2, .cores = 4});
    topology.packages.pop_back();
    EXPECT_EQ(count(drawn(topology), " data-core=\""), 8U);
    topology.packages.clear();
    EXPECT_EQ(count(drawn(topology), " data-core=\""), 8U);
}

class ReportCommand : public testing::Test {
  protected:
    ReportCommand() {
        for (const auto& entry : test::kernel_tree({test::workqueue("a<b&c")})) tree_.add(entry);
        options_.root = tree_.root();
        VerdictRecord record;
        record.key = test::key_of("kcryptd-#");
        record.target = "kcryptd-1";
        record.time = 1000;
        record.standing = {"latency", 2, 0, 0, {1.5, std::nullopt}};
        record.differences = {{"other", false, {0.01}}, {"latency", false, {0.01, 0.02}}};
        VerdictStore store(Paths{tree_.root()}.verdicts());
        EXPECT_TRUE(test::keep(store, record));
    }
    int report(const std::string& output) {
        const auto ran = test::captured([&] { return ctl::report(options_, output); });
        out_ = ran.out;
        err_ = ran.err;
        return ran.code;
    }

    test::TempTree tree_{test::cpu_tree({.cores = 4, .threads = 2}),
                         test::File("proc/sys/kernel/hostname", "a-host\n")};
    Options options_;
    std::string out_, err_;
};

// The status, the plan and the history are those of the commands; what is worth comes first.
TEST_F(ReportCommand, WritesAFileThatOthersMayRead) {
    const std::string file = tree_.path("report.html");
    ASSERT_EQ(report(file), kOk) << err_;
    EXPECT_EQ(out_ + err_, "");
    struct stat st {};
    ASSERT_EQ(::stat(file.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0644U);
    EXPECT_EQ(report(tree_.root()), kFailure);
    EXPECT_THAT(err_, HasSubstr(": exists and is not a regular file"));
    const std::string page = tree_.read("report.html");
    expect_well_formed(page);
    EXPECT_THAT(page, AllOf(testing::StartsWith("<!DOCTYPE html>"), HasSubstr("<h1>a-host</h1>"),
                            Not(HasSubstr("a<b")), HasSubstr("effect on latency, the last 2 pairs"),
                            HasSubstr("<td data-label=\"EFFECT\">latency 1.5% worse</td>")));
    EXPECT_EQ(count(page, "<td data-label=\"TARGET\">a&lt;b&amp;c</td>"), 2U) << "in status and plan";
    std::size_t last = 0;
    for (const char* part :
         {"<h2>Status", "no target runs on another scope", "data-label=\"STATE\"", "<h2>Plan",
          "data-label=\"ACTION\"", "<h2>Machine", "4 cores", "<h2>History", "kcryptd-1", "class=\"dots\""}) {
        const auto at = page.find(part, last);
        ASSERT_NE(at, std::string::npos) << part;
        last = at;
    }
}

// Like systemd-analyze plot.
TEST_F(ReportCommand, WithoutAFileItGoesToStdoutButNotToATerminal) {
    const auto all = commands();
    const auto command =
        std::ranges::find_if(all, [](const Command& one) { return std::string(one.name) == "report"; });
    ASSERT_NE(command, all.end());
    const auto run = [&] { return test::run_command(command->set_up, {}, {tree_.root(), {}}); };
    testing::internal::CaptureStdout();
    EXPECT_EQ(run(), kOk);
    EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::StartsWith("<!DOCTYPE html>"));
    int ends[2];
    ASSERT_EQ(::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr), 0);
    const Fd master(ends[0]), before(::dup(STDOUT_FILENO));
    testing::internal::CaptureStderr();
    ::dup2(ends[1], STDOUT_FILENO);
    const int code = run();
    ::dup2(before.get(), STDOUT_FILENO);
    ::close(ends[1]);
    EXPECT_EQ(code, kUsage);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("name a file with -o"));
}

TEST_F(ReportCommand, OfAnotherMachineOrPolicyHasNoStatus) {
    options_.shard_size = 4;
    ASSERT_EQ(report("-"), kOk) << err_;
    EXPECT_THAT(out_, AllOf(HasSubstr("class=\"dots\""), Not(HasSubstr("<h2>Status"))));
    options_.shard_size.reset();
    options_.topology = "fsroot:" + tree_.root();
    options_.root.clear();
    ASSERT_EQ(report("-"), kOk) << err_;
    EXPECT_THAT(
        out_, AllOf(HasSubstr("class=\"dots\""), HasSubstr("<h1>a-host</h1>"), Not(HasSubstr("<h2>Status"))));
    options_.topology = "synthetic:pack:2 core:3 pu:1";
    ASSERT_EQ(report("-"), kOk) << err_;
    EXPECT_THAT(out_, AllOf(HasSubstr("<h1>synthetic:pack:2 core:3 pu:1</h1>"), Not(HasSubstr("kcryptd-1"))));
}

TEST_F(ReportCommand, SaysWhatOfTheHistoryCannotBeRead) {
    options_.topology = "fsroot:" + tree_.root();
    tree_.write("var/lib/wq-tuned/verdicts.log", "{}\n");
    EXPECT_EQ(report("-"), kFailure);
    EXPECT_EQ(out_, "") << "no half page";
    EXPECT_THAT(err_, HasSubstr("verdicts.log"));
}

}  // namespace
}  // namespace wq::ctl
