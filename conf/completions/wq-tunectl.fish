# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of wq-tunectl(1) for fish. The program itself computes the words (daemon/ctl/command.h, complete()).

function __wq_tunectl
    set -l part (commandline -ct)
    for line in (wq-tunectl --complete (commandline -opc)[2..-1] "$part" 2>/dev/null)
        switch $line
            case :nospace
            case :command
                __fish_complete_command
            case ':file *' ':dir *'
                set -l before (string replace -r '^:\w+ ' '' -- $line)
                set -l name (string sub -s (math 1 + (string length -- "$before")) -- "$part")
                if string match -q ':dir *' -- $line
                    printf '%s\n' "$before"(__fish_complete_directories "$name" '')
                else
                    printf '%s\n' "$before"(__fish_complete_path "$name")
                end
            case '*'
                echo $line
        end
    end
end

complete -c wq-tunectl -f -a '(__wq_tunectl)'
