// SPDX-License-Identifier: LGPL-2.1-or-later
#include <dirent.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <string_view>

#include "policy/load_policy.h"

namespace wq {
namespace {

constexpr std::array kFolders = {"/etc", "/run", "/usr/lib"};  // the first one has priority
constexpr const char* kMainFile = "/wq-tuned/wq-tuned.toml";
constexpr const char* kDropIns = "/wq-tuned/wq-tuned.toml.d";

bool is_there(const std::string& path) {
    struct stat st {};
    return ::lstat(path.c_str(), &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

// Whether PATH is empty or a link to /dev/null: it hides files of the same name and has no content.
bool masks(const std::string& path) {
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) return false;
    if (S_ISREG(st.st_mode)) return st.st_size == 0;
    return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

std::string main_file(const std::string& root) {
    for (const char* folder : kFolders)
        if (auto path = root + folder + kMainFile; is_there(path)) return path;
    return "";
}

bool is_drop_in(std::string_view name) {
    constexpr std::string_view suffix = ".toml";
    return name.size() > suffix.size() && name.front() != '.' && name.ends_with(suffix);
}

struct CloseDir {
    void operator()(DIR* dir) const { ::closedir(dir); }
};

bool everyone_may_write(DIR* dir) {
    struct stat st {};
    return ::fstat(::dirfd(dir), &st) != 0 || (st.st_mode & S_IWOTH) != 0;
}

// Adds the drop-ins of FOLDER to PATHS by name, unless PATHS has the name already. Returns false if the
// folder exists and cannot be read, or everybody may write to it.
bool list_drop_ins(const std::string& folder, std::map<std::string, std::string>& paths) {
    const std::unique_ptr<DIR, CloseDir> dir(::opendir(folder.c_str()));
    if (!dir) return !is_there(folder);
    if (everyone_may_write(dir.get())) return false;
    for (;;) {
        errno = 0;
        const dirent* entry = ::readdir(dir.get());
        if (entry == nullptr) return errno == 0;
        if (is_drop_in(entry->d_name)) paths.emplace(entry->d_name, folder + "/" + entry->d_name);
    }
}

}  // namespace

bool has_main_file(const std::string& root) {
    return !main_file(root).empty();
}

std::vector<std::string> policy_files(const std::string& root) {
    std::map<std::string, std::string> drop_ins;
    std::vector<std::string> files{main_file(root)};
    std::vector<std::string> refused;
    for (const char* folder : kFolders)
        if (const auto path = root + folder + kDropIns; !list_drop_ins(path, drop_ins))
            refused.push_back(path + "/");  // the slash prevents that it is read as a file
    for (const auto& [name, path] : drop_ins) files.push_back(path);
    std::erase_if(files, [](const std::string& path) { return path.empty() || masks(path); });
    files.insert(files.end(), refused.begin(), refused.end());
    return files;
}

}  // namespace wq
