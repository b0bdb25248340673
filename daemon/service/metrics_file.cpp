// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/metrics_file.h"

#include <syslog.h>

#include <utility>

#include "base/file.h"

namespace wq {
namespace {

// On a read-only file system, unlink(2) fails even if the file does not exist.
Status remove_if_there(const std::string& path) {
    return exists(path) ? remove_file(path) : Status();
}

// After an error, removes the file: alerts detect that metrics are missing, but not that they are old.
Status show_in(const std::string& file, const std::string& text) {
    if (const auto now = read_file(file, text.size()); now && *now == text) return {};
    auto done = publish_file(file, text);
    if (!done) (void)remove_if_there(file);
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
                say("no metrics: " + done.error().text + "; see METRICS in wq-tuned(8)");
            if (done) said_.clear();
            if (next_) write();
        });
}

// The record may already name another file; then it is kept.
void MetricsFile::remove() {
    next_.reset();
    if (path_.empty()) return;
    const std::string file = paths_.of_user(std::exchange(path_, ""));
    writer_.put(
        file, [file] { return remove_if_there(file); },
        [this](Status done) {
            if (done && path_.empty()) done = remove_if_there(paths_.textfile_record());
            if (!done) say(done.error().in("the metrics file or its record was not removed").text);
        });
}

void MetricsFile::say(const std::string& text) {
    if (text != said_) log_.write({LOG_WARNING, Event::metrics_failed, text});
    said_ = text;
}

}  // namespace wq
