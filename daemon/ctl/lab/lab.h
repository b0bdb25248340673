// SPDX-License-Identifier: LGPL-2.1-or-later
// What `ab` and `bench` share.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/journal.h"
#include "base/result.h"
#include "ctl/lab/arms.h"
#include "ctl/lab/devices.h"
#include "ctl/lab/rounds.h"
#include "ctl/lab/runner.h"
#include "machine/paths.h"
#include "machine/workqueue_fs.h"

namespace wq::lab {

// Prefix of the name that the entry of an arm of commands has in lab.json.
inline constexpr const char* kArmPrefix = "arm ";

struct Content {
    std::string text;  // ends with one newline
    ino_t inode = 0;   // 0 where inodes are not stable: outside of sysfs
};

// What `ab` and `bench` put in place: the files of a workqueue, and what an entry's name tells: a path, an
// arm of commands (the text is a command that is run, which no signal ends) or a device of a benchmark (the
// text is kRemoved or kRemovedWithDriver).
class LabFiles : public WorkqueueFs {
  public:
    LabFiles(Paths paths, const Processes& processes, Devices& devices)
        : WorkqueueFs(std::move(paths)), processes_(processes), devices_(devices) {}
    LabFiles(const LabFiles&) = delete;
    LabFiles& operator=(const LabFiles&) = delete;

    [[nodiscard]] Result<std::string> read_value(const std::string& path, ino_t inode) const override;
    // Of a content with a word in brackets that word is written, or the whole if that does not restore it.
    [[nodiscard]] Status write_value(const std::string& name, ino_t inode, const std::string& text) override;

    [[nodiscard]] virtual Result<Content> read_content(const std::string& path) const;
    // Writes VALUE with one write(2), without a newline, because some parameters would store it. Writes an
    // empty value as a newline, because the kernel ignores a write of no bytes. Error: ENODEV if PATH has
    // another inode than INODE, unless that is 0.
    [[nodiscard]] virtual Status write_content(const std::string& path, ino_t inode,
                                               const std::string& value);

  private:
    [[nodiscard]] Status remove_device(const std::string& name, bool with_driver);

    const Processes& processes_;
    Devices& devices_;
};

inline constexpr const char* kRemoved = "removed";
inline constexpr const char* kRemovedWithDriver = "removed with null_blk";

// PATH below ROOT ("" is the machine) without links. Errors: it is not absolute, not a file, or outside of
// /sys and /proc.
Result<std::string> resolve_value_file(const std::string& root, const std::string& path);

// The machine of a run, and what it needs to put it back.
struct Lab {
    Paths paths;
    Processes& processes;
    Devices& devices;

    // Puts back what lab.json has, or what a daemon left, or only its slots; logs and keeps what could not be
    // put back. Returns whether nothing is left.
    bool put_back(Log& log, bool of_daemon = false, bool only_slots = false) const;
};

// Takes the lock against the daemon and other runs, and puts back what earlier ones left. Then, unless
// ONLY_RESTORE, returns the exit code of WORK; else whether nothing is left.
int in_lab(const Lab& lab, bool only_restore, const std::function<int()>& work);

// Does WORK of COMMAND ("ab" or "bench"), and then always puts back the machine: in the guardian, or in this
// process if the guardian was killed. Error: that of the work, else that something is left.
Status run_guarded(const Lab& lab, const std::string& command, const std::function<Status()>& work);

// Runs ROUNDS of SUBJECT, with progress on stderr. An error ends them; ROUNDS keeps the earlier measurements.
// STORE: lab.json.
Status compare(const Lab& lab, OwnedStore& store, const Subject& subject, Rounds& rounds, unsigned warm_ups,
               const std::function<Result<Figures>(std::size_t arm)>& measure);

}  // namespace wq::lab
