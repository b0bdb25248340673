// SPDX-License-Identifier: LGPL-2.1-or-later
// The drawing of a machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "ctl/machine.h"
#include "ctl/report/report.h"
#include "plan/pods.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kMostNumbered = 512;  // CPUs; with more, they are drawn small and without numbers
constexpr std::size_t kMostUnfolded = 64;   // CPUs; with more, the reader must open the drawing
constexpr std::size_t kMostPods = 64;       // listed per scope

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
          small_(machine.topology.present.count() > kMostNumbered) {
        for (const Partition& partition : machine.isolation.partitions)
            if (partition.type == "isolated") partitions_ |= partition.cpus;
        partitions_ -= isolcpus_;
        for (const CpuSet& core : topology_.cores)
            for (const unsigned cpu : core.cpus()) core_of_[cpu] = &core;
    }

    [[nodiscard]] std::string html() const {
        std::string drawing = legend() + fmt::format("<div class=\"packages{}\">\n", small_ ? " many" : "");
        CpuSet rest = topology_.online;
        for (std::size_t i = 0; i < topology_.packages.size(); i++) {
            drawing += box(fmt::format("Package {}", i), topology_.packages[i]);
            rest -= topology_.packages[i];
        }
        if (!rest.empty())
            drawing += box(topology_.packages.empty() ? "Machine" : "CPUs of no known package", rest);
        drawing += offline() + "</div>\n";
        if (topology_.present.count() > kMostUnfolded)
            drawing =
                folded(fmt::format("Drawing of all {}", plural(topology_.present.count(), "CPU")), drawing);
        return section("machine", "Machine", head() + notes() + drawing);
    }

  private:
    [[nodiscard]] std::string head() const {
        const std::string nodes =
            topology_.nodes.empty() ? "" : ", " + plural(topology_.nodes.size(), "NUMA node");
        const std::string packages =
            topology_.packages.empty() ? "" : ", " + plural(topology_.packages.size(), "package");
        std::string out =
            fmt::format("<p>{}, {}, {}{}{}.</p>\n", plural(topology_.online.count(), "CPU"),
                        plural(topology_.cores.size(), "core"), plural(llcs_.size(), "LLC"), packages, nodes);
        return out +
               fmt::format("<p>Cores on one last-level cache (LLC) are cut into shards of about {}{}.</p>\n",
                           plural(shard_size_, "core"),
                           kernel_.has(Scope::cache_shard)
                               ? ", by the kernel&#39;s rule"
                               : ", as the kernel&#39;s rule would do it: this kernel has no cache_shard");
    }

    [[nodiscard]] std::string legend() const {
        std::string out = fmt::format("<ul class=\"key{}\">\n", small_ ? " many" : "");
        const auto add = [&](const char* mark, const std::string& text) {
            out += fmt::format("<li><span class=\"core\"><b{}></b></span> {}</li>\n", mark, text);
        };
        const auto add_set = [&](const char* mark, const char* text, const CpuSet& cpus) {
            if (!cpus.empty()) add(mark, fmt::format("{}: CPUs {}", text, cpus.list()));
        };
        add("", small_ ? "a thread" : "a thread, with its CPU number");
        if (topology_.online.count() > topology_.cores.size())
            out += "<li><span class=\"core\"><b></b><b></b></span> a core, its threads side by side</li>\n";
        out += "<li><span class=\"shard sample\"></span> a shard</li>\n";
        add_set(" class=\"i\"", "isolated at boot (isolcpus)", isolcpus_);
        add_set(" class=\"p\"", "isolated by a cpuset partition", partitions_);
        add_set(" class=\"n\"", "without the tick (nohz_full)", nohz_full_);
        add_set(" class=\"o\"", "offline", topology_.present - topology_.online);
        return out + "</ul>\n";
    }

    [[nodiscard]] std::string notes() const {
        std::vector<std::string> notes = topology_.warnings;
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

    // An LLC of several packages is drawn in the package of its first CPU.
    [[nodiscard]] std::string box(const std::string& name, const CpuSet& cpus) const {
        std::string boxes;
        CpuSet loose = cpus;
        CpuSet nodes;
        for (std::size_t i = 0; i < llcs_.size(); i++) {
            const Llc& one = llcs_[i];
            for (const CpuSet& core : index_.split(one.cpus)) loose -= *core_of_.at(core.first());
            if (one.cpus.empty() || !cpus.has(one.cpus.first())) continue;
            boxes += llc(i, one);
            if (one.numa_node) nodes.add(*one.numa_node);
        }
        if (!loose.empty()) boxes += in_no_llc(loose);
        return fmt::format(
            "<section class=\"package\">\n<p><strong>{}</strong> <small>{}{} · CPUs {}</small></p>\n"
            "<div class=\"llcs\">\n{}</div>\n</section>\n",
            name,
            nodes.empty() ? ""
                          : fmt::format("NUMA node{} {} · ", nodes.count() == 1 ? "" : "s", nodes.list()),
            plural(index_.cores_in(cpus), "core"), cpus.list(), boxes);
    }

    [[nodiscard]] std::string llc(std::size_t number, const Llc& llc) const {
        std::string shards;
        for (const CpuSet& shard : shards_of(llc.cpus, index_, shard_size_))
            shards += fmt::format("<div class=\"shard\" title=\"shard: CPUs {}\">{}</div>\n", shard.list(),
                                  cores_of(shard));
        return fmt::format(
            "<div class=\"llc\"><p>LLC {} <small>{}{}{}</small></p>\n<div "
            "class=\"shards\">\n{}</div></div>\n",
            number,
            llc.numa_node && topology_.nodes.size() > 1 ? fmt::format("node {} · ", *llc.numa_node) : "",
            small_ ? "" : plural(index_.cores_in(llc.cpus), "core") + " · ", llc.cpus.list(), shards);
    }

    // Isolated CPUs have no LLC.
    [[nodiscard]] std::string in_no_llc(const CpuSet& cpus) const {
        return fmt::format(
            "<div class=\"llc\"><p>In no LLC <small>{} · {}</small></p>\n<div class=\"shards\">"
            "<div class=\"shard loose\">{}</div></div></div>\n",
            plural(index_.cores_in(cpus), "core"), cpus.list(), cores_of(cpus));
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
    // drawn beside their siblings.
    [[nodiscard]] std::string cores_of(const CpuSet& cpus) const {
        std::string out;
        for (const CpuSet& part : index_.split(cpus)) {
            const CpuSet& core = *core_of_.at(part.first());
            out += fmt::format("<span class=\"core\" data-core=\"{}\">", core.first());
            for (const unsigned cpu : core.cpus()) out += thread(cpu, marks_of(cpu));
            out += "</span>";
        }
        return out;
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
    CpuSet partitions_;
    bool small_;
    std::map<unsigned, const CpuSet*> core_of_;  // CPU -> core
};

}  // namespace

std::string machine_html(const DrawnMachine& machine) {
    return Drawing(machine).html();
}

}  // namespace wq::ctl
