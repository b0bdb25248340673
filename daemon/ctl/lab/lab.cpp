// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/lab.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <syslog.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/clock.h"
#include "base/file.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "owned/owned.h"
#include "service/restorer.h"

namespace wq::lab {
namespace {

Result<std::string> without_links(const std::string& path) {
    std::error_code code;
    const auto real = std::filesystem::canonical(path, code);
    if (code) return fail_errno(path, code.value());
    return real.string();
}

ino_t stable_inode(int fd) {
    struct statfs fs {};
    struct stat st {};
    return ::fstatfs(fd, &fs) == 0 && fs.f_type == SYSFS_MAGIC && ::fstat(fd, &st) == 0 ? st.st_ino : 0;
}

// The code of a command or of a removal says nothing about the entry: it is neither gone nor tried again.
Error as_permanent(const Error& error) {
    return {EIO, error.text};
}

// Prints lines of at least this importance as complaints of this command.
struct Complaints : Log {
    explicit Complaints(int least) : least(least) {}
    void write(const LogLine& line) override {
        if (line.priority <= least) ctl::complain(line.text);
    }
    int least;
};

}  // namespace

Result<Content> LabFiles::read_content(const std::string& path) const {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd) return fail_errno(path, errno);
    auto text = read_all(fd.get(), kMaxFile);
    if (!text) return tl::unexpected(text.error().in(path));
    return Content{text->substr(0, text->find_last_not_of('\n') + 1) + '\n', stable_inode(fd.get())};
}

Status LabFiles::write_content(const std::string& path, ino_t inode, const std::string& value) {
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

Result<std::string> LabFiles::read_value(const std::string& path, ino_t inode) const {
    auto now = read_content(path);
    if (!now) return tl::unexpected(now.error());
    if (now->inode != inode) return fail(path + ": is another file now", ENODEV);
    return std::move(now->text);
}

Status LabFiles::write_value(const std::string& name, ino_t inode, const std::string& text) {
    if (name.starts_with(kArmPrefix)) return processes_.shell(text, true).map_error(as_permanent);
    if (is_device_name(name)) return remove_device(name, text == kRemovedWithDriver);
    if (!name.starts_with('/')) return fail(name + ": not a name of ours", EINVAL);
    const std::string value = value_in(text);
    const std::string whole = text.substr(0, text.find_last_not_of('\n') + 1);
    if (auto wrote = write_content(name, inode, value); !wrote || value == whole) return wrote;
    const auto now = read_value(name, inode);
    const bool is_back = now && Attribute{Knob::value, text}.same(*now, text);
    return !now || is_back ? Status{} : write_content(name, inode, whole);
}

Status LabFiles::remove_device(const std::string& name, bool with_driver) {
    auto removed = devices_.remove_crypt(name);
    if (removed) removed = devices_.remove_ram(name);
    if (removed && with_driver && !devices_.unload_driver()) ctl::complain("null_blk could not be unloaded");
    return removed.map_error(as_permanent);
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

bool Lab::put_back(Log& log, bool of_daemon, bool only_slots) const {
    OwnedStore store = of_daemon ? OwnedStore(paths.owned()) : OwnedStore(paths.lab(), OwnedStore::Of::lab);
    if (const auto loaded = store.load(); !loaded) {
        log.write({LOG_ERR, Event::none, loaded.error().text});
        return false;
    }
    LabFiles files(paths, processes, devices);
    return restore_all(files, store, log, only_slots || (of_daemon && keeps_settings(paths))) == 0 &&
           (of_daemon || !exists(paths.lab()));
}

int in_lab(const Lab& lab, bool only_restore, const std::function<int()>& work) {
    const auto lock = take_lock(lab.paths);
    if (!lock)
        return ctl::complain(
            lock.error().code == EWOULDBLOCK
                ? "wq-tuned is running, or another ab or bench: systemctl stop wq-tuned first"
                : lock.error().text);
    Complaints log(LOG_INFO);
    const bool back = lab.put_back(log);
    const bool settings = lab.put_back(log, true, only_restore);
    if (only_restore) return back && settings ? ctl::kOk : ctl::kFailure;
    if (back && settings) return work();
    return ctl::complain(
        "settings or devices of an earlier ab, bench or comparison could not be restored or removed");
}

Status run_guarded(const Lab& lab, const std::string& command, const std::function<Status()>& work) {
    const auto restore = [&] {
        Complaints log(LOG_NOTICE);
        return lab.put_back(log);
    };
    Guardian& guardian = lab.processes.guardian;
    if (auto started = guardian.start(restore); !started) return started;
    if (const auto moved = lab.paths.root.empty() ? guardian.into_own_scope(command) : Status{}; !moved)
        ctl::complain("the guardian is in our cgroup; killing that cgroup also kills the guardian: " +
                      moved.error().text);
    auto done = work();
    const auto finished = guardian.finish();
    const bool back = finished ? *finished : restore();
    const std::string left = "not put back; `wq-tunectl " + command + " --restore` tries again";
    if (!back && !done) ctl::complain(left);
    return back || !done ? done : fail(left);
}

Status compare(const Lab& lab, OwnedStore& store, const Subject& subject, Rounds& rounds, unsigned warm_ups,
               const std::function<Result<Figures>(std::size_t arm)>& measure) {
    LabFiles files(lab.paths, lab.processes, lab.devices);
    ArmSwitcher switcher(files, store, lab.processes, subject);
    ctl::ProgressLine line;
    auto done = run_rounds(rounds, warm_ups,
                           {.begin = [&] { return switcher.begin(); },
                            .switch_to = [&](std::size_t arm) { return switcher.to(arm); },
                            .measure = measure,
                            .check = [&] { return switcher.check(); },
                            .conditions = [&] { return conditions_of(lab.paths); },
                            .random = random_number,
                            .progress = [&](const std::string& text) { line.show(text); }});
    line.end();
    rounds.end(done ? "no more pairs" : "cut off");
    return done;
}

}  // namespace wq::lab
