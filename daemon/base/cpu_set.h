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
    // Four times the largest NR_CPUS of any architecture. A higher number is garbage, not a CPU.
    static constexpr unsigned kMaxCpus = 65536;

    CpuSet() = default;
    CpuSet(std::initializer_list<unsigned> cpus) {
        for (unsigned cpu : cpus) add(cpu);
    }

    // Parses a list as in the kernel's *_list files: "0-7,88-95\n". Empty text is the empty set. Error:
    // any other text, or a CPU of kMaxCpus or more.
    static Result<CpuSet> parse_list(std::string_view text);
    // Parses a mask as in the kernel's mask files: "ff,00000001\n", hex words of 32 bits, highest first.
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
    [[nodiscard]] std::string mask() const;            // kernel style: "ff,00000001"; "0" if empty

    CpuSet& operator|=(const CpuSet& other);
    CpuSet& operator&=(const CpuSet& other);
    CpuSet& operator-=(const CpuSet& other);
    friend CpuSet operator|(CpuSet a, const CpuSet& b) { return a |= b; }
    friend CpuSet operator&(CpuSet a, const CpuSet& b) { return a &= b; }
    friend CpuSet operator-(CpuSet a, const CpuSet& b) { return a -= b; }
    friend bool operator==(const CpuSet&, const CpuSet&) = default;

  private:
    // 64 CPUs, starting at CPU number * 64.
    struct Word {
        unsigned number = 0;
        std::uint64_t bits = 0;
        friend bool operator==(const Word&, const Word&) = default;
    };
    [[nodiscard]] std::size_t place_of(unsigned number) const;
    Word& word(unsigned number);  // inserts an empty word if it does not exist
    [[nodiscard]] std::uint64_t bits_of(unsigned number) const;
    void drop_empty();
    // Ascending, without empty words. So == compares the sets, and a core of two CPUs takes at most two
    // words, whatever its CPU numbers are and however many CPUs there are.
    std::vector<Word> words_;
};

}  // namespace wq
