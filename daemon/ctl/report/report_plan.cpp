// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/report/report_plan.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/text.h"
#include "ctl/render/groups.h"
#include "ctl/render/progress.h"
#include "ctl/report/report_page.h"
#include "ctl/topology_command.h"
#include "plan/pods.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

// The rank of a row, and all its cells but the first.
using Rows = Groups<std::pair<int, std::string>>;

std::string candidates_html(const PlanLine& line) {
    std::string out;
    for (const Candidate& c : line.candidates) {
        const std::string cores = c.min_cores == c.max_cores
                                      ? std::to_string(c.max_cores)
                                      : fmt::format("{}\u2013{}", c.min_cores, c.max_cores);
        out += fmt::format("{}{}: {}\u00d7{}", out.empty() ? "" : "<br>", name_of(c.scope), c.pools, cores);
    }
    return out;
}

std::string state_cells(const json* target) {
    if (target == nullptr) return cell("Baseline", "") + cell("State", "");
    const json comparison = target->value("comparison", json(nullptr));
    return cell("Baseline", escape(word_of(*target, "baseline"))) +
           cell("State",
                escape(word_of(*target, "state")) +
                    quiet(comparison.is_object() ? odds_text(comparison) : word_of(*target, "reason")));
}

std::string cells_of(const PlanLine& line) {
    const Workqueue& target = line.target;
    return cell("Now",
                escape(scope_text(target)) +
                    quiet(target.kind == Kind::unbound ? "" : std::string(name_of(target.kind))),
                "short") +
           cell("Planned", line.planned ? std::string(name_of(*line.planned)) : "") +
           cell("Action", std::string(name_of(line.action))) +
           cell("Reason", prose(line.reason) + quiet(line.rule ? line.rule->text() : "")) +
           cell("Candidates", candidates_html(line), "short");
}

// Groups to be written come first, skipped groups last.
std::vector<Rows::Group> groups_of(const std::vector<PlanLine>& plan,
                                   const std::map<std::string, const json*>& targets) {
    Rows rows;
    for (const PlanLine& line : plan) {
        std::string cells = cells_of(line);
        if (!targets.empty()) {
            const auto known = targets.find(line.target.name);
            cells += state_cells(known == targets.end() ? nullptr : known->second);
        }
        const int rank = line.action == Action::skip ? 2 : line.action == Action::none ? 1 : 0;
        rows.add(line.target.name, {rank, std::move(cells)});
    }
    std::ranges::stable_sort(rows.groups(), {}, [](const Rows::Group& group) { return group.cells.first; });
    return rows.groups();
}

}  // namespace

std::string scope_text(const Workqueue& target) {
    std::string out = target.scope.word;
    if (out == "default" && target.scope.effective)
        out += fmt::format(" ({})", name_of(*target.scope.effective));
    if (target.strict == true) out += ", strict";
    return out;
}

std::map<std::string, const json*> targets_of(const json& status) {
    std::map<std::string, const json*> out;
    if (!status.is_object() || !status.contains("targets")) return out;
    for (const json& target : status["targets"])
        if (target.is_object()) out[word_of(target, "name")] = &target;
    return out;
}

std::string word_of(const json& target, const char* key) {
    const auto found = target.find(key);
    return found != target.end() && found->is_string() ? found->get<std::string>() : "-";
}

std::string names_html(const std::vector<std::string>& names) {
    static constexpr std::size_t kMost = 6;   // up to this many, all are shown
    static constexpr std::size_t kFirst = 3;  // else this many are shown
    const auto list = [&](std::size_t from, std::size_t to) {
        std::string out;
        for (std::size_t i = from; i < to; i++) out += (i == from ? "" : " ") + code(names[i]);
        return out;
    };
    if (names.size() <= kMost) return list(0, names.size());
    return list(0, kFirst) +
           folded(fmt::format("and {} more", names.size() - kFirst), list(kFirst, names.size()));
}

std::string plan_html(const std::vector<PlanLine>& plan, const json& status) {
    const auto targets = targets_of(status);
    std::string out = "<section id=\"plan\">\n<h2>Plan</h2>\n";
    if (plan.empty()) return out + "<p>There is no workqueue with an affinity scope here.</p>\n</section>\n";
    out +=
        "<p>What each target has now, what is planned for it, and why. Targets that differ in their names "
        "alone "
        "share a row. Candidates are the scopes that make different pools: number of pools \u00d7 cores of "
        "each.</p>\n";
    std::vector<Heading> headings = {{"Target"}, {"Now"},    {"Planned"},
                                     {"Action"}, {"Reason"}, {"Candidates"}};
    if (!targets.empty()) headings.insert(headings.end(), {{"Baseline"}, {"State"}});
    std::string rows;
    for (const Rows::Group& group : groups_of(plan, targets))
        rows += fmt::format(
            "<tr>{}{}</tr>\n",
            cell(group.names.size() == 1 ? "Target" : "Targets",
                 (group.names.size() == 1 ? "" : fmt::format("<strong>{}</strong> ", group.names.size())) +
                     names_html(group.names),
                 "names"),
            group.cells.second);
    return out + table(headings, rows) + "</section>\n";
}

namespace {

constexpr std::size_t kMostNumbered = 512;  // CPUs; with more, they are drawn small and without numbers
constexpr std::size_t kMostPods = 64;       // listed per scope

// One box of the drawing: a package, or several that share an LLC or a core.
struct Box {
    CpuSet packages;     // package numbers
    bool other = false;  // contains CPUs without a known package
    CpuSet cpus;
};

// Merges all boxes that have a CPU of SET.
void join(std::vector<Box>& boxes, const CpuSet& set) {
    Box* first = nullptr;
    for (Box& box : boxes) {
        if (!box.cpus.intersects(set)) continue;
        if (first == nullptr) {
            first = &box;
            if (box.cpus.contains(set)) return;
            continue;
        }
        first->packages |= box.packages;
        first->other = first->other || box.other;
        first->cpus |= box.cpus;
        box.cpus = CpuSet();
    }
    std::erase_if(boxes, [](const Box& box) { return box.cpus.empty(); });
}

class Drawing {
  public:
    explicit Drawing(const DrawnMachine& machine)
        : topology_(machine.topology),
          kernel_(machine.kernel),
          llcs_(llcs_in(machine.kernel, machine.topology)),
          shard_size_(machine.shard_size),
          index_(machine.topology),
          isolcpus_(machine.topology.isolated | machine.isolation.isolcpus),
          nohz_full_(machine.isolation.nohz_full),
          kinds_(machine.kinds),
          small_(machine.topology.present.count() > kMostNumbered) {
        for (const Partition& partition : machine.isolation.partitions)
            if (partition.type == "isolated") partitions_ |= partition.cpus;
        partitions_ -= isolcpus_;
        core_of_.resize(CpuSet::kMaxCpus, nullptr);
        for (const CpuSet& core : topology_.cores)
            for (const unsigned cpu : core.cpus()) core_of_[cpu] = &core;
        for (const Llc& llc : llcs_)
            for (const unsigned cpu : llc.cpus.cpus())
                if (core_of_[cpu] != nullptr) llc_of_.try_emplace(core_of_[cpu], &llc);
    }

    [[nodiscard]] std::string html() const {
        std::string drawing = legend() + fmt::format("<div class=\"packages{}\">\n", small_ ? " many" : "");
        for (const Box& each : boxes()) drawing += box(each);
        drawing += offline() + "</div>\n";
        if (topology_.present.count() > kMostUnfolded)
            drawing =
                folded(fmt::format("Drawing of all {}", plural(topology_.present.count(), "CPU")), drawing);
        return head() + notes() + drawing + "</section>\n";
    }

  private:
    [[nodiscard]] std::string head() const {
        const std::string nodes =
            topology_.nodes.empty() ? "" : ", " + plural(topology_.nodes.size(), "NUMA node");
        const std::string packages =
            topology_.packages.empty() ? "" : ", " + plural(topology_.packages.size(), "package");
        std::string out =
            fmt::format("<section id=\"machine\">\n<h2>Machine</h2>\n<p>{}, {}{}, {}{}{}.{}</p>\n",
                        plural(topology_.online.count(), "CPU"), plural(topology_.cores.size(), "core"),
                        kinds_in(topology_.online), plural(llcs_.size(), "LLC"), packages, nodes, sizes());
        return out +
               fmt::format("<p>Cores on one last-level cache (LLC) are cut into shards of about {}{}.</p>\n",
                           plural(shard_size_, "core"),
                           kernel_.has(Scope::cache_shard)
                               ? ", by the kernel&#39;s rule"
                               : ", as the kernel&#39;s rule would do it: this kernel has no cache_shard");
    }

    // Returns " Each LLC has 8 cores in 1 shard.", or the numbers of LLCs per size; "" if there are too many
    // sizes.
    [[nodiscard]] std::string sizes() const {
        static constexpr std::size_t kMostSizes = 4;
        std::map<std::pair<std::size_t, std::size_t>, std::size_t, std::greater<>>
            llcs;  // (cores, shards) -> LLCs
        for (const Llc& llc : llcs_)
            llcs[{index_.cores_in(llc.cpus), shards_of(llc.cpus, index_, shard_size_).size()}]++;
        std::string out;
        if (llcs.empty() || llcs.size() > kMostSizes) return out;
        for (const auto& [size, n] : llcs)
            out += fmt::format("{}{} {} in {}", out.empty() ? " " : ", ",
                               llcs.size() > 1 ? plural(n, "LLC") + (n == 1 ? " has" : " have")
                               : n == 1        ? "The LLC has"
                                               : "Each LLC has",
                               plural(size.first, "core"), plural(size.second, "shard"));
        return out + ".";
    }

    // Returns " (6 P-cores, 8 E-cores)" for a hybrid, else "".
    [[nodiscard]] std::string kinds_in(const CpuSet& cpus) const {
        if (!kinds_.hybrid()) return "";
        std::string out;
        for (const auto& [name, of_kind] :
             {std::pair<const char*, const CpuSet&>{"P-core", kinds_.performance},
              {"E-core", kinds_.efficient},
              {"LP E-core", kinds_.low_power}})
            if (const std::size_t n = index_.cores_in(of_kind & cpus); n > 0)
                out += (out.empty() ? "" : ", ") + plural(n, name);
        return out.empty() ? "" : " (" + out + ")";
    }

    [[nodiscard]] std::string legend() const {
        const auto sample = [](const char* kind, const char* mark, const std::string& text) {
            return fmt::format("<li><span class=\"core{}\"><b{}></b></span> {}</li>\n", kind, mark, text);
        };
        const std::string thread = small_ ? "a thread" : "a thread, with its CPU number";
        std::string out = fmt::format("<ul class=\"key{}\">\n", small_ ? " many" : "");
        const auto add = [&](const char* kind, const char* mark, const char* text, const CpuSet& cpus) {
            if (!cpus.empty()) out += sample(kind, mark, fmt::format("{}: CPUs {}", text, cpus.list()));
        };
        if (kinds_.hybrid()) {
            add("", "", "P-core", kinds_.performance);
            add(" e", "", "E-core", kinds_.efficient);
            add(" e lp", "", "LP E-core", kinds_.low_power);
        } else {
            out += sample("", "", thread);
        }
        if (topology_.online.count() > topology_.cores.size())
            out += "<li><span class=\"core\"><b></b><b></b></span> a core, its threads side by side</li>\n";
        out += "<li><span class=\"shard sample\"></span> a shard</li>\n";
        add("", " class=\"i\"", "isolated at boot (isolcpus)", isolcpus_);
        add("", " class=\"p\"", "isolated by a cpuset partition", partitions_);
        add("", " class=\"n\"", "without the tick (nohz_full)", nohz_full_);
        add("", " class=\"o\"", "offline", topology_.present - topology_.online);
        return out + "</ul>\n";
    }

    [[nodiscard]] std::string notes() const {
        std::vector<std::string> notes = topology_.warnings;
        if (kinds_.hybrid()) notes.push_back("P-cores and E-cores are told apart " + kinds_.source + ".");
        for (OwnPods& own : kernels_own(topology_, kernel_)) {
            const bool all = own.cpus.size() <= kMostPods;
            if (!all) own.cpus.resize(kMostPods);
            notes.push_back(fmt::format("{} CPUs {}{}", own.text, fmt::join(own.cpus, "; "),
                                        all ? "" : "; and further ones"));
        }
        for (const std::string& why : {why_in_doubt(topology_, kernel_), why_not_its_own(kernel_)})
            if (!why.empty()) notes.push_back(why);
        std::string out;
        for (const std::string& note : notes) out += fmt::format("<p class=\"quiet\">{}</p>\n", escape(note));
        return out;
    }

    [[nodiscard]] std::vector<Box> boxes() const {
        std::vector<Box> out;
        CpuSet rest = topology_.online;
        for (unsigned i = 0; i < topology_.packages.size(); i++) {
            out.push_back({{i}, false, topology_.packages[i]});
            rest -= topology_.packages[i];
        }
        if (!rest.empty()) out.push_back({{}, true, rest});
        for (const Llc& llc : llcs_) join(out, llc.cpus);
        for (const CpuSet& core : topology_.cores) join(out, core);
        return out;
    }

    [[nodiscard]] std::string name_of_box(const Box& box) const {
        if (topology_.packages.empty()) return "Machine";
        if (box.packages.empty()) return "CPUs of no known package";
        return fmt::format("Package{} {}{}", box.packages.count() == 1 ? "" : "s", box.packages.list(),
                           box.other ? " and CPUs of no known one" : "");
    }

    // The packages of CPUS, if BOX has several packages.
    [[nodiscard]] std::string packages_in(const CpuSet& cpus, const Box& box) const {
        CpuSet packages;
        if (box.packages.count() > 1)
            for (const unsigned i : box.packages.cpus())
                if (topology_.packages[i].intersects(cpus)) packages.add(i);
        if (packages.empty()) return "";
        return fmt::format("package{} {} · ", packages.count() == 1 ? "" : "s", packages.list());
    }

    [[nodiscard]] std::string box(const Box& box) const {
        const CpuSet& cpus = box.cpus;
        std::string boxes;
        CpuSet loose = cpus;
        CpuSet nodes;
        for (std::size_t i = 0; i < llcs_.size(); i++) {
            const Llc& one = llcs_[i];
            if (one.cpus.empty() || !cpus.has(one.cpus.first())) continue;
            boxes += llc(i, one, box);
            if (one.numa_node) nodes.add(*one.numa_node);
            for (const CpuSet& core : index_.split(one.cpus)) loose -= *core_of_[core.first()];
        }
        if (!loose.empty()) boxes += in_no_llc(loose);
        return fmt::format(
            "<section class=\"package\">\n<p><strong>{}</strong> <small>{}{} · CPUs {}</small></p>\n"
            "<div class=\"llcs\">\n{}</div>\n</section>\n",
            name_of_box(box),
            nodes.empty() ? ""
                          : fmt::format("NUMA node{} {} · ", nodes.count() == 1 ? "" : "s", nodes.list()),
            plural(index_.cores_in(cpus), "core") + kinds_in(cpus), cpus.list(), boxes);
    }

    [[nodiscard]] std::string llc(std::size_t number, const Llc& llc, const Box& box) const {
        std::string shards;
        for (const CpuSet& shard : shards_of(llc.cpus, index_, shard_size_))
            shards += fmt::format("<div class=\"shard\" title=\"shard: CPUs {}\">{}</div>\n", shard.list(),
                                  cores_of(shard, &llc));
        return fmt::format(
            "<div class=\"llc\"><p>LLC {} <small>{}{}{}{}</small></p>\n<div "
            "class=\"shards\">\n{}</div></div>\n",
            number, packages_in(llc.cpus, box),
            llc.numa_node && topology_.nodes.size() > 1 ? fmt::format("node {} · ", *llc.numa_node) : "",
            small_ ? "" : plural(index_.cores_in(llc.cpus), "core") + " · ", llc.cpus.list(), shards);
    }

    // Isolated CPUs have no LLC.
    [[nodiscard]] std::string in_no_llc(const CpuSet& cpus) const {
        return fmt::format(
            "<div class=\"llc\"><p>In no LLC <small>{} · {}</small></p>\n<div class=\"shards\">"
            "<div class=\"shard loose\">{}</div></div></div>\n",
            plural(index_.cores_in(cpus), "core"), cpus.list(), cores_of(cpus, nullptr));
    }

    [[nodiscard]] std::string offline() const {
        const CpuSet cpus = topology_.present - topology_.online;
        if (cpus.empty()) return "";
        std::string threads;
        for (const unsigned cpu : cpus.cpus())
            threads += fmt::format("<span class=\"core\">{}</span>", thread(cpu, "o"));
        return fmt::format(
            "<section class=\"package\">\n<p><strong>Offline</strong> <small>CPUs {}</small></p>\n"
            "<div class=\"shard loose\">{}</div>\n</section>\n",
            cpus.list(), threads);
    }

    // The cores with CPUs in CPUS, each with all of its threads: isolated threads, which are in no LLC, are
    // drawn beside their siblings. A core of several LLCs is in the first. LLC: nullptr for cores in no LLC.
    [[nodiscard]] std::string cores_of(const CpuSet& cpus, const Llc* llc) const {
        std::string out;
        for (const CpuSet& part : index_.split(cpus)) {
            const CpuSet& core = *core_of_[part.first()];
            const auto home = llc_of_.find(&core);
            if (llc != nullptr && home->second != llc) continue;
            out += fmt::format("<span class=\"core{}\" data-core=\"{}\">", kind_of(core), core.first());
            for (const unsigned cpu : core.cpus()) out += thread(cpu, marks_of(cpu));
            out += "</span>";
        }
        return out;
    }

    [[nodiscard]] const char* kind_of(const CpuSet& core) const {
        return kinds_.low_power.intersects(core) ? " e lp" : kinds_.efficient.intersects(core) ? " e" : "";
    }

    [[nodiscard]] std::string marks_of(unsigned cpu) const {
        std::string out = isolcpus_.has(cpu) ? "i" : partitions_.has(cpu) ? "p" : "";
        if (nohz_full_.has(cpu)) out += out.empty() ? "n" : " n";
        return out;
    }

    [[nodiscard]] std::string thread(unsigned cpu, const std::string& marks) const {
        return fmt::format("<b{}>{}</b>", marks.empty() ? "" : fmt::format(" class=\"{}\"", marks),
                           small_ ? "" : std::to_string(cpu));
    }

    const Topology& topology_;
    const KernelInfo& kernel_;
    std::vector<Llc> llcs_;
    unsigned shard_size_;
    CoreIndex index_;
    CpuSet isolcpus_;
    CpuSet nohz_full_;
    CoreKinds kinds_;
    CpuSet partitions_;
    bool small_;
    std::vector<const CpuSet*> core_of_;          // CPU -> core
    std::map<const CpuSet*, const Llc*> llc_of_;  // core -> LLC
};

}  // namespace

std::string machine_html(const DrawnMachine& machine) {
    return Drawing(machine).html();
}

}  // namespace wq::ctl
