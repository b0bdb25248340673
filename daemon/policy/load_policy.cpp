// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Two passes. The first reads and checks every table of every file, each host table separately. If there is
// no error, the second reads the matching host tables again and applies them on top of the rest.
#include "policy/load_policy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <list>
#include <map>
#include <string_view>
#include <tuple>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "policy/quantity.h"
#include "policy/rule_warnings.h"
#include "policy/settings.h"
#include "policy/toml.h"

namespace wq {
namespace {

// ---- the files of a host

constexpr std::array kFolders = {"/etc", "/run", "/usr/lib"};  // the first one has priority
constexpr const char* kMainFile = "/wq-tuned/wq-tuned.toml";
constexpr std::size_t kMaxPolicyFile = 1 << 20;
constexpr const char* kDropIns = "/wq-tuned/wq-tuned.toml.d";

bool is_there(const std::string& path) {
    struct stat st {};
    return ::lstat(path.c_str(), &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

bool is_dev_null(const struct stat& st) {
    return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

// Whether PATH is empty or a link to /dev/null: it hides files of the same name and has no content.
bool masks(const std::string& path) {
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) return false;
    return S_ISREG(st.st_mode) ? st.st_size == 0 : is_dev_null(st);
}

std::string main_file(const std::string& root) {
    for (const char* folder : kFolders)
        if (auto path = root + folder + kMainFile; is_there(path)) return path;
    return "";
}

bool is_drop_in(std::string_view name) {
    return !name.starts_with('.') && name.ends_with(".toml");
}

// Adds the drop-ins of FOLDER to PATHS by name, unless PATHS has the name already. Returns false if the
// folder exists and cannot be read, or everybody may write to it.
bool list_drop_ins(const std::string& folder, std::map<std::string, std::string>& paths) {
    struct stat st {};
    if (::stat(folder.c_str(), &st) != 0) return !is_there(folder);
    const auto names = names_in(folder);
    if (!names || (st.st_mode & S_IWOTH) != 0) return false;
    for (const std::string& name : *names)
        if (is_drop_in(name)) paths.emplace(name, folder + "/" + name);
    return true;
}

// ---- one file

// Why an open file is rejected, or "".
std::string refusal(const struct stat& st) {
    if (!S_ISCHR(st.st_mode) && (st.st_mode & S_IWOTH) != 0)
        return "everyone may write to it, so it is not trusted (chmod o-w)";
    if (!S_ISREG(st.st_mode)) return "not a regular file";
    if (static_cast<std::uintmax_t>(st.st_size) > kMaxPolicyFile) return "larger than 1 MiB";
    return "";
}

// Why files in PATH's folder are rejected, or "". Users with write permission on the folder can replace the
// file, unless the folder has the sticky bit (/tmp).
std::string refusal_of_folder(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    struct stat st {};
    if (::stat(folder.c_str(), &st) != 0 || (st.st_mode & S_IWOTH) == 0 || (st.st_mode & S_ISVTX) != 0)
        return "";
    return "everyone may write to its folder, so it is not trusted (chmod o-w)";
}

std::string why(int code) {
    return code == EFBIG ? "larger than 1 MiB" : fail_errno("cannot be read", code).value().text;
}

}  // namespace

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

tl::expected<std::string, PolicyError> read_policy_file(const std::string& path) {
    const auto refuse = [&](const std::string& reason) {
        return tl::unexpected(PolicyError{path, 0, 0, reason, "", 0});
    };
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat st {};
    if (!fd || ::fstat(fd.get(), &st) != 0) return refuse(why(errno));
    if (is_dev_null(st)) return std::string();
    if (const auto reason = refusal(st); !reason.empty()) return refuse(reason);
    if (const auto reason = refusal_of_folder(path); !reason.empty()) return refuse(reason);
    auto text = read_all(fd.get(), kMaxPolicyFile);
    if (!text) return refuse(why(text.error().code));
    return std::move(*text);
}

namespace {

// ---- conditions of host tables

// Reads the conditions of a table, and collects the reasons why they do not hold.
struct Conditions {
    const TomlTable& when;
    std::vector<std::string> misses = {};

    void require(bool is_known, bool holds, const std::string& key, const std::string& is_instead) {
        if (!is_known)
            misses.push_back(key + " is not known here");
        else if (!holds)
            misses.push_back(key + " is " + is_instead);
    }

    void glob(const std::string& key, const std::vector<std::string>& words) {
        const auto pattern = when.get(key, read_text);
        if (!pattern) return;
        std::vector<std::string> quoted;
        for (const std::string& word : words) quoted.push_back(in_quotes(word));
        require(!words.empty(),
                std::ranges::any_of(words, [&](auto& word) { return is_match(*pattern, word); }), key,
                fmt::format("{}, not {}", fmt::join(quoted, " or "), in_quotes(*pattern)));
    }

    void flag(const std::string& key, std::optional<bool> fact) {
        if (const auto wanted = when.get(key, read_flag))
            require(fact.has_value(), fact == wanted, key,
                    fmt::format("{}, not {}", fact.value_or(false), *wanted));
    }

    // FACT is empty if it is not known, else SHOWN.
    void range(const std::string& key, Result<NumberRange> (*parse)(std::string_view),
               Result<std::string> (*read)(const TomlValue&), const Numbers& fact, const std::string& shown) {
        const auto wanted = when.get(key, [&](const TomlValue& value) -> Result<NumberRange> {
            const auto text = read(value);
            if (!text) return tl::unexpected(text.error());
            auto out = parse(*text);
            return out ? out : refusal(value, out.error().text);
        });
        if (wanted)
            require(!fact.empty(), wanted->has(fact), key,
                    fmt::format("{}, not {}", shown, in_quotes(*read(*when.find(key)))));
    }

    void number(const std::string& key, std::optional<unsigned> fact) {
        range(key, NumberRange::of_numbers, read_scalar, fact ? Numbers{*fact} : Numbers{},
              std::to_string(fact.value_or(0)));
    }

    void feature(const HostFacts& facts) {
        std::vector<std::string_view> names;
        for (const NamedFeature& feature : kFeatures) names.push_back(feature.name);
        const auto name = when.get("has", [&](const TomlValue& value) { return read_word(value, names); });
        if (!name) return;
        const auto value = std::ranges::find(kFeatures, *name, &NamedFeature::name)->value;
        const auto has = facts.features ? facts.features().*value : std::nullopt;
        if (!has)
            misses.push_back(fmt::format("has: whether the kernel has {} is not known here", *name));
        else if (!*has)
            misses.push_back(fmt::format("has: this kernel has no {}", *name));
    }

    void canary(const HostFacts& facts, const std::string& host) {
        const auto share = when.get("canary", read_parsed(parse_percentage));
        if (!share) return;
        if (facts.machine_id.empty())
            return misses.emplace_back("canary: the machine id is not known here"), void();
        const double position = canary_position(facts.machine_id, host);
        if (position >= *share && *share < 1)
            misses.push_back(fmt::format("canary: this host is at {:.4f}%, not below {}", position * 100,
                                         *read_scalar(*when.find("canary"))));
    }
};

// Reads `when` of the host table NAME. Returns why the table does not apply to a host with FACTS: a line for
// each condition that is false, or whose fact is not known.
std::vector<std::string> read_when(const TomlTable& when, const HostFacts& facts, const std::string& name) {
    const auto one = [](const std::string& fact) {
        return fact.empty() ? std::vector<std::string>{} : std::vector{fact};
    };
    Conditions all{when};
    all.glob("arch", one(facts.arch));
    all.glob("cpu_vendor", one(facts.cpu_vendor));
    all.glob("cpu_model", facts.cpu_models);
    all.number("llc_cores", facts.llc_cores);
    all.number("cores", facts.cores);
    all.number("numa_nodes", facts.numa_nodes);
    all.flag("smt", facts.smt);
    // A string: the TOML number 6.10 would be 6.1.
    all.range("kernel", NumberRange::of_versions, read_text, leading_numbers(facts.kernel),
              in_quotes(facts.kernel));
    all.glob("hostname", one(facts.hostname));
    all.flag("virtual", facts.is_virtual);
    all.feature(facts);
    all.canary(facts, name);
    when.reject_unknown_keys(kWhenKeys);
    return all.misses;
}

// ---- files and their host tables

std::string named(const CpuSet& cpus) {
    return fmt::format("CPU{} {}", cpus.count() == 1 ? "" : "s", cpus.list());
}

// The kernel would silently drop CPUs that are not possible (kernel/workqueue.c, apply_wqattrs_prepare()),
// and run unbound work on isolated ones.
std::string why_refused(const CpuSet& mask, const HostCpus& cpus) {
    if (const CpuSet missing = mask - cpus.possible; !missing.empty())
        return fmt::format("cpumask has {}, which this host does not have ({})", named(missing),
                           cpus.possible.list());
    if (const CpuSet isolated = mask & cpus.isolated; !isolated.empty())
        return fmt::format("cpumask has isolated {} (isolcpus=, nohz_full=)", named(isolated));
    return "";
}

constexpr std::size_t kMaxHostName = 255;

class Loader {
  public:
    void read(const std::string& path) {
        auto text = read_policy_file(path);
        if (!text) return errors_.push_back(text.error());
        Source& source = sources_.emplace_back(Source{{path, std::move(*text)}, std::nullopt});
        PolicyErrors& errors = source.file.errors;
        source.top = source.file.parse();
        if (source.top) {
            const TomlTable top{&*source.top, &source.file};
            read_tables(top, policy_, {"host"});
            read_hosts(top);
        }
        // Keys are read in the code's order.
        std::ranges::stable_sort(errors, {}, [](auto& error) { return std::pair(error.line, error.column); });
        errors_.insert(errors_.end(), errors.begin(), errors.end());
    }

    tl::expected<Policy, PolicyErrors> merge(const FactsSource& source, PolicyErrors* warnings) {
        if (errors_.empty()) check_hosts();
        if (!errors_.empty()) return tl::unexpected(errors_);
        if (warnings != nullptr) *warnings = all_warnings();
        const bool needs_facts = !hosts_.empty() || names_cpus();
        const HostFacts facts = source && needs_facts ? source() : HostFacts{};  // reading them is expensive
        for (Host& host : hosts_) {
            const auto when = host.table.table("when");
            HostMatch match{host.name, host.origin, when ? read_when(*when, facts, host.name) : Misses{}};
            if (match.matches()) read_tables(host.table, policy_, {"name", "when"});
            policy_.hosts.push_back(std::move(match));
        }
        if (names_cpus() && facts.cpus) check_masks(facts.cpus());
        if (errors_.empty()) check_times(policy_);
        if (!errors_.empty()) return tl::unexpected(errors_);
        return std::move(policy_);
    }

  private:
    using Misses = std::vector<std::string>;
    // Must not move, because tables point to it.
    struct Source {
        TomlFile file;
        std::optional<TomlValue> top;
    };
    struct Host {
        TomlTable table;
        std::string name;
        Origin origin;
        Policy alone;  // what it says, without the rest
    };

    void read_hosts(const TomlTable& top) {
        const auto tables = top.tables("host");
        if (tables.size() > kMaxHosts)
            return top.file->error(*tables[kMaxHosts].value,
                                   fmt::format("more than {} host tables", kMaxHosts));
        for (const TomlTable& table : tables) read_host(table);
    }

    void read_host(const TomlTable& table) {
        TomlFile& file = *table.file;
        Host host{table, table.get("name", read_text).value_or(""), file.origin(*table.value), {}};
        if (!table.has("name"))
            file.error(*table.value, "a host table needs a name, such as name = \"epyc\"");
        if (host.name.size() > kMaxHostName)
            file.error(*table.find("name"), fmt::format("name is longer than {} bytes", kMaxHostName));
        if (!host.name.empty() && !names_.emplace(host.name, host.origin).second)
            file.error(*table.find("name"), fmt::format("host {} already exists ({})", in_quotes(host.name),
                                                        names_[host.name].text()));
        if (const auto when = table.table("when")) read_when(*when, {}, host.name);
        read_tables(table, host.alone, {"name", "when"});
        hosts_.push_back(std::move(host));
    }

    [[nodiscard]] PolicyError error_at(const Origin& place, std::string message) const {
        for (const Source& source : sources_)
            if (source.file.path == place.file) return source.file.error_at(place, std::move(message));
        return {place.file, place.line, place.column, std::move(message), "", 0};
    }

    // Inconsistent values outside of host tables, or in one host table combined with them. Every host
    // reports such an error, so it is found before the rollout.
    void check_hosts() {
        check_times(policy_);
        if (!errors_.empty()) return;
        for (const Host& host : hosts_) {
            if (host.alone.times.line == 0) continue;
            Policy merged = policy_;
            read_tables(host.table, merged, {"name", "when"});
            check_times(merged);
        }
    }

    void check_times(const Policy& policy) {
        if (policy.judge.washout < policy.judge.window) return;
        const auto said = [&](const char* key, std::chrono::milliseconds time) {
            const auto found = policy.origins.find(key);
            return fmt::format("{} ({})", text_of(time),
                               (found == policy.origins.end() ? Origin{} : found->second).text());
        };
        errors_.push_back(
            error_at(policy.times, fmt::format("washout must be less than window: it is {}, and window is {}",
                                               said("judge.washout", policy.judge.washout),
                                               said("judge.window", policy.judge.window))));
    }

    [[nodiscard]] bool names_cpus() const {
        const auto names = [](const MaskWish& mask) { return !mask.cpus.empty(); };
        return names(policy_.default_mask) || std::ranges::any_of(policy_.rules, names, &WorkqueueRule::mask);
    }

    // The masks in force, on a host with CPUS. No errors if the possible CPUs are not known.
    void check_masks(const HostCpus& cpus) {
        if (cpus.possible.empty()) return;
        const auto check = [&](const MaskWish& mask, const Origin& place) {
            if (const auto why = why_refused(mask.cpus, cpus); !why.empty())
                errors_.push_back(error_at(place, why));
        };
        for (const WorkqueueRule& rule : policy_.rules) check(rule.mask, rule.mask_origin);
        check(policy_.default_mask, policy_.origins["default_mask.cpumask"]);
        sort(errors_);
    }

    // Of the rules of all files, and of each host table.
    [[nodiscard]] PolicyErrors all_warnings() const {
        PolicyErrors out;
        const auto add = [&](const Policy& policy) {
            for (const auto& [place, message] : warnings_about(policy.rules))
                out.push_back(error_at(place, message));
        };
        add(policy_);
        for (const Host& host : hosts_) add(host.alone);
        sort(out);
        return out;
    }

    // By file, in their order, and place.
    void sort(PolicyErrors& errors) const {
        std::ranges::stable_sort(errors, {}, [&](const PolicyError& error) {
            const auto source =
                std::ranges::find(sources_, error.file, [](auto& one) { return one.file.path; });
            return std::tuple(std::distance(sources_.begin(), source), error.line, error.column);
        });
    }

    Policy policy_;
    std::list<Source> sources_;
    std::vector<Host> hosts_;
    std::map<std::string, Origin> names_;  // of host tables
    PolicyErrors errors_;
};

}  // namespace

tl::expected<Policy, PolicyErrors> load_policy(const std::vector<std::string>& files,
                                               const FactsSource& facts, PolicyErrors* warnings) {
    Loader loader;
    for (const std::string& file : files) loader.read(file);
    return loader.merge(facts, warnings);
}

Policy no_policy() {
    Policy out;
    out.mode = Mode::observe;
    out.default_scope.manage = false;
    return out;
}

tl::expected<Policy, PolicyErrors> load_installed_policy(const std::string& root,
                                                         const std::optional<std::string>& config,
                                                         const FactsSource& facts) {
    auto policy = load_policy(config ? std::vector{*config} : policy_files(root), facts);
    if (policy && !config && main_file(root).empty()) policy->rules.push_back({{"*"}, {}, {}, {}});
    if (policy) policy->expire(wall_clock());
    return policy;
}

}  // namespace wq
