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
#include <cerrno>
#include <list>
#include <map>
#include <string_view>
#include <utility>

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

constexpr const char* kFolders[] = {"/etc", "/run", "/usr/lib"};  // the first one has priority
constexpr const char* kMainFile = "/wq-tuned/wq-tuned.toml";
constexpr const char* kDropIns = "/wq-tuned/wq-tuned.toml.d";
constexpr std::size_t kMaxPolicyFile = 1 << 20;  // bytes

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

// Adds the drop-ins of FOLDER to PATHS by name, unless PATHS has the name already. Returns false if the
// folder exists and cannot be read, or everybody may write to it.
bool list_drop_ins(const std::string& folder, std::map<std::string, std::string>& paths) {
    struct stat st {};
    if (::stat(folder.c_str(), &st) != 0) return !is_there(folder);
    const auto names = names_in(folder);
    if (!names || (st.st_mode & S_IWOTH) != 0) return false;
    for (const std::string& name : *names)
        if (!name.starts_with('.') && name.ends_with(".toml")) paths.emplace(name, folder + "/" + name);
    return true;
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
        return tl::unexpected(PolicyError{path, 0, 0, reason, ""});
    };
    const auto cannot = [](int code) { return fail_errno("cannot be read", code).value().text; };
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat st {};
    if (!fd || ::fstat(fd.get(), &st) != 0) return refuse(cannot(errno));
    if (is_dev_null(st)) return std::string();
    if (!S_ISCHR(st.st_mode) && (st.st_mode & S_IWOTH) != 0)
        return refuse("everyone may write to it, so it is not trusted (chmod o-w)");
    if (!S_ISREG(st.st_mode)) return refuse("not a regular file");
    // Who may write to the folder can replace the file, unless the folder has the sticky bit (/tmp).
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    if (::stat(folder.c_str(), &st) == 0 && (st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0)
        return refuse("everyone may write to its folder, so it is not trusted (chmod o-w)");
    auto text = read_all(fd.get(), kMaxPolicyFile);
    if (!text) return refuse(text.error().code == EFBIG ? "larger than 1 MiB" : cannot(text.error().code));
    return std::move(*text);
}

namespace {

// ---- conditions of host tables

enum class Compared { glob, number, version, flag };

// A key of `when`. FACT: what it is compared with, as text; empty if that is not known.
struct Condition {
    std::string_view key;
    Compared as;
    std::vector<std::string> (*fact)(const HostFacts&);
};

std::vector<std::string> known(const std::string& fact) {
    return fact.empty() ? std::vector<std::string>{} : std::vector{fact};
}
template <class T>
std::vector<std::string> known(const std::optional<T>& fact) {
    return fact ? std::vector{fmt::format("{}", *fact)} : std::vector<std::string>{};
}

constexpr Condition kConditions[] = {
    {"arch", Compared::glob, [](const HostFacts& host) { return known(host.arch); }},
    {"cpu_vendor", Compared::glob, [](const HostFacts& host) { return known(host.cpu_vendor); }},
    {"cpu_model", Compared::glob, [](const HostFacts& host) { return host.cpu_models; }},
    {"llc_cores", Compared::number, [](const HostFacts& host) { return known(host.llc_cores); }},
    {"cores", Compared::number, [](const HostFacts& host) { return known(host.cores); }},
    {"numa_nodes", Compared::number, [](const HostFacts& host) { return known(host.numa_nodes); }},
    {"smt", Compared::flag, [](const HostFacts& host) { return known(host.smt); }},
    {"kernel", Compared::version, [](const HostFacts& host) { return known(host.kernel); }},
    {"hostname", Compared::glob, [](const HostFacts& host) { return known(host.hostname); }},
    {"virtual", Compared::flag, [](const HostFacts& host) { return known(host.is_virtual); }},
};

// Why VALUE is not true for FACTS, of which one is enough; "" if it is. An error if it is not valid.
Result<std::string> why_not(const TomlValue& value, Compared as, const std::vector<std::string>& facts) {
    const auto text = as == Compared::flag
                          ? read_flag(value).map([](bool flag) { return fmt::format("{}", flag); })
                      : as == Compared::number ? read_scalar(value)
                                               : read_text(value);  // the TOML number 6.10 would be 6.1
    if (!text) return tl::unexpected(text.error());
    const auto holds = [&](const std::string& fact) -> Result<bool> {
        if (as == Compared::glob) return is_match(*text, fact);
        if (as == Compared::flag) return fact == *text;
        return in_range(leading_numbers(fact), *text, as == Compared::version);
    };
    if (const auto valid = holds(""); !valid) return refusal(value, valid.error().text);
    if (std::ranges::any_of(facts, [&](const auto& fact) { return holds(fact).value(); })) return "";
    return facts.empty() ? "is not known here"
                         : fmt::format("is {}, not {}", fmt::join(facts, " or "), in_quotes(*text));
}

Result<std::string> why_not_canary(const TomlValue& value, const HostFacts& facts, const std::string& name) {
    return read_parsed(parse_percentage)(value).map([&](double share) -> std::string {
        if (facts.machine_id.empty()) return "is not known here: there is no machine id";
        const double position = canary_position(facts.machine_id, name);
        if (position < share || share == 1) return "";
        return fmt::format("is {:.4f}% for this host, not below {}", position * 100, percentage_text(share));
    });
}

Result<std::string> why_not_feature(const TomlValue& value, const HostFacts& facts) {
    std::vector<std::string_view> names;
    for (const NamedFeature& feature : kFeatures) names.push_back(feature.name);
    return read_word(value, names).map([&](const std::string& name) -> std::string {
        const auto feature = std::ranges::find(kFeatures, name, &NamedFeature::name)->value;
        const auto has = facts.features ? facts.features().*feature : std::nullopt;
        if (!has) return name + " is not known here";
        return *has ? "" : name + " is not true of this kernel";
    });
}

// Reads `when` of the host table NAME. Returns why the table does not apply to a host with FACTS: a line for
// each condition that is false, or whose fact is not known.
std::vector<std::string> read_when(const TomlTable& when, const HostFacts& facts, const std::string& name) {
    std::vector<std::string> misses;
    std::vector<std::string_view> keys;
    const auto ask = [&](std::string_view key, auto why) {
        keys.push_back(key);
        if (const auto found = when.get(std::string(key), why); found && !found->empty())
            misses.push_back(fmt::format("{} {}", key, printable(*found)));
    };
    for (const Condition& one : kConditions)
        ask(one.key, [&](const TomlValue& value) { return why_not(value, one.as, one.fact(facts)); });
    ask("has", [&](const TomlValue& value) { return why_not_feature(value, facts); });
    ask("canary", [&](const TomlValue& value) { return why_not_canary(value, facts, name); });
    when.reject_unknown_keys(keys);
    return misses;
}

// ---- files and their host tables

// The kernel would silently drop CPUs that are not possible (kernel/workqueue.c, apply_wqattrs_prepare()),
// and run unbound work on isolated ones.
std::string why_refused(const CpuSet& mask, const HostCpus& cpus) {
    if (cpus.possible.empty()) return "";
    if (const CpuSet missing = mask - cpus.possible; !missing.empty())
        return fmt::format("cpumask has CPUs {}, which this host does not have ({})", missing.list(),
                           cpus.possible.list());
    if (const CpuSet isolated = mask & cpus.isolated; !isolated.empty())
        return fmt::format("cpumask has isolated CPUs {} (isolcpus=, nohz_full=)", isolated.list());
    return "";
}

const std::vector<std::string_view> kHostKeys = {"name", "when"};

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
            for (const TomlTable& table : top.tables("host", kMaxHosts)) read_host(table);
        }
        // Keys are read in the code's order.
        std::ranges::stable_sort(errors, {}, [](auto& error) { return std::pair(error.line, error.column); });
        errors_.insert(errors_.end(), errors.begin(), errors.end());
    }

    tl::expected<Policy, PolicyErrors> merge(const FactsSource& source, PolicyErrors* warnings) {
        check_times(policy_);
        for (const Host& host : hosts_) {  // errors are found before the rollout
            Policy merged = policy_;
            if (errors_.empty()) read_tables(host.table, merged, kHostKeys);
            check_times(merged);
        }
        if (!errors_.empty()) return tl::unexpected(errors_);
        if (warnings != nullptr) warn(policy_, *warnings);
        const auto names_cpus = [&] {
            const auto names = [](const MaskWish& mask) { return !mask.cpus.empty(); };
            return names(policy_.default_mask) ||
                   std::ranges::any_of(policy_.rules, names, &WorkqueueRule::mask);
        };
        const bool needs_facts = !hosts_.empty() || names_cpus();
        const HostFacts facts = source && needs_facts ? source() : HostFacts{};  // reading them is expensive
        for (Host& host : hosts_) {
            if (warnings != nullptr) warn(host.alone, *warnings);
            const auto when = host.table.table("when");
            HostMatch match{host.name, host.origin, {}};
            if (when) match.misses = read_when(*when, facts, host.name);
            if (match.matches()) read_tables(host.table, policy_, kHostKeys);
            policy_.hosts.push_back(std::move(match));
        }
        check_times(policy_);
        if (names_cpus() && facts.cpus) check_masks(facts.cpus());
        if (!errors_.empty()) return tl::unexpected(errors_);
        return std::move(policy_);
    }

  private:
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

    void read_host(const TomlTable& table) {
        TomlFile& file = *table.file;
        Host host{table, table.get("name", read_text).value_or(""), file.origin(*table.value), {}};
        const TomlValue* name = table.find("name");
        const auto same = std::ranges::find(hosts_, host.name, &Host::name);
        if (name == nullptr)
            file.error(*table.value, "a host table needs a name, such as name = \"epyc\"");
        else if (!host.name.empty() && same != hosts_.end())
            file.error(*name,
                       fmt::format("host {} already exists ({})", in_quotes(host.name), same->origin.text()));
        if (const auto when = table.table("when")) read_when(*when, {}, host.name);
        read_tables(table, host.alone, kHostKeys);
        hosts_.push_back(std::move(host));
    }

    [[nodiscard]] PolicyError error_at(const Origin& place, std::string message) const {
        for (const Source& source : sources_)
            if (source.file.path == place.file) return source.file.error_at(place, std::move(message));
        return {place.file, place.line, place.column, std::move(message), ""};
    }

    // Adds an error if these two are inconsistent, unless there are other ones.
    void check_times(const Policy& policy) {
        if (!errors_.empty() || policy.judge.washout < policy.judge.window) return;
        errors_.push_back(
            error_at(policy.times, fmt::format("washout must be less than window: it is {}, and window is {}",
                                               text_of(policy.judge.washout), text_of(policy.judge.window))));
    }

    // The masks in force, on a host with CPUS.
    void check_masks(const HostCpus& cpus) {
        const auto check = [&](const MaskWish& mask, const Origin& place) {
            if (const auto why = why_refused(mask.cpus, cpus); !why.empty())
                errors_.push_back(error_at(place, why));
        };
        for (const WorkqueueRule& rule : policy_.rules) check(rule.mask, rule.mask_origin);
        check(policy_.default_mask, policy_.origins["default_mask.cpumask"]);
    }

    void warn(const Policy& policy, PolicyErrors& warnings) const {
        for (const auto& [place, message] : warnings_about(policy.rules))
            warnings.push_back(error_at(place, message));
    }

    Policy policy_;
    std::list<Source> sources_;
    std::vector<Host> hosts_;
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
