#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Prints the size of the project: lines and files of daemon/ by folder, what the daemon links, lines of tests/, the
# largest classes, the longest functions. Fails above the limits below. `./dev size` runs it.
# Classes and functions are found by their layout (clang-format): a class or a function ends at the line with the
# indentation of its first line. A nested class counts for itself.
set -euo pipefail
cd "$(dirname "$0")/.."

most_lines=34000 most_files=270 most_daemon=22000 most_test_lines=38000 most_members=20 most_functions=25 most_function_lines=60

lines() { tr '\n' '\0' | xargs -0 -r cat | wc -l; }

printf '%-18s %6s %6s\n' folder lines files
git ls-files daemon | sed 's#/[^/]*$##' | sort -u | while read -r folder; do
  files=$(git ls-files "$folder" | grep -E "^$folder/[^/]*$")
  printf '%-18s %6d %6d\n' "$folder" "$(lines <<<"$files")" "$(wc -l <<<"$files")"
done
total_lines=$(git ls-files daemon | lines)
total_files=$(git ls-files daemon | wc -l)
daemon_lines=$(git ls-files daemon | grep -vE '^daemon/(ctl/|wq-tunectl)' | lines)
test_lines=$(git ls-files tests ':!tests/fuzz/corpus' | lines)

bad=0
check() { # WHAT, is, at most
  local verdict=""
  if [ "$2" -gt "$3" ]; then
    verdict=" TOO MUCH"
    bad=1
  fi
  printf '%-34s %6d of %6d%s\n' "$1" "$2" "$3" "$verdict"
}
echo
check "lines in daemon/" "$total_lines" $most_lines
check "files in daemon/" "$total_files" $most_files
check "lines that the daemon links" "$daemon_lines" $most_daemon
check "lines in tests/, without corpora" "$test_lines" $most_test_lines

# CLASS <file> <name> <data members> <member functions>; FUNCTION <file> <line> <lines> <name>
# shellcheck disable=SC2016  # awk's variables
measured=$(git ls-files 'daemon/*.h' 'daemon/*.cpp' | xargs awk '
  function indent(line) { match(line, /^ */); return RLENGTH }
  FNR == 1 { depth = 0; in_function = 0; pending = "" }
  { line = $0; sub(/ *\/\/.*$/, "", line) }
  # A function: its first line ends in "{", it holds "(" before, and the closing brace has the same indentation.
  in_function && line ~ /^ *}/ && indent(line) == function_indent {
    print "FUNCTION", FILENAME, function_start, FNR - function_start + 1, function_name
    in_function = start = 0
  }
  !in_function && line ~ /^(    )?[^ #\/}:,].*\(/ && line !~ /^ *(if|for|while|switch|else|return|namespace|TEST)/ {
    start = FNR
    first_indent = indent(line)
    name = line
    sub(/\(.*/, "", name)
    sub(/.* /, "", name)
  }
  !in_function && line ~ /\) *(const)?( noexcept)?( override)?( :.*)? *\{$/ && start && FNR - start < 12 && indent(line) % 4 == 0 {
    in_function = 1
    function_start = start
    function_name = name
    function_indent = first_indent
  }
  # Classes.
  match(line, /^ *(class|struct) [A-Za-z_]+[^;]*\{$/) {
    split(line, word, " ")
    depth++
    class[depth] = word[2]; class_indent[depth] = indent(line); data[depth] = 0; functions[depth] = 0; pending = ""
    next
  }
  depth && line ~ /^ *};/ && indent(line) == class_indent[depth] {
    print "CLASS", FILENAME, class[depth], data[depth], functions[depth]
    depth--; pending = ""
    next
  }
  depth && indent(line) == class_indent[depth] + 4 && line !~ /^ *(public|private|protected|using|friend|enum|static constexpr|typedef)/ && line !~ /^ *[})]/ && line != "" {
    pending = line
  }
  depth && pending != "" && (line ~ /;$/ || line ~ /\{.*$/ ) && indent(line) >= class_indent[depth] + 4 {
    text = pending; sub(/=.*/, "", text); gsub(/<[^()]*\([^()]*\)[^<>]*>/, "", text)
    if (text ~ /\(/ ) functions[depth]++; else data[depth]++
    pending = ""
  }
')
echo
echo "largest classes (data members, member functions):"
grep ^CLASS <<<"$measured" | sort -k4,4nr -k5,5nr | awk 'NR <= 5 { printf "  %-28s %3d %3d  %s\n", $3, $4, $5, $2 }'
grep ^CLASS <<<"$measured" | sort -k5,5nr | awk 'NR <= 5 { printf "  %-28s %3d %3d  %s\n", $3, $4, $5, $2 }'
echo "longest functions:"
grep ^FUNCTION <<<"$measured" | sort -k4,4nr | awk 'NR <= 5 { printf "  %-28s %3d  %s:%d\n", $5, $4, $2, $3 }'
echo
check "most data members" "$(grep ^CLASS <<<"$measured" | sort -k4,4nr | awk 'NR == 1 { print $4 }')" $most_members
check "most member functions" "$(grep ^CLASS <<<"$measured" | sort -k5,5nr | awk 'NR == 1 { print $5 }')" $most_functions
check "most lines of a function" "$(grep ^FUNCTION <<<"$measured" | sort -k4,4nr | awk 'NR == 1 { print $4 }')" $most_function_lines
exit $bad
