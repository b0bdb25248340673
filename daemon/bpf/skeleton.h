// SPDX-License-Identifier: LGPL-2.1-or-later
// How our BPF objects are loaded, attached, run and read. For the files bpf_*.cpp only.
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "machine/bpf_errors.h"

namespace wq {

// Owns a skeleton that bpftool generated from an object. The destructor unloads the programs.
template <class S>
struct DestroySkeleton {
    void operator()(S* skeleton) const { S::destroy(skeleton); }
};
template <class S>
using OwnedSkeleton = std::unique_ptr<S, DestroySkeleton<S>>;

// The loaded object S. PREPARE sets what must be set before. The error starts with WHAT.
template <class S, class Prepare>
Result<OwnedSkeleton<S>> loaded(const std::string& what, Prepare prepare) {
    bpf_object_open_opts options{};
    options.sz = sizeof(options);
    while (true) {
        const BpfErrors errors;
        OwnedSkeleton<S> skeleton(S::open(&options));
        if (!skeleton) return errors.fail(what, errno);
        prepare(*skeleton);
        const int code = S::load(skeleton.get());
        if (code == 0) return skeleton;
        if (code != -EPERM || options.btf_custom_path != nullptr) return errors.fail(what, code);
        // A type that the kernel lacks libbpf also looks for in modules, which needs CAP_SYS_ADMIN: not if it
        // is told where to look.
        options.btf_custom_path = "/sys/kernel/btf/vmlinux";
    }
}

// Sets the BTF ids of CALL() (bpf_work.h) in OBJECT's programs, before they are loaded. False: the kernel
// lacks these functions.
inline bool name_calls(bpf_object* object) {
    const BpfErrors silent;
    const auto id_of = [](const char* name) {
        return std::max(libbpf_find_vmlinux_btf_id(name, BPF_TRACE_FENTRY), 0);
    };
    static const std::array ids{id_of("bpf_preempt_disable"), id_of("bpf_preempt_enable")};
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, object) {
        const bpf_insn* begin = bpf_program__insns(program);
        std::vector insns(begin, begin + bpf_program__insn_cnt(program));
        for (bpf_insn& insn : insns)
            if (insn.code == (BPF_JMP | BPF_CALL) && insn.src_reg == BPF_PSEUDO_KFUNC_CALL)
                insn.imm = ids.at(static_cast<std::size_t>(insn.imm));
        bpf_program__set_insns(program, insns.data(), insns.size());
    }
    return ids[0] > 0;
}

// Where __queue_work() is seen: where it is entered, and where it returns; and wq_worker_tick(). Some kernels
// refuse one or all.
struct Seen {
    bool entry = true;
    bool exit = true;  // only with the entry
    bool tick = false;
};

// ATTACHED(seen) with as much of WISHED as the kernel accepts; SEEN gets that. An error that passes ends the
// tries.
template <class Attached>
auto attach_seen(Seen wished, Attached attached, Seen& seen) {
    seen = wished;
    auto out = attached(seen);
    for (bool Seen::*less : {&Seen::exit, &Seen::entry, &Seen::tick}) {
        if (out || passes(out.error()) || !(seen.*less)) continue;
        seen.*less = false;
        out = attached(seen);
    }
    return out;
}

// Runs PROGRAM, of type syscall, once. Error: the negative errno that it returned. EPERM and ENOENT come
// from find_variable() of dump.bpf.c, and the error text explains them. The text starts with WHAT.
inline Status run_once(const bpf_program* program, const std::string& what) {
    bpf_test_run_opts options{};
    options.sz = sizeof(options);
    const BpfErrors errors;
    if (int code = bpf_prog_test_run_opts(bpf_program__fd(program), &options)) return errors.fail(what, code);
    const int code = std::abs(static_cast<int>(options.retval));
    if (code == EPERM)
        return fail(what + ": kallsyms is hidden (CAP_SYSLOG is needed, and kernel.kptr_restrict below 2)",
                    code);
    if (code == ENOENT)
        return fail(what + ": kallsyms lacks the kernel's variables (CONFIG_KALLSYMS_ALL)", code);
    if (code != 0) return fail_errno(what, code);
    return {};
}

// Sets WORDS, one bit for each CPU, to CPUS.
template <class Word, std::size_t N>
void set_cpus(Word (&words)[N], const CpuSet& cpus) {
    for (Word& word : words) word = 0;
    for (const unsigned cpu : cpus.cpus()) {
        if (cpu / 64 >= N) break;
        words[cpu / 64] |= std::uint64_t{1} << cpu % 64;
    }
}

// Calls USE for every entry of MAP. Only this process may delete entries. An entry that is added meanwhile
// may be missed until the next call.
template <class Key, class Value, class Use>
void for_each(const bpf_map* map, Use use) {
    Key key{};
    const Key* before = nullptr;
    const auto value = std::make_unique<Value>();
    while (bpf_map__get_next_key(map, before, &key, sizeof(key)) == 0) {
        before = &key;
        if (bpf_map__lookup_elem(map, &key, sizeof(key), value.get(), sizeof(Value), 0) == 0)
            use(key, *value);
    }
}

}  // namespace wq
