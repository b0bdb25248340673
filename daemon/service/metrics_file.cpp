// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/metrics_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.h"

namespace wq {
namespace {

// A hint for the administrator. The unit allows the daemon to write only to a few folders, and root
// permissions do not help, because it has no CAP_DAC_OVERRIDE.
std::string advice(int code) {
    switch (code) {
        case EROFS:
            return "; the folder needs ReadWritePaths= in a drop-in for wq-tuned.service and "
                   "wq-tuned-restore.service, or, if it was made "
                   "after the start, a restart; see METRICS in wq-tuned(8)";
        case EACCES:
        case EPERM:
            return "; root must be able to write to the folder, or a group named by SupplementaryGroups= in "
                   "a drop-in for both units; see METRICS in wq-tuned(8)";
        case ENOENT:
            return "; the folder does not exist";
        default:
            return "";
    }
}

Status unlink_if_there(const std::string& path) {
    if (::unlink(path.c_str()) == 0) return {};
    const int error = errno;
    // On a read-only file system, unlink(2) fails even if the file does not exist.
    struct stat st = {};
    if (::lstat(path.c_str(), &st) != 0 && (errno == ENOENT || errno == ENOTDIR)) return {};
    return fail_errno(path + ": removing", error);
}

// After an error, removes the file: alerts detect that metrics are missing, but not that they are old.
Status show_in(const std::string& file, const std::string& text) {
    if (const auto now = read_file(file, text.size()); now && *now == text) return {};
    auto done = publish_file(file, text);
    if (!done) (void)unlink_if_there(file);
    return done;
}

}  // namespace

void MetricsFile::recall() {
    auto path = read_file(paths_.textfile_record());
    if (!path) return;
    if (path->ends_with('\n')) path->pop_back();
    if (path->starts_with('/')) path_ = *path;
}

void MetricsFile::use(const std::string& path) {
    if (path == path_) return;
    remove();
    path_ = path;
    if (path.empty()) return;
    if (const auto saved = replace_file(paths_.textfile_record(), path + "\n"); !saved)
        say(saved.error().in("the metrics may be left behind").text);
}

void MetricsFile::show(const std::string& text) {
    next_ = text;
    if (!writing_) write();
}

// One write at a time, however long the disk takes: the newest text is enough.
void MetricsFile::write() {
    const std::string file = paths_.of_user(path_);
    writing_ = true;
    writer_.put(
        file, [file, text = *std::exchange(next_, {})] { return show_in(file, text); },
        [this, file](const Status& done) {
            writing_ = false;
            if (!done && file == paths_.of_user(path_))
                say(fmt::format("no metrics: {}{}", done.error().text, advice(done.error().code)));
            if (done) said_.clear();
            if (next_) write();
        });
}

void MetricsFile::remove() {
    next_.reset();
    if (path_.empty()) return;
    const std::string file = paths_.of_user(std::exchange(path_, ""));
    writer_.put(
        file, [file] { return unlink_if_there(file); }, [this](const Status& done) { removed(done); });
}

// The record may already name another file; then it is kept.
void MetricsFile::removed(const Status& done) {
    Status all = done;
    if (all && path_.empty()) all = unlink_if_there(paths_.textfile_record());
    if (!all) say(all.error().in("the metrics file or its record was not removed").text);
}

void MetricsFile::say(const std::string& text) {
    if (text != said_) log_.write({LOG_WARNING, Event::metrics_failed, text});
    said_ = text;
}

}  // namespace wq
