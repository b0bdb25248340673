// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string_view>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/text.h"
#include "ctl/command.h"
#include "ctl/lab/ab.h"
#include "ctl/setting_option.h"

namespace wq::ctl {
namespace {

std::string message_of(int code) {
    std::array<PCRE2_UCHAR, 256> text{};
    ::pcre2_get_error_message(code, text.data(), text.size());
    return reinterpret_cast<const char*>(text.data());
}

constexpr unsigned kMostWarmups = 1000;
constexpr const char* kReferenceArm = "reference";  // if only one --arm is given; has no commands

// An option each use of which adds a word.
void add_list(CLI::App& ab, const char* name, std::vector<std::string>& out, const char* type,
              const char* help) {
    ab.add_option_function<std::string>(
          name, [&out](const std::string& word) { out.push_back(word); }, help)
        ->trigger_on_parse()
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
        ->type_name(type)
        ->check(not_empty);
}

// Throws a ValidationError of OPTION if NAMES has fewer than two names, an empty one, or one twice.
void check_names(const char* option, std::vector<std::string> names) {
    if (names.size() < 2) throw CLI::ValidationError(option, "at least two are needed");
    std::sort(names.begin(), names.end());
    if (names.front().empty()) throw CLI::ValidationError(option, "a name or value is empty");
    if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
        throw CLI::ValidationError(option, "'" + *twice + "' is given twice");
}

// The options as they are given; check() makes AbOptions of them.
struct AbWords {
    AbOptions what;
    std::vector<std::string> values, names, dos, undos;

    void check_commands() {
        if (dos.size() != names.size() || undos.size() != names.size())
            throw CLI::ValidationError("--arm", "each needs one --do and one --undo");
        if (names.size() == 1 && names.front() == kReferenceArm)
            throw CLI::ValidationError("--arm",
                                       std::string("a single arm is compared with '") + kReferenceArm + "'");
        if (names.size() == 1)
            for (auto* words : {&names, &dos, &undos})
                words->insert(words->begin(), words == &names ? kReferenceArm : "");
        check_names("--arm", names);
        for (std::size_t i = 0; i < names.size(); i++)
            what.subject.commands.push_back({names[i], dos[i], undos[i]});
        add_rows(names);
    }

    void add_rows(const std::vector<std::string>& arms) {
        for (const std::string& arm : arms) what.subject.rows.push_back({arm, {}});
    }

    void check_arms() {
        if (!what.target.empty()) {
            if (what.arms.empty() && !what.sweep)
                throw CLI::ValidationError("ab", "--arms or --sweep is required");
        } else if (!what.file.empty()) {
            if (what.file.front() != '/') throw CLI::ValidationError("--file", "an absolute path is needed");
            if (values.size() == 1) values = split_at_commas(values.front());
            check_names("--values", values);
            what.subject.name = what.file;
            for (const std::string& value : values) what.subject.values.push_back({value, {}});
            add_rows(values);
        } else if (!names.empty()) {
            check_commands();
        } else {
            throw CLI::ValidationError("ab", "--target, --file, --arm or --restore is required");
        }
    }

    // Throws a ValidationError for options that do not go together.
    void check(const CLI::App& ab, const Invocation& invocation) {
        what.command = invocation.command;
        if (what.restore) {
            only_option(ab, "--restore");
            if (!what.command.empty()) throw CLI::ValidationError("--restore", "it runs no command");
            return;
        }
        check_arms();
        if (what.higher_is_better && what.metric.is_time())
            throw CLI::ValidationError("--higher-is-better",
                                       "needs --metric with a pattern, because a longer time is not better");
        if (what.command.empty())
            throw CLI::ValidationError("ab", "the command to run is missing: ab ... -- COMMAND...");
    }
};

}  // namespace

Result<Metric> Metric::parse(std::string_view pattern) {
    Metric metric;
    if (pattern == metric.name_) return metric;
    int error = 0;
    PCRE2_SIZE offset = 0;
    auto* code = ::pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                 PCRE2_MULTILINE | PCRE2_NEVER_UTF, &error, &offset, nullptr);
    if (code == nullptr) return fail(fmt::format("character {}: {}", offset + 1, message_of(error)), EINVAL);
    metric.name_ = pattern;
    metric.code_ = {code,
                    [](const void* c) { ::pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(c))); }};
    std::uint32_t groups = 0;
    ::pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &groups);
    if (groups != 1)
        return fail(fmt::format("it has {} groups; exactly one, (...), must hold the number", groups),
                    EINVAL);
    return metric;
}

Result<double> Metric::read(std::string_view output) const {
    const auto* code = static_cast<const pcre2_code*>(code_.get());
    const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> match(
        ::pcre2_match_data_create_from_pattern(code, nullptr), ::pcre2_match_data_free);
    const int found = ::pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(output.data()), output.size(), 0, 0,
                                    match.get(), nullptr);
    if (found == PCRE2_ERROR_NOMATCH) return fail("nothing in its output matches --metric");
    if (found < 0) return fail("--metric: " + message_of(found));
    const PCRE2_SIZE* ends = ::pcre2_get_ovector_pointer(match.get());
    if (found < 2 || ends[2] == PCRE2_UNSET) return fail("the group of --metric has no part in the match");
    const std::string_view group = output.substr(ends[2], ends[3] - ends[2]);
    const auto value = number_of<double>(group);
    if (!value || !std::isfinite(*value))
        return fail(fmt::format("--metric found {}, which is not a number", in_quotes(group)));
    if (*value <= 0)
        return fail(fmt::format("--metric found {}; only numbers above 0 are compared", in_quotes(group)));
    return *value;
}

int cut_command(int argc, char** argv, std::vector<std::string>& command) {
    int at = 1;
    for (; at < argc && *argv[at] == '-'; at++)
        if (std::string_view(argv[at]) == "--root") at++;
    if (at >= argc || std::string_view(argv[at]) != "ab") return argc;
    char** const end = argv + argc;
    char** const dashes =
        std::find_if(argv + at, end, [](const char* word) { return std::string_view(word) == "--"; });
    if (dashes == end) return argc;
    command.assign(dashes + 1, end);
    return static_cast<int>(dashes - argv);
}

CommandRun set_up_ab(CLI::App& command, const Invocation& invocation) {
    const auto words = std::make_shared<AbWords>();
    AbOptions& what = words->what;
    CLI::App* const ab = &command;
    add_word(*ab, "--target", what.target, word::kTarget, "Compare scopes: a workqueue's name, or @default");
    add_setting(*ab, "--arms", "The reference and others; SCOPE:strict for a strict one", lab::parse_arms,
                what.arms)
        ->type_name(word::kScopes);
    ab->add_flag("--sweep", what.sweep, "Compare all scopes that make different pools with the current one");
    add_word(*ab, "--file", what.file, word::kFile, "Compare values of a file in /sys or /proc");
    add_list(*ab, "--values", words->values, "VALUE,...",
             "The reference and others; given more than once: one value each");
    add_list(*ab, "--arm", words->names, "NAME", "Compare commands: a name; more than once for more arms");
    add_list(*ab, "--do", words->dos, "CMD", "Shell command that applies this arm");
    add_list(*ab, "--undo", words->undos, "CMD",
             "Shell command that undoes it, before the next arm and at the end");
    ab->add_flag("--restore", what.restore, "Put back what an earlier ab left, and do nothing else");
    add_setting(*ab, "--metric", "time, or a pattern with one group: a number in the command's output",
                Metric::parse, what.metric)
        ->type_name(word::kMetric);
    ab->add_flag("--higher-is-better", what.higher_is_better, "More of the metric is better");
    add_setting(*ab, "--pairs", "Runs of each arm, at most; default 16", parse_count<unsigned, kMaxPairs>,
                what.settings.max_pairs);
    ab->add_flag("--all-pairs", what.all_pairs, "Do not stop at verdicts");
    add_setting(*ab, "--alpha",
                "Chance of a wrong verdict on a harmless arm, at most, on each side; default 0.05",
                parse_alpha, what.settings.alpha);
    add_setting(*ab, "--tolerance", "Cost increase that is tolerated, such as 5%; default 0%",
                parse_percentage, what.settings.tolerance);
    take_number(ab->add_option("--warmup", what.warmup, "Runs before the first that counts; default 0"), 0U,
                kMostWarmups);
    ab->add_flag("--json", what.json, kJsonHelp);
    relate(*ab, &CLI::Option::needs,
           {{"--arms", "--target"},
            {"--sweep", "--target"},
            {"--file", "--values"},
            {"--values", "--file"},
            {"--do", "--arm"},
            {"--undo", "--arm"}});
    relate(*ab, &CLI::Option::excludes,
           {{"--arms", "--sweep"}, {"--file", "--target"}, {"--arm", "--target"}, {"--arm", "--file"}});
    return [words, ab, &invocation] {
        words->check(*ab, invocation);
        return ctl::ab(invocation.root, words->what);
    };
}

}  // namespace wq::ctl
