// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include "base/file.h"
#include "ctl/machine.h"
#include "ctl/shell_word.h"
#include "machine/workqueue_fs.h"
#include "owned/baseline.h"
#include "owned/mask_store.h"

namespace wq::ctl {
namespace {

// Returns WORD, quoted for the shell unless it is plain: it comes from a file, which is not trusted.
std::string word_text(const std::string& word) {
    const bool plain =
        !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos;
    return plain ? word : shell_quoted(word);
}

std::string scope_path(const Paths& paths, const std::string& name) {
    return name == kDefaultTarget ? paths.parameters() + "/default_affinity_scope"
                                  : paths.workqueues() + "/" + name + "/affinity_scope";
}

// The commands that restore one entry. Only files whose current value is ours are restored.
std::string commands(const Paths& paths, const WorkqueueFs& files, const BaselineEntry& entry) {
    std::string out;
    const auto scope = files.read_scope(entry.name, entry.inode);
    if (scope && scope->word != entry.scope && entry.may_be_ours(scope->word))
        out += fmt::format("echo {} > {}\n", word_text(entry.scope),
                           shell_quoted(scope_path(paths, entry.name)));
    if (!entry.may_strict || !entry.strict) return out;
    const auto strict = files.read_strict(entry.name, entry.inode);
    if (strict && *strict != *entry.strict)
        out += fmt::format("echo {} > {}\n", *entry.strict ? 1 : 0,
                           shell_quoted(paths.workqueues() + "/" + entry.name + "/affinity_strict"));
    return out;
}

// Like the function above, for a mask.
std::string commands(const Paths& paths, const WorkqueueFs& files, const MaskEntry& entry) {
    const auto now = files.read_mask(entry.name);
    if (!now || now->inode != entry.inode || now->cpus == entry.before() || !entry.may_be_ours(now->cpus))
        return "";
    const std::string folder = entry.name == kDefaultMask ? "" : "/" + entry.name;
    return fmt::format("echo {} > {}\n", shell_quoted(entry.baseline),
                       shell_quoted(paths.workqueues() + folder + "/cpumask"));
}

// The commands that restore what `ab` and `bench` left behind.
std::string restore_commands(const Paths& paths) {
    const std::string root = paths.root.empty() ? "" : " --root " + shell_quoted(paths.root);
    std::string out;
    for (const char* command : {"ab", "bench"})
        if (exists(fmt::format("{}/{}.json", paths.run(), command)))
            out += fmt::format("wq-tunectl{} {} --restore\n", root, command);
    return out;
}

}  // namespace

int undo(const Options& options) {
    const Paths paths{options.root};
    const WorkqueueFs files(paths);
    BaselineStore store(paths.baseline());
    if (const auto loaded = store.load(); !loaded) return complain(loaded.error().text);
    std::string out;
    for (const auto& [name, entry] : store.entries()) out += commands(paths, files, entry);
    MaskStore masks(paths.masks());
    const auto loaded = masks.load();
    for (const auto& [name, entry] : masks.entries()) out += commands(paths, files, entry);
    out += restore_commands(paths);
    if (!loaded) {
        fmt::print("{}", out);
        return complain(loaded.error().text);
    }
    fmt::print("{}", out.empty() ? "# nothing to put back\n" : out);
    return kOk;
}

}  // namespace wq::ctl
