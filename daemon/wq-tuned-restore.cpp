// SPDX-License-Identifier: LGPL-2.1-or-later
#include <getopt.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <syslog.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/journal.h"
#include "base/version.h"
#include "service/restorer.h"

namespace {

constexpr const char* kUsage =
    "usage: wq-tuned-restore [--all] [--root DIR]\n"
    "Restores the kernel's settings after wq-tuned has ended.\n"
    "  --all       also restore settings that the policy keeps (on_exit = \"keep\")\n"
    "  --root DIR  use DIR as the root of the file system, for tests\n"
    "  -h, --help  this text\n"
    "  --version   the version\n";

// Prints TEXT and ends.
[[noreturn]] void tell(const std::string& text) {
    const bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
    std::exit(written ? 0 : 1);
}

// Returns nullopt if the options are not valid.
std::optional<wq::RestoreOptions> parse(int argc, char** argv) {
    static const option kOptions[] = {{"all", no_argument, nullptr, 'a'},
                                      {"root", required_argument, nullptr, 'r'},
                                      {"help", no_argument, nullptr, 'h'},
                                      {"version", no_argument, nullptr, 'v'},
                                      {nullptr, 0, nullptr, 0}};
    wq::RestoreOptions out;
    struct stat st {};
    for (int c = 0; (c = ::getopt_long(argc, argv, "h", kOptions, nullptr)) != -1;) {
        if (c == 'h') tell(kUsage);
        if (c == 'v') tell(std::string("wq-tuned-restore ") + wq::version() + "\n");
        if (c == 'a') out.all = true;
        if (c == 'r') out.root = ::optarg;
        // An empty or wrong DIR must not select the real machine, and must not create folders.
        if (c == 'r' && (::stat(::optarg, &st) != 0 || !S_ISDIR(st.st_mode))) return std::nullopt;
        if (c == '?') return std::nullopt;
    }
    if (::optind != argc) return std::nullopt;
    return out;
}

}  // namespace

int main(int argc, char** argv) {
    const auto options = parse(argc, argv);
    if (!options) {
        std::fputs(kUsage, stderr);
        return 2;
    }
    const auto done = wq::restore_after_exit(*options);
    if (done) return 0;
    wq::Journal().write(
        {LOG_ERR, wq::Event::none, done.error().text, {{"ERRNO", std::to_string(done.error().code)}}});
    return done.error().code == EWOULDBLOCK ? EX_TEMPFAIL : 1;
}
