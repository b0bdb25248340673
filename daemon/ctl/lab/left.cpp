// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/left.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <syslog.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/file.h"
#include "base/text.h"
#include "state/described.h"
#include "state/state_file.h"

namespace wq::lab {
namespace {

Result<std::string> without_links(const std::string& path) {
    std::error_code code;
    const auto real = std::filesystem::canonical(path, code);
    if (code) return fail_errno(path, code.value());
    return real.string();
}

std::string_view without_end_of_line(std::string_view content) {
    while (content.ends_with('\n')) content.remove_suffix(1);
    return content;
}

// Removes the first word, up to a space, from REST and returns it; "" between two spaces.
std::string_view next_word(std::string_view& rest) {
    const auto end = rest.find_first_of(" \t\n");
    const auto word = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    return word;
}

// Returns "none" for "mq-deadline [none]"; empty if not exactly one word is in brackets.
std::optional<std::string_view> chosen_word(std::string_view content) {
    std::optional<std::string_view> chosen;
    while (!content.empty()) {
        const auto word = next_word(content);
        if (word.size() <= 2 || word.front() != '[' || word.back() != ']') continue;
        if (chosen) return std::nullopt;
        chosen = word.substr(1, word.size() - 2);
    }
    return chosen;
}

ino_t stable_inode(int fd) {
    struct statfs fs {};
    struct stat st {};
    return ::fstatfs(fd, &fs) == 0 && fs.f_type == SYSFS_MAGIC && ::fstat(fd, &st) == 0 ? st.st_ino : 0;
}

}  // namespace

Result<Content> ValueFiles::read(const std::string& path) const {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd) return fail_errno(path, errno);
    auto text = read_all(fd.get(), kMaxFile);
    if (!text) return tl::unexpected(text.error().in(path));
    return Content{std::move(*text), stable_inode(fd.get())};
}

Status ValueFiles::write(const std::string& path, ino_t inode, const std::string& value) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW));
    if (!fd) return fail_errno(path + ": opening for writing", errno);
    if (inode != 0 && stable_inode(fd.get()) != inode) return fail(path + ": is another file now", ENODEV);
    const std::string text = value.empty() ? "\n" : value;
    ssize_t n = 0;
    do n = ::write(fd.get(), text.data(), text.size());
    while (n < 0 && errno == EINTR);
    if (n < 0) return fail_errno(path + ": writing '" + value + "'", errno);
    if (static_cast<std::size_t>(n) != text.size()) return fail_errno(path + ": short write", EIO);
    return {};
}

Result<std::string> resolve_value_file(const std::string& root, const std::string& path) {
    if (!path.starts_with('/')) return fail(path + ": is not an absolute path", EINVAL);
    const auto base = root.empty() ? Result<std::string>("") : without_links(root);
    if (!base) return tl::unexpected(base.error());
    auto real = without_links(root + path);
    if (!real) return real;
    if (!real->starts_with(*base + "/sys/") && !real->starts_with(*base + "/proc/"))
        return fail(fmt::format("{}{} is not below /sys or /proc", path,
                                *real == *base + path ? "" : ", which is " + *real + ","),
                    EPERM);
    struct stat st {};
    if (::stat(real->c_str(), &st) != 0) return fail_errno(*real, errno);
    if (!S_ISREG(st.st_mode)) return fail(path + ": is not a file", EINVAL);
    return real;
}

std::string value_in(Form form, std::string_view content) {
    if (form == Form::word) return std::string(next_word(content));
    return std::string(chosen_word(content).value_or(without_end_of_line(content)));
}

bool is_same_value(Form form, std::string_view a, std::string_view b) {
    if (form == Form::word) return value_in(form, a) == value_in(form, b);
    const auto chosen = chosen_word(a);
    return a == b || (chosen && chosen == chosen_word(b));
}

Result<std::string> read_left(const ValueFiles& files, const LeftFile& left) {
    auto now = files.read(left.path);
    if (!now) return tl::unexpected(now.error());
    if (now->inode != left.inode) return fail(left.path + ": is another file now", ENODEV);
    return std::move(now->text);
}

Status put_value_back(ValueFiles& files, const LeftFile& left) {
    const auto is_taken = [&](const std::string& text) -> Result<bool> {
        if (auto wrote = files.write(left.path, left.inode, text); !wrote)
            return tl::unexpected(wrote.error());
        const auto now = read_left(files, left);
        if (!now) return tl::unexpected(now.error());
        return is_same_value(left.form, *now, left.original);
    };
    const std::string value = value_in(left.form, left.original);
    auto back = is_taken(value);
    // The word in brackets may be ordinary text and not a choice; then write the whole text.
    const std::string text(without_end_of_line(left.original));
    if (back && !*back && left.form == Form::choice && text != value) back = is_taken(text);
    if (!back) return tl::unexpected(back.error());
    if (*back) return {};
    return fail(fmt::format("{}: writing the original value '{}' does not restore it", left.path, value));
}

// Not in the unnamed namespace, where the description of a list would not find it.
static void describe(JsonPlace& at, Left& left);

namespace {

std::string key_of(const Left& left) {
    if (const auto* file = std::get_if<LeftFile>(&left)) return file->path;
    if (const auto* arm = std::get_if<LeftCommand>(&left)) return "arm " + arm->name;
    return "device " + std::get<LeftDevice>(left).name;
}

struct LeftDocument {
    std::vector<Left> entries;
};

StateFile<LeftDocument> file_at(const std::string& path) {
    constexpr std::size_t kMost = 1U << 20U;  // bytes; a file of /sys has at most a page
    return {path,
            {.limit = kMost, .if_broken = IfBroken::refuse, .mode = 0600}};  // commands may have secrets
}

void describe(JsonPlace& at, LeftDocument& document) {
    at("entries", document.entries);
}

}  // namespace

static void describe(JsonPlace& at, Left& left) {
    const std::array<Left, 3> kinds{LeftFile{}, LeftCommand{}, LeftDevice{}};
    const std::array names{"file", "arm", "device"};
    std::string kind = names.at(left.index());
    at("kind", kind);
    if (!at.writes()) {
        const auto found = std::ranges::find(names, kind);
        if (found == names.end()) return at.refuse("unknown kind");
        left = kinds.at(static_cast<std::size_t>(found - names.begin()));
    }
    if (auto* file = std::get_if<LeftFile>(&left)) {
        bool word = file->form == Form::word;
        at("path", file->path);
        at("inode", file->inode);
        at("word", word);
        at("original", file->original);
        at("ours", file->ours);
        file->form = word ? Form::word : Form::choice;
    } else if (auto* arm = std::get_if<LeftCommand>(&left)) {
        at("name", arm->name);
        at("undo", arm->undo);
        at("failed", arm->failed);
    } else {
        auto& device = std::get<LeftDevice>(left);
        at("name", device.name);
        at("driver", device.driver);
        if (!is_device_name(device.name)) at.refuse("not a name of ours");
    }
}

Result<std::vector<Left>> LeftStore::load() const {
    auto found = file_at(path_).read();
    if (!found) return tl::unexpected(found.error());
    return *found ? std::move((*found)->entries) : std::vector<Left>{};
}

Status LeftStore::save(const std::vector<Left>& all) const {
    if (all.empty()) return remove_file(path_);
    auto saved = file_at(path_).save({all});
    if (saved || saved.error().code != EILSEQ) return saved;
    return fail(path_ + ": a path, name, value or command to be saved is not UTF-8", EILSEQ);
}

Status LeftStore::put(const Left& left) const {
    auto all = load();
    if (!all) return tl::unexpected(all.error());
    const auto found = std::ranges::find(*all, key_of(left), key_of);
    if (found != all->end())
        *found = left;
    else
        all->push_back(left);
    return save(*all);
}

Status LeftStore::drop(const Left& left) const {
    auto all = load();
    if (!all) return tl::unexpected(all.error());
    std::erase_if(*all, [&](const Left& each) { return key_of(each) == key_of(left); });
    return save(*all);
}

Status undo(const LeftStore& store, LeftCommand left, const Shell& shell) {
    const auto undone = shell(left.undo);
    if (undone) return store.drop(left);
    left.failed = true;
    const auto saved = store.put(left);
    return fail(
        fmt::format("arm {} IS NOT UNDONE: {}; `wq-tunectl ab --restore` tries again{}", printable(left.name),
                    undone.error().text, saved ? "" : "; " + saved.error().text),
        undone.error().code);
}

namespace {

// Each operator() puts back one kind of entry, and returns whether it is done with.
struct PutBack {
    const LeftStore& store;
    const Hands& hands;
    Log& log;
    bool again;

    bool operator()(const LeftFile& left) const {
        const auto now = read_left(hands.files, left);
        if (!now && (now.error().code == ENOENT || now.error().code == ENODEV))
            return dropped(left, LOG_NOTICE, Event::none, now.error().text + "; nothing to put back");
        if (!now) return stayed("NOT PUT BACK: " + now.error().text, "ab");
        const auto is_now = [&](const std::string& text) { return is_same_value(left.form, text, *now); };
        if (is_now(left.original)) return dropped(left, LOG_DEBUG, Event::none, left.path + ": is back");
        if (left.ours && !is_now(*left.ours))
            return dropped(left, LOG_NOTICE, Event::external,
                           fmt::format("{}: has '{}', which an external writer wrote; left as it is",
                                       left.path, value_in(left.form, *now)));
        if (const auto back = put_value_back(hands.files, left); !back)
            return stayed("NOT PUT BACK: " + back.error().text, "ab");
        return dropped(left, LOG_INFO, Event::restored,
                       fmt::format("{}: back to '{}'", left.path, value_in(left.form, left.original)));
    }

    bool operator()(const LeftCommand& left) const {
        if (left.failed && !again) {
            log.write({LOG_INFO, Event::none,
                       fmt::format("arm {}: its undo failed; `wq-tunectl ab --restore` runs it again",
                                   printable(left.name))});
            return false;
        }
        if (const auto undone = undo(store, left, hands.shell); !undone) {
            log.write({LOG_ERR, Event::quarantined, undone.error().text});
            return false;
        }
        log.write({LOG_INFO, Event::restored, fmt::format("arm {}: undone", printable(left.name))});
        return true;
    }

    bool operator()(const LeftDevice& left) const {
        auto removed = hands.devices.remove_crypt(left.name);
        if (removed) removed = hands.devices.remove_ram(left.name);
        if (!removed) return stayed(left.name + " IS NOT REMOVED: " + removed.error().text, "bench");
        if (left.driver && !hands.devices.unload_driver())
            log.write({LOG_NOTICE, Event::none, "null_blk stays loaded: somebody uses it"});
        return dropped(left, LOG_INFO, Event::none, left.name + ": removed");
    }

    bool dropped(const Left& left, int priority, Event event, const std::string& text) const {
        log.write({priority, event, text});
        const auto done = store.drop(left);
        if (!done) log.write({LOG_ERR, Event::none, done.error().text});
        return done.has_value();
    }
    bool stayed(const std::string& text, const char* command) const {
        log.write({LOG_ERR, Event::quarantined,
                   fmt::format("{}; `wq-tunectl {} --restore` tries again", text, command)});
        return false;
    }
};

}  // namespace

// The last first: the scope of a workqueue before its device, whose removal destroys the workqueue.
bool put_back(const LeftStore& store, const Hands& hands, Log& log, bool again) {
    auto all = store.load();
    if (!all) {
        log.write({LOG_ERR, Event::none, all.error().text});
        return false;
    }
    std::ranges::reverse(*all);
    bool back = true;
    for (const Left& left : *all) back = std::visit(PutBack{store, hands, log, again}, left) && back;
    return back;
}

}  // namespace wq::lab
