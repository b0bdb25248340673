// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/report_machine.h"

#include <fmt/format.h>

#include <vector>

#include "ctl/report_page.h"
#include "plan/pods.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kMostNumbered = 512;  // CPUs; more are drawn small, without their numbers

std::string counted(std::size_t n, std::string_view noun) {
    return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

class Drawing {
  public:
    Drawing(const Topology& topology, unsigned shard_size, const Isolation& isolation)
        : topology_(topology),
          shard_size_(shard_size),
          index_(topology),
          isolcpus_(topology.isolated | isolation.isolcpus),
          nohz_full_(isolation.nohz_full),
          small_(topology.present.count() > kMostNumbered) {
        for (const Partition& partition : isolation.partitions)
            if (partition.type == "isolated") partitions_ |= partition.cpus;
        partitions_ -= isolcpus_;
        core_of_.resize(CpuSet::kMaxCpus, nullptr);
        for (const CpuSet& core : topology.cores)
            for (const unsigned cpu : core.cpus()) core_of_[cpu] = &core;
    }

    [[nodiscard]] std::string html() const {
        std::string out = head();
        out += fmt::format("<div class=\"packages{}\">\n", small_ ? " many" : "");
        CpuSet rest = topology_.online;
        for (std::size_t i = 0; i < topology_.packages.size(); i++) {
            out += package(fmt::format("Package {}", i), topology_.packages[i]);
            rest -= topology_.packages[i];
        }
        if (!rest.empty())
            out += package(topology_.packages.empty() ? "Machine" : "CPUs of no known package", rest);
        return out + offline() + "</div>\n</section>\n";
    }

  private:
    [[nodiscard]] std::string head() const {
        const std::string nodes =
            topology_.nodes.empty() ? "" : ", " + counted(topology_.nodes.size(), "NUMA node");
        const std::string packages =
            topology_.packages.empty() ? "" : ", " + counted(topology_.packages.size(), "package");
        return fmt::format(
                   "<section id=\"machine\">\n<h2>Machine</h2>\n"
                   "<p>{}, {}, {}{}{}. The inner boxes are shards of about {} by the kernel&#39;s rule; a "
                   "core is one "
                   "block, its threads side by side.</p>\n",
                   counted(topology_.online.count(), "CPU"), counted(topology_.cores.size(), "core"),
                   counted(topology_.llcs.size(), "LLC"), packages, nodes, counted(shard_size_, "core")) +
               legend() + warnings();
    }

    [[nodiscard]] std::string legend() const {
        const auto sample = [](const char* mark, const std::string& text) {
            return fmt::format("<li><span class=\"core\"><b{}></b></span> {}</li>\n", mark, text);
        };
        std::string out = fmt::format("<ul class=\"key{}\">\n", small_ ? " many" : "") +
                          sample("", small_ ? "a thread" : "a thread, with its CPU number");
        const auto add = [&](const char* mark, const char* text, const CpuSet& cpus) {
            if (!cpus.empty()) out += sample(mark, fmt::format("{}: CPUs {}", text, cpus.list()));
        };
        add(" class=\"i\"", "isolated at boot (isolcpus)", isolcpus_);
        add(" class=\"p\"", "isolated by a cpuset partition", partitions_);
        add(" class=\"n\"", "without the tick (nohz_full)", nohz_full_);
        add(" class=\"o\"", "offline", topology_.present - topology_.online);
        return out + "</ul>\n";
    }

    [[nodiscard]] std::string warnings() const {
        std::string out;
        for (const std::string& warning : topology_.warnings)
            out += fmt::format("<p class=\"quiet\">{}</p>\n", escape(warning));
        return out;
    }

    [[nodiscard]] std::string package(const std::string& name, const CpuSet& cpus) const {
        std::string boxes;
        CpuSet loose = cpus;
        CpuSet nodes;
        for (std::size_t i = 0; i < topology_.llcs.size(); i++) {
            const Llc& one = topology_.llcs[i];
            if (!cpus.has(one.cpus.first())) continue;
            boxes += llc(i, one);
            if (one.numa_node) nodes.add(*one.numa_node);
            for (const CpuSet& core : index_.split(one.cpus)) loose -= *core_of_[core.first()];
        }
        if (!loose.empty()) boxes += in_no_llc(loose);
        return fmt::format(
            "<section class=\"package\">\n<p><strong>{}</strong> <small>{}{} · CPUs {}</small></p>\n"
            "<div class=\"llcs\">\n{}</div>\n</section>\n",
            name,
            nodes.empty() ? ""
                          : fmt::format("NUMA node{} {} · ", nodes.count() == 1 ? "" : "s", nodes.list()),
            counted(index_.cores_in(cpus), "core"), cpus.list(), boxes);
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
            small_ ? "" : counted(index_.cores_in(llc.cpus), "core") + " · ", llc.cpus.list(), shards);
    }

    // Isolated CPUs have no LLC.
    [[nodiscard]] std::string in_no_llc(const CpuSet& cpus) const {
        return fmt::format(
            "<div class=\"llc\"><p>In no LLC <small>{} · {}</small></p>\n<div class=\"shards\">"
            "<div class=\"shard loose\">{}</div></div></div>\n",
            counted(index_.cores_in(cpus), "core"), cpus.list(), cores_of(cpus));
    }

    [[nodiscard]] std::string offline() const {
        const CpuSet cpus = topology_.present - topology_.online;
        if (cpus.empty()) return "";
        std::string threads;
        for (const unsigned cpu : cpus.cpus()) threads += thread(cpu, "o");
        return fmt::format(
            "<section class=\"package\">\n<p><strong>Offline</strong> <small>CPUs {}</small></p>\n"
            "<div class=\"shard loose\"><span class=\"core\">{}</span></div>\n</section>\n",
            cpus.list(), threads);
    }

    // The cores that have CPUs here, each with all of its threads: isolated ones are in no LLC, and are drawn
    // beside their siblings.
    [[nodiscard]] std::string cores_of(const CpuSet& cpus) const {
        std::string out;
        for (const CpuSet& part : index_.split(cpus)) {
            const CpuSet& core = *core_of_[part.first()];
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
    unsigned shard_size_;
    CoreIndex index_;
    CpuSet isolcpus_;
    CpuSet nohz_full_;
    CpuSet partitions_;
    bool small_;
    std::vector<const CpuSet*> core_of_;  // by CPU
};

}  // namespace

std::string machine_html(const Topology& topology, unsigned shard_size, const Isolation& isolation) {
    return Drawing(topology, shard_size, isolation).html();
}

}  // namespace wq::ctl
