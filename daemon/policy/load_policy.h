// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "model/host_facts.h"
#include "model/policy.h"
#include "policy/policy_error.h"

namespace wq {

// The policy files in force below ROOT ("" is the machine), main file first, then drop-ins in their order:
// the main file is the first found of {/etc,/run,/usr/lib}/wq-tuned/wq-tuned.toml; drop-ins are
// {...}/wq-tuned/wq-tuned.toml.d/*.toml of all three, sorted by base name, where a name in /etc hides the
// same name in /run and /usr/lib; an empty file or a link to /dev/null masks (UAPI.6). Names with a leading
// dot are passed over. What is there but cannot be looked at, and a folder that everyone may write to, are
// returned too: load_policy() says why.
std::vector<std::string> policy_files(const std::string& root);

// Whether there is a main file at all, a masked one included.
bool has_main_file(const std::string& root);

// Asked once, and only where a policy has a host table: reading a topology has its price.
using FactsSource = std::function<HostFacts()>;

// Reads FILES, the first being the main file, and merges them, then the host tables that match, in the order
// of the files: a key set by a later source wins, and the rules of a later source are tried before those of
// an earlier one. All mistakes of all files are returned at once, in the order of the files and of their
// lines, those of host tables that do not match too; values that do not go together are told once each is
// right by itself. A host table's values must go together with those outside of host tables, whether or not
// it matches. No files, or empty ones: the built-in defaults. No FACTS: nothing is known about the host.
// Where there is no mistake, WARNINGS gets what is allowed and cannot be meant, see rule_warnings.h.
tl::expected<Policy, PolicyErrors> load_policy(const std::vector<std::string>& files,
                                               const FactsSource& facts = {},
                                               PolicyErrors* warnings = nullptr);

}  // namespace wq
