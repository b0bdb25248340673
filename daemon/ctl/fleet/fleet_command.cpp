// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/fleet_command.h"

#include <fmt/format.h>

#include <ctime>
#include <memory>

#include "ctl/fleet/fleet_input.h"
#include "ctl/fleet/fleet_policy.h"
#include "ctl/fleet/fleet_show.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"
#include "policy/quantity.h"

namespace wq::ctl {
namespace {

struct FleetOptions {
    std::string action;
    std::vector<std::string> files;
    bool json = false;
    Shard shard;
    double fdr = 0.05;
};

Result<Shard> parse_shard(std::string_view text) {
    const auto shard = shard_named(text);
    if (!shard) return fail(fmt::format("must be I/N, with I from 1 to N, and N at most {}", kMostShards));
    return *shard;
}

Result<double> parse_fdr(std::string_view text) {
    const auto rate = parse_percentage(text);
    if (!rate) return rate;
    if (*rate <= 0 || *rate > 0.5) return fail("must be above 0% and at most 50%");
    return rate;
}

void print_merged(const FleetRead& read) {
    for (const FleetEntry& entry : read.entries) {
        FleetLine line;
        line.key = entry.key;
        line.at = entry.at;
        line.pooled = entry.pooled;
        line.shards = entry.shards;
        fmt::print("{}\n", text_of(line));
    }
}

int run(const FleetOptions& options) {
    const FleetRead read = read_fleet(options.files, options.shard);
    if (read.entries.empty() && !read.whole) return kFailure;  // the errors say why
    if (options.action == "merge")
        print_merged(read);
    else if (options.action == "policy")
        fmt::print("{}", fleet_policy(read.entries, options.fdr, ::time(nullptr)));
    else if (options.json)
        fmt::print("{}", fleet_show_json(read.entries));
    else
        fmt::print("{}", fleet_show_text(read.entries, terminal_columns(), wants_colour()));
    return read.whole ? kOk : kFailure;
}

void reject(const CLI::Option* option, const std::string& action, const char* needed) {
    if (option->count() > 0 && action != needed)
        throw CLI::ValidationError(option->get_name(), fmt::format("only for fleet {}", needed));
}

}  // namespace

CommandRun set_up_fleet(CLI::App& command, const Invocation& /*invocation*/) {
    const auto options = std::make_shared<FleetOptions>();
    command.add_option("ACTION", options->action, "Add up ledgers; show what they say; write a policy")
        ->type_name(word::kFleetAction)
        ->required();
    command.add_option("FILE", options->files, "Of history --ledger or fleet merge; a directory; - is stdin")
        ->type_name(word::kFile)
        ->required()
        ->check(not_empty);
    const auto* json = command.add_flag("--json", options->json, "show: for machines");
    const auto* shard = add_setting(command, "--shard", "merge: the I-th of N parts of all hosts",
                                    parse_shard, options->shard)
                            ->type_name("I/N");
    const auto* fdr = add_setting(command, "--fdr", "policy: the share of wrong rules, at most; default 5%",
                                  parse_fdr, options->fdr)
                          ->type_name("P%");
    return [options, json, shard, fdr] {
        const std::string& action = options->action;
        if (action != "merge" && action != "show" && action != "policy")
            throw CLI::ValidationError("ACTION",
                                       fmt::format("'{}' is not one of merge, show, policy", action));
        reject(json, action, "show");
        reject(shard, action, "merge");
        reject(fdr, action, "policy");
        return run(*options);
    };
}

}  // namespace wq::ctl
