// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/render/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "plan/pods.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kMostUnfolded = 64;  // CPUs; with more, the reader must open the drawing

class Drawing {
  public:
    explicit Drawing(const DrawnMachine& machine)
        : topology_(machine.topology),
          llcs_(llcs_in(machine.kernel, machine.topology)),
          shard_size_(machine.shard_size),
          index_(machine.topology),
          isolated_(machine.topology.isolated | machine.isolation.isolcpus),
          nohz_full_(machine.isolation.nohz_full),
          core_of_(machine.topology.cores) {
        for (const Partition& partition : machine.isolation.partitions)
            if (partition.type == "isolated") isolated_ |= partition.cpus;
    }

    [[nodiscard]] std::string html() const {
        std::string out;
        CpuSet rest = topology_.online;
        for (std::size_t i = 0; i < topology_.packages.size(); i++) {
            out += package(fmt::format("Package {}", i), topology_.packages[i]);
            rest -= topology_.packages[i];
        }
        if (!rest.empty())
            out += package(topology_.packages.empty() ? "Machine" : "CPUs of no known package", rest);
        const CpuSet offline = topology_.present - topology_.online;
        std::string threads;
        for (const unsigned cpu : offline.cpus()) threads += core(fmt::format("<b class=\"o\">{}</b>", cpu));
        if (!threads.empty()) out += box("package", "Offline", offline, shard("loose", offline, threads));
        return legend() + "<div class=\"packages\">\n" + out + "</div>\n";
    }

  private:
    static std::string core(const std::string& threads, const std::string& attributes = "") {
        return fmt::format("<span class=\"core\"{}>{}</span>", attributes, threads);
    }
    static std::string shard(const char* kind, const CpuSet& cpus, const std::string& cores) {
        return fmt::format("<div class=\"shard {}\" title=\"CPUs {}\">{}</div>\n", kind, cpus.list(), cores);
    }
    static std::string box(const char* kind, const std::string& name, const CpuSet& cpus,
                           const std::string& html) {
        return fmt::format(
            "<div class=\"{}\"><p>{} <small>{}</small></p>\n<div class=\"{}s\">\n{}</div></div>\n", kind,
            name, cpus.list(), kind[0] == 'p' ? "llc" : "shard", html);
    }

    [[nodiscard]] std::string legend() const {
        std::string out = "<ul class=\"key\">\n<li>" + core("<b></b><b></b>") +
                          " a core, its threads side by side</li>\n<li>" + shard("", {}, core("<b></b>")) +
                          " a shard</li>\n";
        for (const auto& [mark, text, cpus] :
             {std::tuple{"i", "isolated", isolated_},
              std::tuple{"n", "without the tick (nohz_full)", nohz_full_},
              std::tuple{"o", "offline", topology_.present - topology_.online}})
            if (!cpus.empty())
                out += fmt::format("<li>{} {}: CPUs {}</li>\n",
                                   core(fmt::format("<b class=\"{}\"></b>", mark)), text, cpus.list());
        return out + "</ul>\n";
    }

    // An LLC of several packages is drawn in the package of its first CPU.
    [[nodiscard]] std::string package(const std::string& name, const CpuSet& cpus) const {
        std::string boxes;
        CpuSet loose = cpus;
        for (std::size_t i = 0; i < llcs_.size(); i++) {
            for (const CpuSet& part : index_.split(llcs_[i].cpus)) loose -= *core_of_.of(part.first());
            if (!llcs_[i].cpus.empty() && cpus.has(llcs_[i].cpus.first())) boxes += llc(i, llcs_[i]);
        }
        // Isolated CPUs have no LLC.
        if (!loose.empty()) boxes += box("llc", "In no LLC", loose, shard("loose", loose, cores_of(loose)));
        return box("package", name, cpus, boxes);
    }

    [[nodiscard]] std::string llc(std::size_t number, const Llc& llc) const {
        std::string shards;
        for (const CpuSet& cpus : shards_of(llc.cpus, index_, shard_size_))
            shards += shard("", cpus, cores_of(cpus));
        const std::string node = llc.numa_node && topology_.nodes.size() > 1
                                     ? fmt::format(", node {}", *llc.numa_node)
                                     : std::string();
        return box("llc", fmt::format("LLC {}{}", number, node), llc.cpus, shards);
    }

    // The cores with CPUs in CPUS, each with all of its threads: isolated threads, which are in no LLC, are
    // drawn beside their siblings.
    [[nodiscard]] std::string cores_of(const CpuSet& cpus) const {
        std::string out;
        for (const CpuSet& part : index_.split(cpus)) {
            const CpuSet& whole = *core_of_.of(part.first());
            std::string threads;
            for (const unsigned cpu : whole.cpus())
                threads += fmt::format("<b class=\"{}{}\">{}</b>", isolated_.has(cpu) ? "i" : "",
                                       nohz_full_.has(cpu) ? " n" : "", cpu);
            out += core(threads, fmt::format(" data-core=\"{}\"", whole.first()));
        }
        return out;
    }

    const Topology& topology_;
    std::vector<Llc> llcs_;
    unsigned shard_size_;
    CoreIndex index_;
    CpuSet isolated_;
    CpuSet nohz_full_;
    SetOf core_of_;
};

constexpr double kMostPercent = 1000;
constexpr double kLeft = 78, kWidth = 420, kTop = 10, kBottom = 190;  // of a figure

}  // namespace

std::string machine_html(const DrawnMachine& machine) {
    const std::size_t cpus = machine.topology.present.count();
    std::string drawing = Drawing(machine).html();
    if (cpus <= kMostUnfolded) return drawing;
    return fmt::format("<details><summary>Drawing of all {}</summary>\n{}</details>\n", plural(cpus, "CPU"),
                       drawing);
}

std::string effects_html(const std::string& caption, const std::vector<double>& percent,
                         const Effect& effect) {
    const auto [least, most] = std::ranges::minmax(percent);
    const double low = std::min(least, -1.0) * 1.1, high = std::clamp(most, 1.0, kMostPercent) * 1.1;
    const auto y = [&](double value) {
        return kBottom - (kBottom - kTop) * (std::clamp(value, low, high) - low) / (high - low);
    };
    std::string drawn, dots;
    if (effect.interval)
        drawn += fmt::format("<path class=\"band\" d=\"M{0} {1:.1f}H{2}V{3:.1f}H{0}Z\"/>\n", kLeft,
                             y(effect.interval->high), kWidth, y(effect.interval->low));
    for (const auto& [kind, value] : {std::pair{"zero", 0.0}, std::pair{"median", effect.percent}})
        drawn += fmt::format("<path class=\"{}\" d=\"M{} {:.1f}H{}\"/>\n", kind, kLeft, y(value), kWidth);
    for (const double value : {low / 1.1, 0.0, high / 1.1})
        drawn += fmt::format(
            "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 6, y(value) + 4,
            value == 0 ? "0%" : fmt::format("{:.3g}% {}", std::abs(value), value < 0 ? "better" : "worse"));
    for (std::size_t i = 0; i < percent.size(); i++)
        dots += fmt::format(
            "M{:.1f} {:.1f}h0",
            kLeft + (kWidth - kLeft) * (static_cast<double>(i) + 0.5) / static_cast<double>(percent.size()),
            y(percent[i]));
    return fmt::format(
        "<figure><figcaption>{0}</figcaption>\n<svg viewBox=\"0 0 {1} 200\" role=\"img\" "
        "aria-label=\"{0}\">\n{2}<path class=\"dots\" d=\"{3}\"/>\n</svg></figure>\n",
        escape(caption), kWidth, drawn, dots);
}

}  // namespace wq::ctl
