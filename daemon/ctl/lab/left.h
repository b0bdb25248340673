// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/journal.h"
#include "base/result.h"
#include "ctl/lab/devices.h"

namespace wq::lab {

struct Content {
    std::string text;
    ino_t inode = 0;  // 0 where inodes are not stable: outside of sysfs
};

// Files of /sys and /proc that hold a value.
class ValueFiles {
  public:
    ValueFiles() = default;
    ValueFiles(const ValueFiles&) = delete;
    ValueFiles& operator=(const ValueFiles&) = delete;
    virtual ~ValueFiles() = default;

    // The whole content of PATH.
    [[nodiscard]] virtual Result<Content> read(const std::string& path) const;
    // Writes VALUE with one write(2), without a newline, because some parameters would store it. Writes an
    // empty value as a newline, because the kernel ignores a write of no bytes. Error: ENODEV if PATH has
    // another inode than INODE, unless that is 0.
    virtual Status write(const std::string& path, ino_t inode, const std::string& value);
};

// PATH below ROOT ("" is the machine) without links. Errors: it is not absolute, not a file, or outside of
// /sys and /proc.
Result<std::string> resolve_value_file(const std::string& root, const std::string& path);

// How the value of a file is found in its content.
enum class Form {
    word,    // the first word: "default" of "default (cache)"
    choice,  // the word in brackets of "mq-deadline [none]", else the text without trailing newlines
};
std::string value_in(Form form, std::string_view content);
// Whether two contents of a file have the same value. If one choice is in brackets, the others are ignored,
// because they change when a module is loaded.
bool is_same_value(Form form, std::string_view a, std::string_view b);

// What a run may leave, and what undoes it. A file of /sys or /proc that holds, or may hold, a value of ours:
struct LeftFile {
    std::string path;  // absolute, without links
    ino_t inode = 0;   // another one is another file, left alone; see Content
    Form form = Form::choice;
    std::string original;  // its whole content before the first write
    // What it has because of us. Empty: any content may be ours, since a value was written, or is about to
    // be, and it is not known yet how the kernel shows it.
    std::optional<std::string> ours = {};
};
// An arm of commands whose `do` ran or is about to run:
struct LeftCommand {
    std::string name;
    std::string undo;
    bool failed = false;  // `undo` failed
};
// Devices of a benchmark, which may not exist yet:
struct LeftDevice {
    std::string name;
    bool driver = false;  // the benchmark loads the driver, so it unloads it
};
using Left = std::variant<LeftFile, LeftCommand, LeftDevice>;

// /run/wq-tuned/lab.json: what the `ab` or `bench` that holds the lock, or the last one, must put back. An
// entry exists from before the first change until it is put back.
class LeftStore {
  public:
    explicit LeftStore(std::string path) : path_(std::move(path)) {}

    // In the order in which they were first put.
    [[nodiscard]] Result<std::vector<Left>> load() const;
    // Adds LEFT, or replaces the entry of the same file, arm or device. Error: also a text that is not UTF-8.
    [[nodiscard]] Status put(const Left& left) const;
    // Removes the entry of the same file, arm or device. Without entries there is no file.
    [[nodiscard]] Status drop(const Left& left) const;

  private:
    [[nodiscard]] Status save(const std::vector<Left>& all) const;
    std::string path_;
};

// The content of a file of LEFT now. Error: also ENODEV if it is another file now.
Result<std::string> read_left(const ValueFiles& files, const LeftFile& left);
// Writes the value that the file of LEFT had at first. Error: also if it has another value afterwards.
Status put_value_back(ValueFiles& files, const LeftFile& left);

// Runs a command of an arm. Errors: it failed (the text contains its output); EINTR if a signal ended it.
using Shell = std::function<Status(const std::string& command)>;
// Runs the undo of LEFT and drops it from STORE. If the undo fails, STORE keeps it, marked as failed.
Status undo(const LeftStore& store, LeftCommand left, const Shell& shell);

// What puts back.
struct Hands {
    ValueFiles& files;
    Devices& devices;
    Shell shell;  // no signal ends its commands
};

// Puts back what STORE has, the last first, and drops it; logs and keeps what could not be put back. The
// value of an external writer stays. Runs an undo that failed before only if AGAIN. Returns whether nothing
// is left.
bool put_back(const LeftStore& store, const Hands& hands, Log& log, bool again);

}  // namespace wq::lab
