// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

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
    // 64 CPUs, from number * 64 on.
    struct Word {
        unsigned number = 0;
        std::uint64_t bits = 0;
        friend bool operator==(const Word&, const Word&) = default;
    };
    [[nodiscard]] std::size_t place_of(unsigned number) const;
    Word& word(unsigned number);  // made, without bits, where there is none
    [[nodiscard]] std::uint64_t bits_of(unsigned number) const;
    void drop_empty();
    // Ascending, none without bits: so == is equality of sets, and a core of two CPUs takes two words,
    // however far apart they are numbered and however many CPUs there are.
    std::vector<Word> words_;
};

}  // namespace wq
