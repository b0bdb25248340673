// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "ctl/lab/devices.h"
#include "ctl/lab/runner.h"
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

}  // namespace wq::lab
