// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/workqueue_fs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "base/text.h"

namespace wq {
namespace {

constexpr const char* kDefaultFile = "default_affinity_scope";
constexpr const char* kStrictFile = "affinity_strict";
constexpr const char* kMaskFile = "cpumask";
constexpr const char* kRequestedFile = "cpumask_requested";  // since 6.8, in the folder of all workqueues
constexpr const char* kIsolatedFile = "cpumask_isolated";    // likewise
constexpr const char* kNoMask = "the unbound cpumask cannot be read";

// A name from outside must not lead out of the folder.
bool is_safe(const std::string& name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

Result<std::string> read_at(int dir, const char* file) {
    Fd fd(::openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) return fail_errno(file, errno);
    return read_all(fd.get(), kMaxFile).map_error([&](const Error& e) { return e.in(file); });
}

Result<unsigned> number_at(int dir, const char* file) {
    const auto text = read_at(dir, file);
    if (!text) return tl::unexpected(text.error());
    const std::size_t length = text->find_last_not_of("\n ") + 1;  // npos + 1 is 0
    const auto value = number_of<unsigned>(std::string_view(*text).substr(0, length));
    if (!value) return fail(fmt::format("{}: not a number", file), EINVAL);
    return *value;
}

Result<ScopeFile> scope_at(int dir, const char* file) {
    const auto text = read_at(dir, file);
    if (!text) return tl::unexpected(text.error());
    return parse_scope_file(*text).map_error([&](const Error& e) { return e.in(file); });
}

// Since 7.1, the max_active file of an ordered workqueue is read-only (wq_sysfs_is_visible()).
bool is_read_only(int dir, const char* file) {
    struct stat st = {};
    return ::fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & 0222) == 0;
}

// Reads the attributes that only workqueues have. The error names the invalid file.
Status read_attributes(int dir, const CpuSet& unbound_mask, Workqueue& out) {
    const auto per_cpu = number_at(dir, "per_cpu");
    if (!per_cpu) return tl::unexpected(per_cpu.error());
    if (*per_cpu != 0) {
        out.kind = Kind::per_cpu;
        out.untouchable = "per-CPU workqueues have no affinity scope";
        return {};
    }
    const auto scope = scope_at(dir, "affinity_scope");
    if (!scope) return tl::unexpected(scope.error());
    out.scope = *scope;
    const auto max_active = number_at(dir, "max_active");
    if (!max_active) return tl::unexpected(max_active.error());
    if (is_read_only(dir, "max_active")) {
        out.kind = Kind::ordered;
        out.untouchable = "ordered: it runs one item at a time; a scope write would stall it without benefit";
    } else if (*max_active == 1) {
        out.untouchable =
            "max_active is 1: it runs one item at a time (per NUMA node), so a scope has no use";
    }
    const auto strict = number_at(dir, kStrictFile);
    if (!strict) return tl::unexpected(strict.error());
    out.strict = *strict != 0;
    const auto text = read_at(dir, "cpumask");
    if (!text) return tl::unexpected(text.error());
    const auto mask = CpuSet::parse_mask(*text);
    if (!mask) return tl::unexpected(mask.error().in("cpumask"));
    // wqattrs_actualize_cpumask(): if the mask has no CPU of the unbound mask, the unbound mask applies.
    out.effective = *mask & unbound_mask;
    if (out.effective.empty()) out.effective = unbound_mask;
    return {};
}

// Names go to JSON, the journal and terminals. The kernel's own names are plain ASCII.
bool is_printable(const std::string& name) {
    return std::all_of(name.begin(), name.end(), [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
}

bool has_file(int dir, const char* file) {
    return ::faccessat(dir, file, F_OK, 0) == 0;
}

// Why the mask of the workqueue in DIR must not be written; "" if it may be. A workqueue without cpumask is
// per-CPU. Before 6.9, a workqueue with max_active 1 is ordered, and a write ends its ordering
// (apply_workqueue_attrs_locked()).
std::string why_no_mask(int dir) {
    if (!has_file(dir, kMaskFile)) return "per-CPU workqueues have no cpumask";
    if (is_read_only(dir, "max_active")) return "ordered: a write would stall it without benefit";
    const auto max_active = number_at(dir, "max_active");
    if (!max_active) return max_active.error().text;
    return *max_active == 1 ? "max_active is 1: it may be ordered" : "";
}

// Whether the kernel RELEASE can leave work of ordered workqueues pending forever when their attributes are
// applied again: since 6.9, until the commit "workqueue: Add pool_workqueue to pending_pwqs list when
// unplugging multiple inactive works".
bool may_strand_ordered_work(const std::string& release) {
    std::array<unsigned, 3> version{};
    if (std::sscanf(release.c_str(), "%u.%u.%u", &version[0], &version[1], &version[2]) < 2) return false;
    const auto [major, minor, patch] = version;
    if (major == 6 && minor == 12) return patch < 82;
    if (major == 6 && minor == 18) return patch < 23;
    return major == 6 && minor >= 9;
}

// Why the mask of all unbound workqueues, in DIR, must not be written; "" if it may be.
// workqueue_apply_unbound_cpumask() also applies attributes to ordered workqueues, or ends their ordering.
std::string why_no_mask_of_all(int dir, const std::string& release) {
    if (!has_file(dir, kRequestedFile))
        return "not written before Linux 6.8: ordered workqueues may then run their items out of order";
    if (may_strand_ordered_work(release))
        return fmt::format("Linux {}: a write may stall ordered workqueues (fixed in 6.12.82, 6.18.23, 7.0)",
                           release);
    return "";
}

bool is_gone(const Error& error) {
    return error.code == ENOENT || error.code == ENODEV;
}

// False for errors about a file's content (from the parsers, or too much of it) and for a missing file.
bool is_failed_read(int code) {
    return code != EINVAL && code != EOVERFLOW && code != EFBIG && code != ENOENT && code != ENODEV;
}

}  // namespace

Result<std::vector<std::string>> WorkqueueFs::names() const {
    const std::string folder = paths_.workqueues() + "/";
    auto out = names_in(paths_.workqueues());
    if (!out && out.error().code != ENOENT) return out;
    if (!out) out.emplace();
    // Folders without a per_cpu file are not workqueues ("power").
    std::erase_if(*out, [&](const std::string& name) { return !exists(folder + name + "/per_cpu"); });
    if (exists(paths_.parameters() + "/" + kDefaultFile))
        out->insert(out->begin(), kDefaultTarget);
    else if (std::ranges::none_of(
                 *out, [&](const auto& name) { return exists(folder + name + "/affinity_scope"); }))
        out->clear();  // before 6.6 there is nothing to set
    return out;
}

Result<WorkqueueFs::Folder> WorkqueueFs::look_for_folder(const std::string& name) const {
    if (!is_safe(name)) return fail(name + ": not the name of a workqueue", EINVAL);
    const bool is_default = name == kDefaultTarget, is_mask = name == kDefaultMask;
    const char* file = is_default ? kDefaultFile : is_mask ? kMaskFile : nullptr;  // of kernel-wide ones
    const std::string path =
        is_default ? paths_.parameters() : paths_.workqueues() + (is_mask ? "" : "/" + name);
    Folder folder{Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)), 0,
                  is_default ? kDefaultFile : "affinity_scope"};
    if (!folder.fd) return fail_errno(path, errno);
    // "power" is a folder too, but not a workqueue.
    if (file == nullptr && ::faccessat(folder.fd.get(), "per_cpu", F_OK, 0) != 0)
        return fail_errno(path, errno);
    struct stat st = {};
    const int rc = file != nullptr ? ::fstatat(folder.fd.get(), file, &st, AT_SYMLINK_NOFOLLOW)
                                   : ::fstat(folder.fd.get(), &st);
    if (rc != 0) return fail_errno(path, errno);
    folder.inode = st.st_ino;
    return folder;
}

// Tries twice, because the caller drops a target that is gone, together with its baseline.
Result<WorkqueueFs::Folder> WorkqueueFs::open_folder(const std::string& name) const {
    auto folder = look_for_folder(name);
    if (folder || !is_gone(folder.error())) return folder;
    return look_for_folder(name);
}

Error WorkqueueFs::unless_there(const Error& error, const std::string& name, ino_t inode) const {
    if (!is_gone(error) || !open_same(name, inode)) return error;
    return {EAGAIN, error.text + ", but the workqueue still exists"};
}

Result<WorkqueueFs::Folder> WorkqueueFs::open_same(const std::string& name, ino_t inode) const {
    auto folder = open_folder(name);
    if (folder && folder->inode != inode)
        return fail(name + ": was replaced by another workqueue of the same name", ENODEV);
    return folder;
}

CpuSet WorkqueueFs::unbound_mask() const {
    return CpuSet::parse_mask(read_file(paths_.workqueues() + "/cpumask").value_or("")).value_or(CpuSet{});
}

Result<Workqueue> WorkqueueFs::read(const std::string& name, const CpuSet& mask) const {
    const auto folder = open_folder(name);
    if (!folder) return tl::unexpected(folder.error());
    Workqueue out;
    out.name = name;
    out.inode = folder->inode;
    if (name == kDefaultTarget) {
        out.kind = Kind::default_scope;
        out.effective = mask;
        const auto scope = scope_at(folder->fd.get(), kDefaultFile);
        if (!scope) return tl::unexpected(unless_there(scope.error(), name, out.inode).in(name));
        out.scope = *scope;
        if (mask.empty()) out.untouchable = kNoMask;
        return out;
    }
    if (const auto done = read_attributes(folder->fd.get(), mask, out); !done) {
        // Has the workqueue disappeared, or does this kernel lack the file? Only the former is an error.
        if (is_gone(done.error()) && !open_same(name, out.inode))
            return tl::unexpected(done.error().in(name));
        out.untouchable = done.error().text;
        out.unread = is_failed_read(done.error().code);
    }
    if (!is_printable(name)) out.untouchable = "its name is not printable ASCII";
    if (out.untouchable.empty() && mask.empty()) out.untouchable = kNoMask;
    return out;
}

Result<ScopeFile> WorkqueueFs::read_scope(const std::string& name, ino_t inode) const {
    const auto folder = open_same(name, inode);
    if (!folder) return tl::unexpected(folder.error());
    return scope_at(folder->fd.get(), folder->scope_file).map_error([&](const Error& e) {
        return unless_there(e, name, inode).in(name);
    });
}

Result<bool> WorkqueueFs::read_strict(const std::string& name, ino_t inode) const {
    const auto folder = open_same(name, inode);
    if (!folder) return tl::unexpected(folder.error());
    const auto value = number_at(folder->fd.get(), kStrictFile);
    if (!value) return tl::unexpected(unless_there(value.error(), name, inode).in(name));
    return *value != 0;
}

Status WorkqueueFs::write(const std::string& name, ino_t inode, const char* file, const std::string& text) {
    const auto folder = open_same(name, inode);
    if (!folder) return tl::unexpected(folder.error());
    const char* real = name == kDefaultTarget ? folder->scope_file : file;
    const std::string what = fmt::format("{}/{}: writing '{}'", name, real, text);
    const auto failed = [&](int code) {
        return tl::unexpected(unless_there(fail_errno(what, code).value(), name, inode));
    };
    Fd fd(::openat(folder->fd.get(), real, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_TRUNC));
    if (!fd) return failed(errno);
    ssize_t n = 0;
    do n = ::write(fd.get(), text.data(), text.size());
    while (n < 0 && errno == EINTR);
    if (n < 0) return failed(errno);
    writes_++;
    if (static_cast<std::size_t>(n) != text.size()) return fail_errno(what + ": short write", EIO);
    return {};
}

Result<MaskFile> WorkqueueFs::read_mask(const std::string& name) const {
    const auto folder = open_folder(name);
    if (!folder) return tl::unexpected(folder.error());
    const int dir = folder->fd.get();
    MaskFile out{folder->inode, {}, {}, "", ""};
    out.untouchable = name == kDefaultMask ? why_no_mask_of_all(dir, read_first_line(paths_.osrelease()))
                                           : why_no_mask(dir);
    if (!is_printable(name)) out.untouchable = "its name is not printable ASCII";
    if (name != kDefaultMask && !has_file(dir, kMaskFile)) {
        if (auto there = open_same(name, out.inode); !there) return tl::unexpected(there.error());
        return out;
    }
    const auto effective = read_at(dir, kMaskFile);
    const bool requested = name == kDefaultMask && has_file(dir, kRequestedFile);
    const auto text = requested ? read_at(dir, kRequestedFile) : effective;
    for (const auto* read : {&effective, &text})
        if (!*read) return tl::unexpected(unless_there(read->error(), name, out.inode).in(name));
    auto cpus = CpuSet::parse_mask(*text);
    auto now = CpuSet::parse_mask(*effective);
    for (const auto* mask : {&cpus, &now})
        if (!*mask) return tl::unexpected(mask->error().in(name + "/" + kMaskFile));
    out.cpus = std::move(*cpus);
    out.effective = std::move(*now);
    out.text = text->substr(0, text->find('\n'));
    if (const auto isolated = read_at(dir, kIsolatedFile); name == kDefaultMask && isolated)
        out.isolated = CpuSet::parse_mask(*isolated).value_or(CpuSet{});
    return out;
}

}  // namespace wq
