// SPDX-License-Identifier: LGPL-2.1-or-later
//
// fuzz-replay TARGET FOLDER: runs the target once with each file of the folder. Prints the name of the file
// first, so that the last name is that of the input that crashed.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "fuzz.h"

namespace {

namespace fs = std::filesystem;

std::map<std::string_view, wq::fuzz::Target>& targets() {
    static std::map<std::string_view, wq::fuzz::Target> all;
    return all;
}

std::string text_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

wq::fuzz::Registered::Registered(std::string_view name, Target target) {
    targets().emplace(name, target);
}

int main(int argc, char** argv) {
    const auto target = argc == 3 ? targets().find(argv[1]) : targets().end();
    if (target == targets().end() || !fs::is_directory(argv[2])) {
        fmt::print(stderr, "usage: fuzz-replay TARGET FOLDER; targets:");
        for (const auto& [name, each] : targets()) fmt::print(stderr, " {}", name);
        fmt::print(stderr, "\n");
        return 2;
    }
    std::vector<fs::path> files(fs::directory_iterator(argv[2]), {});
    std::ranges::sort(files);
    for (const fs::path& file : files) {
        fmt::print("{}\n", file.string());
        std::fflush(stdout);
        target->second(text_of(file));
    }
    if (!files.empty()) return 0;
    fmt::print(stderr, "{}: no inputs\n", argv[2]);
    return 1;
}
