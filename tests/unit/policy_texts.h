// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "policy/load_policy.h"
#include "temp_tree.h"

namespace wq::test {

// Loads TEXTS, in this order, as the files "0.toml", "1.toml", ...; errors and WARNINGS have these names.
inline tl::expected<Policy, PolicyErrors> load_texts(const std::vector<std::string>& texts,
                                                     const FactsSource& facts = {},
                                                     PolicyErrors* warnings = nullptr) {
    TempTree tree;
    std::vector<std::string> files;
    for (const std::string& text : texts) {
        const std::string name = std::to_string(files.size()) + ".toml";
        tree.add(File(name, text));
        files.push_back(tree.path(name));
    }
    auto policy = load_policy(files, facts, warnings);
    const std::string folder = tree.root() + "/";
    const auto shorten = [&](PolicyErrors& errors) {
        for (PolicyError& error : errors) {
            error.file.erase(0, folder.size());
            for (auto at = error.message.find(folder); at != std::string::npos;
                 at = error.message.find(folder))
                error.message.erase(at, folder.size());
        }
    };
    if (!policy) shorten(policy.error());
    if (warnings != nullptr) shorten(*warnings);
    return policy;
}

// "0.toml:1:11: MESSAGE" of each error.
inline std::vector<std::string> mistakes_in_texts(const std::vector<std::string>& texts,
                                                  const FactsSource& facts = {}) {
    std::vector<std::string> out;
    if (const auto policy = load_texts(texts, facts); !policy)
        for (const PolicyError& error : policy.error()) out.push_back(error.text());
    return out;
}

inline std::string repeated(const std::string& piece, std::size_t times) {
    std::string out;
    for (std::size_t i = 0; i < times; ++i) out += piece;
    return out;
}

}  // namespace wq::test
