// SPDX-License-Identifier: LGPL-2.1-or-later
// What is wrong in a policy, and where.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "policy/rule_warnings.h"
#include "policy_texts.h"

namespace wq {
namespace {

using test::File;
using test::repeated;

PolicyErrors errors_of(const std::string& text) {
    const auto policy = test::load_texts({text});
    return policy ? PolicyErrors{} : policy.error();
}

// The one error of the document TEXT begins with "0.toml:" and ERROR.
void expect_one_error(const std::string& text, const std::string& error) {
    EXPECT_THAT(test::mistakes_in_texts({text}), testing::ElementsAre(testing::StartsWith("0.toml:" + error)))
        << text.substr(0, 100);
}

// Calls EACH with the two parts of each line of TABLE; there are at least LEAST.
void for_lines(const char* table, const std::string& separator, unsigned least,
               void (*each)(const std::string&, const std::string&)) {
    std::istringstream lines(table);
    unsigned count = 0;
    for (std::string line; std::getline(lines, line);)
        if (const auto at = line.find(separator); at != std::string::npos) {
            each(line.substr(0, at), line.substr(at + separator.size()));
            count++;
        }
    EXPECT_GE(count, least);
}

// What a value must be, and values that are not, with two spaces between them.
constexpr const char* kWrongValues = R"t(
[shard] size must be a whole number from 1 to 1024 <- -1  0  1025
[daemon] mode must be one of "observe", "tune" <- 3  "Tune"  "guard"
[daemon] on_exit must be one of "restore", "keep" <- "stay"
[default_scope] manage must be true or false <- "no"
[default_scope] scope must be one of "auto", "plan", "leave", "cpu", "smt", "cache_shard", "cache", "numa", "system" <- "SMT"
[default_scope] expires must be a day without a time, such as 2027-01-31 <- 31
[[workqueue]] match must be a string that is not empty <- 7  ""
[[workqueue]] match must have 1 to 64 elements, not 0 <- []
[metrics] textfile must be a string <- true
[metrics] textfile must be an absolute path that ends in ".prom", or empty for none <- 5  "a.prom"  "/a/b.txt"  "/a.prom/"  "/a/.prom"
[default_mask] cpumask must be a list of CPUs such as "0-7", or "housekeeping" or "leave" <- ""  "x"  "7-0"  "ff"  "0-99999"  "0,"
[default_mask] cpumask must be a string <- true
[judge] alpha must be above 0 and at most 0.5 <- 0  1  0.51  -0.1  nan  inf  "5%"  "x%"  ""
[judge] alpha must be a string <- true
[judge] tolerance must be 0% to 100%, with its percent sign <- 2  0.02  "101%"  "-1%"
[judge] tolerance must be a string <- ["1%"]
[judge] window must be a time with its unit (ms, s, m or min, h, d), such as "1h 30min" <- 10  10.0  "10"  "10 fortnights"  "99999999999999999999s"
[judge] window must be 500ms to 1h <- "499ms"  "1h 1ms"
[judge] washout must be a time with its unit <- "-1s"
[judge] washout must be 0s to 1h <- "61min"
[judge] washout must be a string <- {}
[judge] max_pairs must be a whole number from 1 to 10000 <- 0  10001  "16"
[judge] min_items must be a whole number from 0 to 1000000000 <- -1  1000000001
[judge] retry_after must be a whole number of seconds <- "1500ms"
[judge] retry_after must be a time with its unit <- 7  "3651d"
[judge] concurrent must be a whole number from 1 to 16 <- 0  17
[judge] recheck must be 1s to 1d <- "0s"  "2d"
[judge] recheck must be a whole number of seconds <- "1500ms"
[judge] run_length must be a whole number from 1 to 1000000000 <- 0
[judge] budget must be 1s to 1d <- "0s"
[judge] budget must be a time with its unit <- 60
[judge] settle must be 0s to 1d <- "25h"
[judge] jitter must be 0s to 7d <- "8d"
[judge] jitter must be a whole number of seconds <- "1ms"
[judge] hours must be a part of the day, such as "22:00-06:00" or "00:00-24:00" <- 22  "22-06"  "24:00-06:00"  "06:00-06:00"
[judge] hours must be a string <- 22:00:00
[judge] counters must have 1 to 8 elements, not 0 <- []
[when] arch must be a string that is not empty <- 64
[when] cores must be a whole number or a range, such as ">=16", "8-16" or ">=8,<64" <- "many"
[when] llc_cores must be a whole number or a range <- -1
[when] numa_nodes must be a whole number or a range <- 2.5
[when] smt must be true or false <- "on"
[when] virtual must be true or false <- 0
[when] kernel must be a string that is not empty <- 6.6
[when] kernel must be a version or a range of them, such as ">=6.6", "6.12" or "6.6-7.0" <- "new"
[when] canary must be 0% to 100%, with its percent sign <- 5  "101%"
)t";

TEST(PolicyError, AWrongValueIsToldWithItsPlaceAndWhatIsAllowed) {
    for_lines(kWrongValues, " <- ", 45, [](const std::string& what, const std::string& all) {
        std::string values = all;
        const auto table_end = what.find(' ');
        const auto key_end = what.find(' ', table_end + 1);
        const std::string table = what.substr(0, table_end);
        const std::string key = what.substr(table_end + 1, key_end - table_end - 1);
        const std::string before = table == "[when]" ? "[[host]]\nname = \"h\"\n[host.when]\n" : table + "\n";
        while (!values.empty()) {
            const std::string value = values.substr(0, values.find("  "));
            values.erase(0, value.size() + 2);
            expect_one_error(fmt::format("{}{} = {}\n", before, key, value),
                             fmt::format("{}:{}: {}", 1 + std::ranges::count(before, '\n'), key.size() + 4,
                                         what.substr(table_end + 1)));
        }
    });
}

// Documents, with "|" for the end of a line, and how their one error begins.
constexpr const char* kWrongDocuments = R"t(
# Each kind of value.
[shard]|size = "8"| => 2:8: size must be a whole number from 1 to 1024, not the string "8"
[shard]|  size=3.5| => 2:8: size must be a whole number from 1 to 1024, not the floating-point number 3.5
[shard]|size = true| => 2:8: size must be a whole number from 1 to 1024, not true
[shard]|size = [8]| => 2:8: size must be a whole number from 1 to 1024, not an array
[shard]|size = {}| => 2:8: size must be a whole number from 1 to 1024, not a table
[shard]|size = 1979-05-27| => 2:8: size must be a whole number from 1 to 1024, not a date or a time
[shard]|size = -1| => 2:8: size must be a whole number from 1 to 1024, not -1
[judge]|hours = 22:00:00| => 2:9: hours must be a string, not a date or a time
[default_scope]|expires = 2027-01-31T00:00:00+01:00| => 2:11: expires must be a day without a time, such as 2027-01-31, not a date or a time
[daemon]|mode = "Tune"| => 2:8: mode must be one of "observe", "tune", not the string "Tune"; did you mean "tune"?
shard = 8| => 1:9: shard must be one table, [shard], not 8
[[shard]]|size = 8| => 1:1: shard must be one table, [shard], not an array
[workqueue]|match = "*"| => 1:1: workqueue must be a list of tables, each below its own [[workqueue]]
workqueue = [3]| => 1:14: workqueue must be a list of tables
# Rules.
|[[workqueue]]|scope = "smt"| => 2:1: a rule needs a match
[[workqueue]]|match = "*"|strict = "yes"| => 3:10: strict must be true or false
[[workqueue]]|match = "*"|scope = "SMT"| => 3:9: scope must be one of "auto", "plan", "leave", "cpu", "smt", "cache_shard", "cache", "numa", "system", not the string "SMT"; did you mean "smt"?
[[workqueue]]|match = "*"|scope = "cache-shard"| => 3:9: scope must be one of "auto", "plan", "leave", "cpu", "smt", "cache_shard", "cache", "numa", "system", not the string "cache-shard"; did you mean "cache_shard"?
[[workqueue]]|match = ["a",| ""]| => 3:2: match must be a string that is not empty
[[workqueue]]|match = ["a", 7]| => 2:15: match must be a string that is not empty, not 7
[[workqueue]]|match = ["a", {}]| => 2:15: match must be a string
[[workqueue]]|match = "*"|hold = true| => 3:8: hold is only for scope = "plan" or a scope's name, which are set first, not "auto"
[[workqueue]]|match = "*"|scope = "leave"|hold = true| => 4:8: hold is only for scope = "plan" or a scope's name, which are set first, not "leave"
[[workqueue]]|match = "*"|hold = 1| => 3:8: hold must be true or false
[[workqueue]]|match = "*"|scope = "plan"|candidates = ["smt"]| => 4:14: candidates is only for scope = "auto", not "plan"
[[workqueue]]|match = "*"|candidates = ["smt"]|scope = "smt"| => 3:14: candidates is only for scope = "auto", not "smt"
[default_scope]|scope = "leave"|candidates = ["smt"]| => 3:14: candidates is only for scope = "auto", not "leave"
[[workqueue]]|match = "*"|candidates = []| => 3:14: candidates must have 1 to 64 elements, not 0
[[workqueue]]|match = "*"|candidates = ["smt", "auto"]| => 3:22: a candidate must be one of "cpu", "smt", "cache_shard", "cache", "numa", "system", not the string "auto"
[[workqueue]]|match = "*"|candidates = ["smt", "cpu", "smt"]| => 3:29: the candidate "smt" is listed twice
[[workqueue]]|match = "*"|expires = 12:00:00| => 3:11: expires must be a day without a time, such as 2027-01-31, not a date or a time
# Unknown keys: the place is that of the value.
[shard]|siez = 8| => 2:8: unknown key "siez" in [shard]; did you mean "size"?
[shard]|size = 8|colour = 'red'| => 3:10: unknown key "colour" in [shard]; known keys: size
shard.size = 8|shard.a.b = 8| => 2:1: unknown key "a" in [shard]
shard = {size = 8, é.b = 1}| => 1:20:
shard = {size = 8, 'é' = 1}| => 1:27: unknown key "é" in [shard]
shard = {size = 8, "" = 1}| => 1:25: unknown key "" in [shard]
mode = "tune"| => 1:8: unknown key "mode"; known keys: daemon
colour = "red"| => 1:10: unknown key "colour"; known keys: daemon, default_mask, default_scope, host, judge, metrics, shard, workqueue
[daemon]|[work]| => 2:1: unknown key "work"; known keys:
[daemons]|mode = 3| => 1:1: unknown key "daemons"; did you mean "daemon"?
[[workqueue]]|match = "*"|[workqueue.host]| => 3:1: unknown key "host" in [[workqueue]]; did you mean "hold"?
[[workqueue]]|match = "*"|size = 8| => 3:8: unknown key "size" in [[workqueue]]; known keys:
[[host]]|name = "a"|arch = "x86_64"| => 3:8: unknown key "arch" in [[host]]; known keys:
metrics = 1| => 1:11: metrics must be one table, [metrics], not 1
[metrics]|textfiel = ""| => 2:12: unknown key "textfiel" in [metrics]; did you mean "textfile"?
[judge]|max-pairs = 16| => 2:13: unknown key "max-pairs" in [judge]; did you mean "max_pairs"?
# Counters and guards.
[judge]|counters = [ # none||]| => 2:12: counters must have 1 to 8 elements, not 0
[judge]|counters = [3]| => 2:13: an element of counters must be a string that is not empty, not 3
[judge]|counters = ["tail", ["exec"]]| => 2:21: an element of counters must be a string that is not empty, not an array
[judge]|counters = ["tail", "latncy"]| => 2:21: unknown counter "latncy"; known counters: latency
[judge]|counters = ["psi:cpu.sum"]| => 2:13: unknown counter "psi:cpu.sum"; known
[judge]|counters = ["psi:net.some"]| => 2:13: unknown counter "psi:net.some"
[judge]|counters = ["file:run/p99"]| => 2:13: unknown counter "file:run/p99"; known counters: latency, tail, exec, lock, enqueue, items, throughput, cpu, psi:cpu.some, psi:io.some, psi:io.full, psi:memory.some, psi:memory.full, diskstats:DEV.rkB, diskstats:DEV.wkB, file:/PATH
[judge]|counters = ["others"]| => 2:13: unknown counter "others"; known counters:
[judge]|counters = ["workers"]| => 2:13: unknown counter "workers"; known counters:
[judge]|counters = [""]| => 2:13: an element of counters must be a string that is not empty
[judge]|counters = ["tail", "exec", "tail"]| => 2:29: counter "tail" is listed twice
[judge]|counters = ["tail", { counter = "tail", higher = "better" }]| => 2:33: counter "tail" is listed twice
[judge]|counters = ["latency", "tail", "exec", "lock", "items", "cpu", "file:/1", "file:/2", "file:/3"]| => 2:86: counters must have 1 to 8 elements, not 9
[judge]|counters = [{ counter = "itmes" }]| => 2:25: unknown counter "itmes"; known counters:
[judge]|counters = [{ counter = 3 }]| => 2:25: an element of counters must be a string that is not empty, not 3
[judge]|counters = [{ counter = "tail", higher = "good" }]| => 2:42: higher must be one of "worse", "better", not the string "good"
[judge]|counters = [{ counter = "tail", lower = "better" }]| => 2:41: unknown key "lower" in an element of counters; known keys: counter, higher
[judge]|counters = ["tail", { higher = "worse" }]| => 2:21: an element of counters needs a counter, such as counter = "latency"
[judge]|guards = ["cpu"]| => 2:11: this needs a tolerance
[judge]|guards = [{ counter = "cpu" }]| => 2:11: this needs a tolerance, such as { counter = "cpu", tolerance = "5%" }
[judge]|guards = [{ tolerance = "5%" }]| => 2:11: an element of guards needs a counter, such as counter = "latency"
[judge]|guards = [{ counter = "cpus", tolerance = "5%" }]| => 2:23: unknown counter "cpus"; known counters: throughput, cpu
[judge]|guards = [{ counter = "cpu", tolerance = 5 }]| => 2:42: tolerance must be 0% to 100%, with its percent sign, not 5
[judge]|guards = [{ counter = "cpu", tolerance = "5%", higher = "better" }]| => 2:57: unknown key "higher" in an element of guards; known keys: counter, tolerance
[judge]|guards = [{ counter = "cpu", tolerance = "5%" }, { counter = "cpu", tolerance = "6%" }]| => 2:62: counter "cpu" is listed twice
# Host tables, whether or not they match.
[[host]]| => 1:1: a host table needs a name
[[host]]|name = 3| => 2:8: name must be a string that is not empty, not 3
[host]|name = "x"| => 1:1: host must be a list of tables, each below its own [[host]]
[[host]]|name = "x"|when = 3| => 3:8: when must be one table, [when], not 3
[[host]]|name = "x"|when = { cpu_modle = "*" }| => 3:22: unknown key "cpu_modle" in [when]; did you mean "cpu_model"?
[[host]]|name = "x"|when = { colour = "red" }| => 3:19: unknown key "colour" in [when]; known keys: arch, canary, cores
[[host]]|name = "x"|when = { has = "cache_shart" }| => 3:16: has must be one of "cache_shard", "pwlocks", not the string "cache_shart"; did you mean "cache_shard"?
[[host]]|name = "x"|when = { arch = "no" }|hosts = 1| => 4:9: unknown key "hosts" in [[host]]; known keys:
[[host]]|name = "x"|when = { arch = "no" }|shard.size = 0| => 4:14: size must be a whole number from 1 to 1024
[[host]]|name = "x"|when = { arch = "no" }|[host.daemon]|mdoe = 1| => 5:8: unknown key "mdoe" in [daemon]; did
[[host]]|name = "x"|when = { arch = "no" }|[[host.workqueue]]|scope = "smt"| => 4:1: a rule needs a match
[[host]]|name = "x"|when = { arch = "no" }|judge = { window = "500ms" }| => 4:20: washout must be less than window: it is 500ms, and window is 500ms
[[host]]|name = "x"|when = { arch = "no" }|metrics = { textfile = "x" }| => 4:24: textfile must be an absolute path that ends in ".prom", or empty for none, not the
[[host]]|name = "x"|when = { arch = "no" }|[[host.host]]|name = "y"| => 4:1: unknown key "host" in [[host]]; known keys:
# Found before the library gets the text, and words without quotes.
[[workqueue]]|match = "a\u0000*"| => 2:9: match has a NUL character
[daemon]|mode = “tune”| => 2:8: put it in quotes: "tune"
[daemon]|mode = tune # all| => 2:8: put it in quotes: "tune"
scope = cache_shard => 1:9: put it in quotes: "cache_shard"
match = kcryptd-*| => 1:9: put it in quotes: "kcryptd-*"
a = ["b", smt]| => 1:11: put it in quotes: "smt"
a = {b = leave}| => 1:10: put it in quotes: "leave"
budget = 60s| => 1:10: put it in quotes: "60s"
tolerance = 5%| => 1:13: put it in quotes: "5%"
# Values that depend on each other.
[judge]|washout = "2s"| => 2:11: washout must be less than window: it is 2s, and window is 2s
[judge]| window = "500ms"| => 2:11: washout must be less than window: it is 500ms, and window is 500ms
[judge]|washout = "3s"|window = "1s"| => 2:11: washout must be less than window: it is 3s, and window is 1s
# The default that replaces a wrong value causes no second error.
[judge]|window = "1day"|washout = "30s"| => 2:10: window
)t";

TEST(PolicyError, EachKindHasItsPlaceAndSaysWhatIsAllowed) {
    for_lines(kWrongDocuments, " => ", 90, [](const std::string& document, const std::string& error) {
        std::string text = document;
        std::ranges::replace(text, '|', '\n');
        expect_one_error(text, error);
    });
    const std::string long_name(256, 'x');
    std::string guards, hosts;
    for (char i = '1'; i <= '9'; i++)
        guards += fmt::format("{{ counter = \"file:/{}\", tolerance = \"1%\" }},", i);
    for (unsigned i = 0; i <= kMaxHosts; i++) hosts += fmt::format("[[host]]\nname = \"h{}\"\n", i);
    const std::vector<std::pair<std::string, std::string>> large = {
        {"[[workqueue]]\nmatch = \"" + long_name + "\"\n", "2:9: match is longer than 255 bytes"},
        {"[[workqueue]]\nmatch = [\"a\", \"" + long_name + "\"]\n", "2:15: match is longer than 255 bytes"},
        {"[[workqueue]]\nmatch = [" + repeated("'a',", 65) + "]\n",
         "2:266: match must have 1 to 64 elements, not 65"},
        {repeated("[[workqueue]]\nmatch = \"*\"\n", 1025),
         "2049:1: workqueue must have 0 to 1024 elements, not 1025"},
        {hosts, "513:1: host must have 0 to 256 elements, not 257"},
        {"[judge]\nguards = [" + guards + "]", "2:347: guards must have 0 to 8 elements, not 9"},
        {"[shard]\n\t\"si ze\"  =  8\n", "2:14: unknown key \"si ze\" in [shard]; did you mean \"size\"?"},
        {std::string("[shard]\nsi\0ze = 8\n", 18), "2:3: control character 0x00"},
        {"# \x1b[2J\n", "1:3: control character 0x1b"},
        {"a = 1\r b = 2\n", "1:6: control character 0x0d"},
        {"x = \"\x7f\"\n", "1:6: control character 0x7f"},
        {"x = 1 # \xff\n", "1:9: not UTF-8: byte 0xff"},
        {"#" + std::string(5000, 'x') + "\n", "1:4097: line longer than 4096 bytes"},
        {"a = " + repeated("{a=", 1000), "1:53: values nested deeper than 16 levels"},
        {"a = [\"\\\"[\", '''\n[''', '[', # [\n" + repeated("[", 17), "3:16: values nested deeper"},
        {repeated("a.", 1000) + "a = 1\n", "1:258: more than 128 dots in a line"},
        {"[shard]\nsize = 0b1" + std::string(73, '0') + "1000\n", "2:8: a binary number of more than 64"},
    };
    for (const auto& [text, error] : large) expect_one_error(text, error);
}

TEST(PolicyError, AllMistakesOfAllFilesAreToldInOrder) {
    const test::TempTree tree{File("a.toml", "[shard]\nsize = 0\n[daemon]\nmode = 1\nx = 2\n[host]\n"),
                              File("b.toml", "[shard\n"), File("c.toml", "[shard]\nsize = 1\n"),
                              File("d.toml", "[[workqueue]]\nscope = 1\n")};
    const auto policy = load_policy({tree.path("a.toml"), tree.path("b.toml"), tree.path("c.toml"),
                                     tree.path("gone.toml"), tree.path("d.toml")});
    ASSERT_FALSE(policy);
    std::vector<std::string> places;
    for (const PolicyError& error : policy.error())
        places.push_back(error.file.substr(tree.root().size() + 1) + ":" + std::to_string(error.line));
    EXPECT_THAT(places, testing::ElementsAre("a.toml:2", "a.toml:4", "a.toml:5", "a.toml:6", "b.toml:1",
                                             "gone.toml:0", "d.toml:1", "d.toml:2"));
    EXPECT_THAT(policy.error()[4].message, testing::StartsWith("syntax error: "))
        << "the library's own report";
}

TEST(PolicyError, IsUnderlined) {
    const auto errors = errors_of("[shard]\n\t'é' = 1\n\tsize = -1 # é\n");
    ASSERT_THAT(errors, testing::SizeIs(2));
    EXPECT_THAT(errors[0].underlined(), testing::EndsWith("\n    2 | \t'é' = 1\n      | \t      ^"));
    EXPECT_THAT(errors[1].underlined(), testing::EndsWith("\n    3 | \tsize = -1 # é\n      | \t       ^"));
    EXPECT_EQ((PolicyError{"x.toml", 0, 0, "gone", ""}).underlined(), "x.toml: gone");
    const auto long_line = errors_of("mode = '" + repeated("é", 100) + "'").at(0);
    EXPECT_EQ(long_line.underlined(), long_line.text());
}

TEST(PolicyError, NothingReachesATerminalThatItWouldObey) {
    const std::string clear = "\x1b[2J";
    EXPECT_EQ(printable(clear + "é\t\xc2\x9b" + "\xff\n"), "?[2Jé\t????");
    for (const std::string& text :
         {"x = \"" + clear + "\"\n", std::string("\"\\u001b[2J\" = 1\n"),
          std::string("daemon.mode = \"\\u001b\\u009b\"\n"), std::string("x = 1\xc2\x9b"),
          std::string("\xc2\x9b"),
          "a = 1\n'" + repeated("\xc2\x9b", 400) + "' = 1\n'" + repeated("\xc2\x9b", 400) + "' = 2\n"}) {
        const auto errors = errors_of(text);
        EXPECT_FALSE(errors.empty());
        for (const PolicyError& error : errors)
            EXPECT_EQ(error.underlined().find_first_of("\x1b\x9b"), std::string::npos);
    }
}

TEST(NearestWord, IsASlipAwayOrNothing) {
    const std::vector<std::string_view> words = {"cpu", "cache", "cache_shard", "system"};
    EXPECT_EQ(nearest_word("cpus", words), "cpu");
    EXPECT_EQ(nearest_word("sytsem", words), "system");
    EXPECT_EQ(nearest_word("cache_shrd", words), "cache_shard");
    for (const char* far : {"", "x", "default", "zzz"}) EXPECT_EQ(nearest_word(far, words), "") << far;
    EXPECT_EQ(nearest_word(std::string(100000, 'c'), words), "");
    EXPECT_EQ(nearest_word("cpu", {}), "");
}

}  // namespace
}  // namespace wq
