// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/file_switcher.h"

#include <fmt/format.h>
#include <cerrno>
#include <utility>

#include "base/text.h"

namespace wq::ab {

FileSwitcher::FileSwitcher(ValueFiles& files, const LeftStore& store, std::string path,
                           std::vector<std::string> values)
    : files_(files), store_(store), values_(std::move(values)), shown_(values_.size()) {
    left_.path = std::move(path);
}

Status FileSwitcher::begin() {
    const auto original = files_.read(left_.path);
    if (!original) return tl::unexpected(original.error());
    left_.original = in_place_ = *original;
    left_.any = true;
    if (auto saved = store_.save(left_); !saved) return saved;
    if (auto back = put_value_back(files_, left_.path, *original); !back) return back;
    for (std::size_t arm = 0; arm < values_.size(); arm++)
        if (auto learned = learn(arm); !learned) return learned;
    return {};
}

Status FileSwitcher::learn(std::size_t arm) {
    if (auto switched = to(arm); !switched) return switched;
    for (std::size_t other = 0; other < arm; other++)
        if (is_same_value(*shown_[other], *shown_[arm]))
            return fail(fmt::format("{}: '{}' and '{}' are the same setting: the file shows '{}' after each",
                                    left_.path, values_[other], values_[arm], value_in(*shown_[arm])));
    return {};
}

Status FileSwitcher::check() {
    const auto now = files_.read(left_.path);
    if (!now) return tl::unexpected(now.error());
    if (is_same_value(*now, in_place_)) return {};
    const std::string text =
        fmt::format("{}: an external writer wrote '{}', which is left as it is", left_.path, value_in(*now));
    if (const auto cleared = store_.clear(); !cleared) return tl::unexpected(cleared.error().in(text));
    return fail(text);
}

Status FileSwitcher::to(std::size_t arm) {
    if (auto ours = check(); !ours) return ours;
    auto& shown = shown_.at(arm);
    left_.ours = {in_place_};
    left_.any = !shown;
    if (shown) left_.ours.push_back(*shown);
    if (auto saved = store_.save(left_); !saved) return saved;
    if (auto wrote = files_.write(left_.path, values_[arm]); !wrote) return wrote;
    const auto now = files_.read(left_.path);
    if (!now) return tl::unexpected(now.error());
    in_place_ = *now;
    left_.ours = {*now};
    left_.any = false;
    if (auto saved = store_.save(left_); !saved) return saved;
    if (!shown) shown = *now;
    if (is_same_value(*shown, *now)) return {};
    return fail(fmt::format("{}: after writing '{}', the file showed '{}' earlier and shows '{}' now",
                            left_.path, values_[arm], value_in(*shown), value_in(*now)));
}

namespace {

constexpr std::size_t kMostShown = 2000;  // bytes of a command's output in an error

// The end of OUTPUT in one line: ": a; b", or "".
std::string printed(std::string output) {
    while (output.ends_with('\n')) output.pop_back();
    if (output.size() > kMostShown) output = "..." + output.substr(output.size() - kMostShown);
    for (std::size_t at = 0; (at = output.find('\n', at)) != std::string::npos;) output.replace(at, 1, "; ");
    return output.empty() ? "" : ": " + printable(output);
}

}  // namespace

Status run_shell(const std::string& command, const Interrupts& interrupts, const Guardian* guardian) {
    const auto quoted = [&] { return fmt::format("'{}'", printable(command)); };
    const auto run =
        run_command({"/bin/sh", "-c", "exec 2>&1\n" + command}, Output::capture, interrupts, guardian);
    if (!run && run.error().code == EINTR) return tl::unexpected(run.error());
    if (!run) return tl::unexpected(run.error().in(quoted()));
    if (!run->failure.empty())
        return fail(fmt::format("{}: {}{}", quoted(), run->failure, printed(run->output)));
    return {};
}

Status undo(const LeftStore& store, LeftArm left, const Shell& shell) {
    const auto undone = shell(left.undo);
    if (undone) return store.clear();
    left.failed = true;
    const auto saved = store.save(left);
    return fail(
        fmt::format("arm {} IS NOT UNDONE: {}; `wq-tunectl ab --restore` tries again{}", printable(left.name),
                    undone.error().text, saved ? "" : "; " + saved.error().text),
        undone.error().code);
}

Status CommandSwitcher::to(std::size_t number) {
    if (const CommandArm* before = std::exchange(in_place_, nullptr); before != nullptr)
        if (auto undone = undo(store_, {before->name, before->undo}, undo_); !undone) return undone;
    const CommandArm& arm = arms_.at(number);
    if (arm.apply.empty()) return {};
    // A signal may have come during the undo. Then `apply` does not run, and its undo must not run either.
    if (auto go_on = go_on_(); !go_on) return go_on;
    if (auto saved = store_.save(LeftArm{arm.name, arm.undo}); !saved) return saved;
    in_place_ = &arm;
    return apply_(arm.apply).map_error(
        [&](const Error& e) { return e.code == EINTR ? e : e.in("arm " + printable(arm.name)); });
}

}  // namespace wq::ab
