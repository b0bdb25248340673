// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/fleet_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>

#include "base/file.h"
#include "ctl/machine.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kChunk = 1U << 20U;  // bytes
constexpr std::size_t kMostErrors = 20;    // that are printed

Result<std::size_t> read_some(int fd, char* out, std::size_t size) {
    for (;;) {
        const ssize_t got = ::read(fd, out, size);
        if (got >= 0) return static_cast<std::size_t>(got);
        if (errno != EINTR) return fail_errno("reading", errno);
    }
}

Result<Fd> nameless_file() {
    const char* folder = ::getenv("TMPDIR");
    std::string path =
        std::string(folder != nullptr && *folder != '\0' ? folder : "/var/tmp") + "/wq-fleet.XXXXXX";
    Fd fd(::mkostemp(path.data(), O_CLOEXEC));
    if (!fd) return fail_errno(path, errno);
    ::unlink(path.c_str());
    return fd;
}

// Passes the lines of a file to TAKE. Buffers at most kMostLine + 1 bytes of a line.
class Lines {
  public:
    explicit Lines(std::function<void(std::string_view)> take) : take_(std::move(take)) {}

    Status read(int fd) {
        std::string buffer(kChunk, '\0');
        for (;;) {
            const auto got = read_some(fd, buffer.data(), buffer.size());
            if (!got) return tl::unexpected(got.error());
            if (*got == 0) break;
            split(std::string_view(buffer).substr(0, *got));
        }
        if (!rest_.empty()) take_(rest_);
        return {};
    }

  private:
    void split(std::string_view text) {
        for (;;) {
            const auto end = text.find('\n');
            if (end == std::string_view::npos) return keep(text);
            if (rest_.empty()) {
                take_(text.substr(0, end));
            } else {
                keep(text.substr(0, end));
                take_(rest_);
                rest_.clear();
            }
            text.remove_prefix(end + 1);
        }
    }
    void keep(std::string_view text) {
        rest_ += text.substr(0, kMostLine + 1 - std::min(rest_.size(), kMostLine + 1));
    }

    std::function<void(std::string_view)> take_;
    std::string rest_;
};

bool is_blank(std::string_view line) {
    return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

FleetInput::FleetInput(const std::vector<std::string>& files, std::vector<std::string>& errors) {
    for (const std::string& file : files) {
        struct stat info {};
        const bool is_directory = file != "-" && ::stat(file.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
        const Status added = is_directory ? add_directory(file, errors) : add(file);
        if (!added) errors.push_back(added.error().text);
    }
}

Status FleetInput::add(const std::string& file) {
    if (file == "-") return add_copy("stdin", STDIN_FILENO);
    const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) != 0) return fail_errno(file, errno);
    if (!S_ISREG(info.st_mode)) return add_copy(file, fd.get());
    bytes_ += static_cast<std::uint64_t>(info.st_size);
    sources_.push_back({file, Fd()});
    return {};
}

Status FleetInput::add_copy(const std::string& name, int fd) {
    auto copy = nameless_file();
    if (!copy) return tl::unexpected(copy.error().in(name));
    std::string buffer(kChunk, '\0');
    for (;;) {
        const auto got = read_some(fd, buffer.data(), buffer.size());
        if (!got) return tl::unexpected(got.error().in(name));
        if (*got == 0) break;
        const auto put = write_all(copy->get(), std::string_view(buffer).substr(0, *got));
        if (!put) return tl::unexpected(put.error().in(name));
        bytes_ += *got;
    }
    sources_.push_back({name, std::move(*copy)});
    return {};
}

Status FleetInput::add_directory(const std::string& path, std::vector<std::string>& errors) {
    const auto names = names_in(path);
    if (!names) return tl::unexpected(names.error());
    for (const std::string& name : *names) {
        if (name.starts_with('.')) continue;
        const std::string file = path + "/" + name;
        struct stat info {};
        if (::stat(file.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
        if (const auto added = add(file); !added) errors.push_back(added.error().text);
    }
    return {};
}

void FleetInput::each_line(const std::function<void(std::string_view, const Place&)>& take,
                           std::vector<std::string>& errors) const {
    for (const Source& source : sources_) {
        std::uint64_t line = 0;
        const Place place = [&] { return fmt::format("{}:{}", source.name, line); };
        Lines lines([&](std::string_view text) {
            line++;
            if (!is_blank(text)) take(text, place);
        });
        const Fd opened(source.copy ? -1 : ::open(source.name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
        const int fd = source.copy ? source.copy.get() : opened.get();
        const bool ready = source.copy ? ::lseek(fd, 0, SEEK_SET) == 0 : fd >= 0;
        const Status read = ready ? lines.read(fd) : fail_errno("opening", errno);
        if (!read) errors.push_back(read.error().in(source.name).text);
    }
}

FleetRead read_fleet(const std::vector<std::string>& files, const Shard& shard) {
    FleetRead out;
    std::vector<std::string> errors;
    std::size_t said = 0;
    const auto say = [&](const std::string& text) {
        if (said++ < kMostErrors) complain(text);
    };
    const FleetInput input(files, errors);
    FleetMerge merge({shard, ::time(nullptr), input.bytes()});
    do {
        input.each_line(
            [&](std::string_view line, const FleetInput::Place& place) {
                const std::string why = merge.take(line);
                if (!merge.note().empty()) say(place() + ": " + merge.note());
                if (why.empty()) return;
                say(place() + ": " + why);
                out.whole = false;
            },
            errors);
    } while (merge.again());
    std::ranges::sort(errors);
    errors.erase(std::unique(errors.begin(), errors.end()), errors.end());
    for (const std::string& error : errors) say(error);
    if (said > kMostErrors) complain(fmt::format("{} more messages like these", said - kMostErrors));
    out.whole = out.whole && errors.empty();
    out.entries = merge.entries();
    return out;
}

}  // namespace wq::ctl
