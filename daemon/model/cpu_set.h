// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/result.h"

namespace wq {

// A set of logical CPU numbers, 0..kMaxCpus-1. Value type; equal sets compare equal.
class CpuSet {
  public:
    // Four times the largest NR_CPUS of any architecture: what lies beyond is garbage, not a CPU.
    static constexpr unsigned kMaxCpus = 65536;

    CpuSet() = default;
    CpuSet(std::initializer_list<unsigned> cpus) {
        for (unsigned cpu : cpus) add(cpu);
    }

    // "0-7,88-95\n" as the kernel's *_list files have it. Empty text is the empty set. Also reads the
    // kernel's stride form, "0-31:2/4". Error: anything else, or a CPU of kMaxCpus or more.
    static Result<CpuSet> parse_list(std::string_view text);
    // "ff,00000001\n" as the kernel's mask files have it: hex words of 32 bits, highest first.
    static Result<CpuSet> parse_mask(std::string_view text);
    // CPUs first..last, both included.
    static CpuSet range(unsigned first, unsigned last);

    void add(unsigned cpu);
    void remove(unsigned cpu);
    [[nodiscard]] bool has(unsigned cpu) const;
    [[nodiscard]] bool empty() const { return words_.empty(); }
    [[nodiscard]] std::size_t count() const;
    // Lowest CPU. The set must not be empty.
    [[nodiscard]] unsigned first() const;
    [[nodiscard]] bool contains(const CpuSet& other) const;
    [[nodiscard]] bool intersects(const CpuSet& other) const;
    [[nodiscard]] std::vector<unsigned> cpus() const;  // ascending
    [[nodiscard]] std::string list() const;            // kernel style: "0-7,88-95"

    CpuSet& operator|=(const CpuSet& other);
    CpuSet& operator&=(const CpuSet& other);
    CpuSet& operator-=(const CpuSet& other);
    friend CpuSet operator|(CpuSet a, const CpuSet& b) { return a |= b; }
    friend CpuSet operator&(CpuSet a, const CpuSet& b) { return a &= b; }
    friend CpuSet operator-(CpuSet a, const CpuSet& b) { return a -= b; }
    friend bool operator==(const CpuSet&, const CpuSet&) = default;

  private:
    [[nodiscard]] std::size_t end() const { return base_ + words_.size(); }
    void cover(std::size_t first, std::size_t end);
    void trim();
    // 64 CPUs each, from number base_ * 64 on. No zero word at either end, so that == is equality of sets and
    // a pod of high numbers on a large machine is as small as one of low numbers.
    std::vector<std::uint64_t> words_;
    std::size_t base_ = 0;  // 0 where empty
};

}  // namespace wq
