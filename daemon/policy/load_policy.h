// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "machine/host_facts.h"
#include "policy/policy.h"

namespace wq {

// The policy files in force below ROOT ("" is the machine), main file first, then drop-ins by base name
// (UAPI.6): of {/etc,/run,/usr/lib}/wq-tuned/wq-tuned.toml the first one, of wq-tuned.toml.d/*.toml beside
// them all, where a name in /etc hides the same name in /run and /usr/lib. An empty file or a link to
// /dev/null masks. What cannot be examined or may be written by everyone is also returned: load_policy()
// reports it.
std::vector<std::string> policy_files(const std::string& root);

// The text of a policy file; a link to /dev/null is empty. An error if the file cannot be read, is not a
// regular file, is too large, or if everyone may write to it, or to its folder (without the sticky bit).
tl::expected<std::string, PolicyError> read_policy_file(const std::string& path);

// Called at most once, and only if a policy has a host table or a mask that names CPUs, because reading a
// topology is expensive.
using FactsSource = std::function<HostFacts()>;

// Reads FILES, the main file first, and merges them, then the matching host tables in the order of the files.
// A key of a later source replaces the earlier value, and rules of a later source are tried first. Returns
// all errors of all files, in the order of files and lines, also those of host tables that do not match;
// those of the combination of values, and of CPUs in a mask in force that this host does not have or isolates
// at boot, only if every single value is valid. No FACTS: nothing is known about the host. WARNINGS gets
// rules that are valid but useless, if there is no error.
tl::expected<Policy, PolicyErrors> load_policy(const std::vector<std::string>& files,
                                               const FactsSource& facts = {},
                                               PolicyErrors* warnings = nullptr);

// The policy that is in force if the policy files are invalid at start. It plans nothing and writes nothing.
Policy no_policy();

// Loads the policy for a host with FACTS: from CONFIG if given, else the installed files below ROOT. If
// there is no main file at all (a masked one counts), uses the content of the shipped file: `auto` for every
// workqueue. Rules that have expired are marked.
tl::expected<Policy, PolicyErrors> load_installed_policy(const std::string& root,
                                                         const std::optional<std::string>& config,
                                                         const FactsSource& facts);

}  // namespace wq
