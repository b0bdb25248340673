// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <initializer_list>
#include <memory>
#include <utility>

#include "machine/bpf_errors.h"

namespace wq {

// Owns a skeleton that bpftool generated from an object. The destructor unloads the programs.
template <class S>
struct DestroySkeleton {
    void operator()(S* skeleton) const { S::destroy(skeleton); }
};
template <class S>
using OwnedSkeleton = std::unique_ptr<S, DestroySkeleton<S>>;

// Attaches those of PROGRAMS that were loaded, in this order. The error starts with WHAT.
inline Status attach_in_order(const char* what,
                              std::initializer_list<std::pair<const bpf_program*, bpf_link**>> programs) {
    const BpfErrors errors;
    for (const auto& [program, link] : programs) {
        if (!bpf_program__autoload(program)) continue;
        *link = bpf_program__attach(program);
        if (*link == nullptr) return errors.fail(what, errno);
    }
    return {};
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
