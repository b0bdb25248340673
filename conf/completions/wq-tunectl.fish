# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of wq-tunectl(1) for fish. tests/unit/completions_test.sh compares it with --help.

# The words of the command line that are neither options nor their values: COMMAND ARGUMENT...
function __wq_tunectl_words
    set -l tokens (commandline -opc)
    set -l value no
    for token in $tokens[2..-1]
        if test $value = yes
            set value no
        else if contains -- $token --root -o --output --topology --shard-size --kernel-scopes --config --arm --alpha --tolerance --max-pairs \
                --target --arms --metric --pairs --warmup --export -d --interval -n --iterations --sort
            set value yes
        else if not string match -q -- '-*' $token
            echo $token
        end
    end
end

# Whether the command is one of COMMAND..., with N arguments before the one that is completed.
function __wq_tunectl_at
    set -l words (__wq_tunectl_words)
    test (count $words) -eq (math $argv[1] + 1); and contains -- $words[1] $argv[2..-1]
end

function __wq_tunectl_is
    set -l words (__wq_tunectl_words)
    test (count $words) -gt 0; and contains -- $words[1] $argv
end

function __wq_tunectl_targets
    set -l root (commandline -opc | string join ' ' | string match -rg -- '--root[= ](\S+)')
    echo @default
    for file in "$root"/sys/devices/virtual/workqueue/*/affinity_scope
        string split -f 2 -r -m 1 / (string replace -r '/affinity_scope$' '' $file)
    end
end

function __wq_tunectl_workqueues
    set -l root (commandline -opc | string join ' ' | string match -rg -- '--root[= ](\S+)')
    for file in "$root"/sys/devices/virtual/workqueue/*/max_active
        string split -f 2 -r -m 1 / (string replace -r '/max_active$' '' $file)
    end
end

set -l scopes cpu smt cache_shard cache numa system
set -l c complete -c wq-tunectl

$c -f
$c -s h -l help -d 'Show help'
$c -n 'not __wq_tunectl_words | string length -q' -l version -d 'Show the version'
$c -n 'not __wq_tunectl_words | string length -q' -l root -r -a '(__fish_complete_directories)' -d 'A directory that stands for /'

function __wq_tunectl_command -V c
    $c -n 'not __wq_tunectl_words | string length -q' -a $argv[1] -d $argv[2]
end
__wq_tunectl_command status 'What the daemon does with each target'
__wq_tunectl_command topology 'LLCs, cores and shards of a machine'
__wq_tunectl_command plan 'What would be set, and why'
__wq_tunectl_command explain 'One target\'s plan with its candidates'
__wq_tunectl_command history 'The trials that ended'
__wq_tunectl_command report 'All of it as a page for a browser'
__wq_tunectl_command check 'Look for mistakes in a policy'
__wq_tunectl_command cat-config 'The merged policy, with the place of each value'
__wq_tunectl_command dump 'Pods, worker pools and workqueues of the kernel'
__wq_tunectl_command judge 'Verdicts on recorded trials'
__wq_tunectl_command ab 'Run a command under scopes, and judge'
__wq_tunectl_command pin 'Hold a target at a scope'
__wq_tunectl_command unpin 'Give a target back to the policy'
__wq_tunectl_command revert 'Put targets back to the baseline'
__wq_tunectl_command trial 'Try a scope on a target now'
__wq_tunectl_command top 'What workqueues do, live'
__wq_tunectl_command undo 'Shell commands that would put everything back'
__wq_tunectl_command reload 'Read the policy again'
functions -e __wq_tunectl_command

$c -n '__wq_tunectl_at 0 explain pin unpin revert trial' -a '(__wq_tunectl_targets)' -d Target
$c -n '__wq_tunectl_at 1 pin' -a "$scopes" -d Scope

$c -n '__wq_tunectl_is check; or __wq_tunectl_at 0 judge' -F

$c -n '__wq_tunectl_is status topology plan explain history check cat-config dump judge ab trial top' -l json -d 'For machines'
$c -n '__wq_tunectl_is status topology plan explain cat-config report' -l config -r -F -d 'Policy file'
$c -n '__wq_tunectl_is topology plan explain report' -l topology -x -a 'live fsroot: xml: synthetic:' -d 'What to look at'
$c -n '__wq_tunectl_is topology plan explain report' -l shard-size -x -d 'Cores per shard'
$c -n '__wq_tunectl_is plan explain report' -l kernel-scopes -x -a "(__fish_complete_list , 'string split \" \" \"$scopes\"')" -d 'Plan for a kernel that has these'
$c -n '__wq_tunectl_is report' -s o -l output -r -F -d 'The file to write'
$c -n '__wq_tunectl_is plan' -l boot -d 'Boot options that the plan would need'
$c -n '__wq_tunectl_is trial' -l arm -x -a "$scopes" -d 'The scope to try'
$c -n '__wq_tunectl_is history' -l export-policy -d 'As a policy for machines of this kind'
$c -n '__wq_tunectl_is dump top' -a '(__wq_tunectl_workqueues)' -d Workqueue
$c -n '__wq_tunectl_is top' -s d -l interval -x -d 'Seconds from one look to the next'
$c -n '__wq_tunectl_is top' -s n -l iterations -x -d 'Intervals, then end'
$c -n '__wq_tunectl_is top' -l once -d 'One interval, as a table'
$c -n '__wq_tunectl_is top' -l functions -d 'The functions that keep workers busy'
$c -n '__wq_tunectl_is top' -l sort -x -a 'name total inflight rate cpu p50 p90 p99 lock cputime hogs wakeups mayday rescued workqueue busy mean items' -d 'Column to sort by'
$c -n '__wq_tunectl_is undo' -l print -d 'Print the commands'
$c -n '__wq_tunectl_is judge ab' -l alpha -x -d 'Chance of reverting a harmless change'
$c -n '__wq_tunectl_is judge ab' -l tolerance -x -d 'What a change may cost'
$c -n '__wq_tunectl_is judge' -l max-pairs -x -d 'Pairs before a trial is given up'
$c -n '__wq_tunectl_is ab' -l target -x -a '(__wq_tunectl_targets)' -d 'Whose scope'
$c -n '__wq_tunectl_is ab' -l arms -x -a "(__fish_complete_list , 'string split \" \" \"$scopes\"')" -d 'The baseline and others'
$c -n '__wq_tunectl_is ab' -l sweep -d 'All that differ'
$c -n '__wq_tunectl_is ab' -l metric -x -a time -d 'What is compared'
$c -n '__wq_tunectl_is ab' -l higher-is-better -d 'More of it is better'
$c -n '__wq_tunectl_is ab' -l pairs -x -d 'Runs of each arm'
$c -n '__wq_tunectl_is ab' -l all-pairs -d 'Do not stop at verdicts'
$c -n '__wq_tunectl_is ab' -l warmup -x -d 'Runs that do not count'
$c -n '__wq_tunectl_is ab' -l ignore-failure -d 'Runs that fail count too'
$c -n '__wq_tunectl_is ab' -l show-output -d 'The command\'s output, to stderr'
$c -n '__wq_tunectl_is ab' -l export -r -F -d 'Pairs for judge'
