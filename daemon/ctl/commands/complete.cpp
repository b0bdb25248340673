// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/file.h"
#include "ctl/command.h"
#include "ctl/observe/top_table.h"
#include "machine/paths.h"
#include "machine/workqueue.h"

namespace wq::ctl {
namespace {

using Words = std::vector<std::string>;

// Other names are not offered, because a shell might execute parts of them. No workqueue of the kernel has
// such a name.
bool is_plain(std::string_view name) {
    return std::ranges::all_of(name, [](unsigned char c) {
        return std::isalnum(c) != 0 ||
               std::string_view("_.:!@#+,=-").find(static_cast<char>(c)) != std::string_view::npos;
    });
}

// The workqueues below ROOT that have the file FILE.
Words workqueues_with(const std::string& root, const char* file) {
    Words out;
    const std::string folder = Paths{root}.workqueues();
    for (const std::string& name : names_or_none(folder))
        if (is_plain(name) && exists(fmt::format("{}/{}/{}", folder, name, file))) out.push_back(name);
    return out;
}

// The words for an option or argument of TYPE, for a machine below ROOT.
Words words_of(std::string_view type, const std::string& root) {
    Words out;
    if (type == word::kScope || type == word::kScopes)
        for (const Scope scope : kAllScopes) out.emplace_back(name_of(scope));
    if (type == word::kColumn) out = sort_keys(false);
    if (type == word::kColumn)
        for (auto& key : sort_keys(true))
            if (std::ranges::find(out, key) == out.end()) out.push_back(key);
    if (type == word::kSource) out = {"live", "fsroot:", "xml:", "synthetic:"};
    if (type == word::kFleetAction) out = {"merge", "show", "policy"};
    if (type == word::kLoad) out = {"write", "read", "both"};
    if (type == word::kMetric) out = {"time"};
    if (type == word::kWorkqueue) out = workqueues_with(root, "max_active");
    if (type == word::kTarget) out = workqueues_with(root, "affinity_scope");
    if (type == word::kTarget) out.insert(out.begin(), "@default");
    return out;
}

// The state after the words before the one to complete.
class Completion {
  public:
    explicit Completion(const CLI::App& app) : app_(app), at_(&app) {}

    void pass(const std::string& word) {
        if (ran_)
            ran_++;
        else if (pending_ != nullptr)
            take(*std::exchange(pending_, nullptr), word);
        else if (word == "--" && at_->get_name() == "ab")
            ran_ = 1;
        else if (word.starts_with('-'))
            pass_option(word);
        else if (at_ == &app_)
            enter(word);
        else
            given_++;
    }

    Words offers(const std::string& part) {
        if (ran_) return {ran_ == 1 ? ":command" : ":file "};
        if (pending_ != nullptr) return values(pending_->get_type_name(), "", part);
        if (const auto equals = part.find('='); part.starts_with("--") && equals != std::string::npos) {
            const CLI::Option* option = find_option(part.substr(0, equals));
            return option == nullptr
                       ? Words{}
                       : values(option->get_type_name(), part.substr(0, equals + 1), part.substr(equals + 1));
        }
        if (part.starts_with('-')) return option_words(part);
        if (at_ == &app_) return command_words(part);
        const auto* argument = this->argument();
        return argument == nullptr ? option_words(part) : values(argument->get_type_name(), "", part);
    }

  private:
    static std::string line(const std::string& word, const std::string& help) { return word + "\t" + help; }
    // The type size of a flag is 1, like that of an option with one value.
    static bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

    void pass_option(const std::string& word) {
        const auto equals = word.find('=');
        const CLI::Option* option = find_option(word.substr(0, equals));
        if (option == nullptr || is_flag(*option)) return;
        if (equals != std::string::npos)
            take(*option, word.substr(equals + 1));
        else
            pending_ = option;
    }
    void take(const CLI::Option& option, const std::string& value) {
        if (option.check_lname("root")) root_ = value;
    }
    void enter(const std::string& word) {
        for (const CLI::App* command : app_.get_subcommands([](const CLI::App*) { return true; }))
            if (command->get_name() == word) at_ = command;
    }
    [[nodiscard]] const CLI::Option* find_option(const std::string& name) const {
        if (const auto* own = at_->get_option_no_throw(name); own != nullptr) return own;
        return app_.get_option_no_throw(name);
    }
    // The next argument. The last argument may take several words.
    [[nodiscard]] const CLI::Option* argument() const {
        const auto all = at_->get_options([](const CLI::Option* o) { return o->get_positional(); });
        if (all.empty()) return nullptr;
        if (given_ < all.size()) return all[given_];
        return all.back()->get_items_expected_max() > 1 ? all.back() : nullptr;
    }
    // Every command accepts the global options too.
    [[nodiscard]] Words option_words(const std::string& part) const {
        Words out;
        const auto add = [&](const CLI::App& from) {
            for (const CLI::Option* option :
                 from.get_options([](const CLI::Option* o) { return o->nonpositional(); }))
                for (const std::string& name : option->get_lnames())
                    if (("--" + name).starts_with(part) && find_option("--" + name) == option)
                        out.push_back(line("--" + name, option->get_description()));
        };
        add(*at_);
        if (at_ != &app_) add(app_);
        return out;
    }
    [[nodiscard]] Words command_words(const std::string& part) const {
        Words out;
        for (const Command& command : commands())
            if (std::string_view(command.name).starts_with(part))
                out.push_back(line(command.name, command.help));
        return out;
    }

    // Values of TYPE that begin with PART, each after BEFORE.
    [[nodiscard]] Words values(std::string type, std::string before, std::string part) const {
        type = type.substr(0, type.find(':'));  // CLI11 appends the descriptions of checks
        if (type == word::kFile) return {":file " + before};
        if (type == word::kDirectory) return {":dir " + before};
        if (type == word::kSource)
            for (const std::string kind : {"fsroot:", "xml:"})
                if (part.starts_with(kind))
                    return {fmt::format("{}{}{}", kind == "xml:" ? ":file " : ":dir ", before, kind)};
        if (type == word::kScopes) {
            const std::size_t done = part.rfind(',') + 1;  // 0 if there is no comma
            before += part.substr(0, done);
            part.erase(0, done);
        }
        Words out;
        if (type == word::kSource || type == word::kScopes) out.emplace_back(":nospace");
        for (const std::string& word : words_of(type, root_))
            if (word.starts_with(part)) out.push_back(before + word);
        return out;
    }

    const CLI::App& app_;
    const CLI::App* at_;
    std::string root_;
    const CLI::Option* pending_ = nullptr;  // option whose value comes next
    std::size_t given_ = 0;                 // number of arguments of the command so far
    std::size_t ran_ = 0;                   // number of words from the `--` of `ab` on
};

}  // namespace

std::vector<std::string> complete(const CLI::App& app, const std::vector<std::string>& words) {
    if (words.empty()) return {};
    Completion completion(app);
    for (std::size_t i = 0; i + 1 < words.size(); i++) completion.pass(words[i]);
    return completion.offers(words.back());
}

}  // namespace wq::ctl
