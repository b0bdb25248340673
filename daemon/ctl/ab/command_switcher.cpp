// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/ab/command_switcher.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "base/text.h"

namespace wq::ab {
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
