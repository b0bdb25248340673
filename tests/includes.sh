#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Checks that each file includes the project's headers that it needs. A unity build hides a missing one, and a
# build without unity takes too long for each test run. A name that a header declares in a namespace (at the
# start of a line, as clang-format puts it) and that a file uses must occur in the file's headers, included
# directly or by another header. `./dev lint` runs it; `includes.sh ROOT` checks another tree.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

find daemon tests -name '*.h' -o -name '*.cpp' | sort | awk '
  function folder(file) { return match(file, /.*\//) ? substr(file, 1, RLENGTH) : "" }
  function resolved(name, file,   at) { # the file that "NAME" means in FILE; "" for one of another place
    for (at = 1; at <= 3; at++) {
      path = (at == 1 ? folder(file) : at == 2 ? "daemon/" : "tests/unit/") name
      while (sub(/[^\/]+\/\.\.\//, "", path)) { }
      if (path in known) return path
    }
    return ""
  }
  # RAW: what ends the raw string in which LINE begins; "" if it begins in none.
  function without_raw_strings(line,   kept, at) {
    for (;;) {
      if (raw != "") {
        if (!(at = index(line, raw))) return kept
        line = "\"" substr(line, at + length(raw))
        raw = ""
      }
      if (!match(line, /R"[A-Za-z]*\(/)) return kept line
      kept = kept substr(line, 1, RSTART - 1) "\""
      raw = ")" substr(line, RSTART + 2, RLENGTH - 3) "\""
      line = substr(line, RSTART + RLENGTH)
    }
  }
  # Takes the names in LINE of FILE.
  function take(file, line,   rest, name, before, after) {
    rest = line
    while (match(rest, /[A-Za-z_][A-Za-z_0-9]*/)) {
      name = substr(rest, RSTART, RLENGTH)
      before = before substr(rest, 1, RSTART - 1)
      rest = substr(rest, RSTART + RLENGTH)
      after = substr(rest, 1, 1)
      mentioned[file, name] = 1
      if (before ~ /[A-Za-z_0-9>][&*]* $/ && before !~ /(^|[^A-Za-z_0-9])(return|else|throw|case|new|co_return|and|or|not) $/)
        own[file, name] = 1 # declared here: "Type name", "Type& name"
      else if (before !~ /(\.|->)$/ && (before !~ /::$/ || before ~ /(wq|ctl|test)::$/) && (name ~ /^[A-Z]/ || name ~ /^k[A-Z]/ || after == "(") && !((file, name) in used)) {
        used[file, name] = FNR
        uses[file] = uses[file] " " name
      }
      before = before name
    }
  }
  function declare(file, name) { if (name != "") declared[name] = declared[name] " " file }
  # The name that LINE of a header declares in a namespace, if any.
  function declared_in(line,   name) {
    if (line ~ /^(template|namespace|static_assert|using namespace|extern "C"|typedef|#|\}|operator)/ || line ~ /^(struct|class|enum class|union) [A-Za-z_0-9]+;/) return ""
    sub(/^(template *<.*> *)/, "", line)
    if (match(line, /^(struct|class|enum class|enum|union|concept|using) [A-Za-z_0-9]+/)) {
      name = substr(line, 1, RLENGTH)
      sub(/.* /, "", name)
      return name
    }
    if (line !~ /^[A-Za-z\[]/) return ""
    if (line ~ /^inline constexpr|^constexpr|^extern|^inline const /) {
      if (line !~ /\)/ && match(line, /[A-Za-z_][A-Za-z_0-9]*(\[\])?( =|\{|;)/)) {
        name = substr(line, RSTART, RLENGTH)
        sub(/[^A-Za-z_0-9].*/, "", name)
        return name
      }
    }
    if (!match(line, /[A-Za-z_][A-Za-z_0-9]*\(/) || line ~ /operator/) return ""
    return substr(line, RSTART, RLENGTH - 1)
  }
  function close_over(file,   n, i, list) { # sets in_reach[] to all headers that FILE includes
    n = split(includes[file], list, " ")
    for (i = 1; i <= n; i++)
      if (!(list[i] in in_reach)) {
        in_reach[list[i]] = 1
        close_over(list[i])
      }
  }
  function reaches(file, name,   header) {
    for (header in in_reach)
      if ((header, name) in mentioned) return 1
    return 0
  }
  { known[$0] = 1; files[++count] = $0 }
  END {
    for (f = 1; f <= count; f++) {
      file = files[f]
      FNR = 0
      raw = ""
      while ((getline line < file) > 0) {
        FNR++
        if (line ~ /^#include "/) {
          split(line, quoted, "\"")
          if ((path = resolved(quoted[2], file)) != "") includes[file] = includes[file] " " path
          continue
        }
        line = without_raw_strings(line)
        gsub(/TEST(_[FP])?\([A-Za-z_0-9]+/, "", line) # the name of a test may be any
        gsub(/\\["\\]/, "", line)
        gsub(/"[^"]*"/, "\"\"", line)
        sub(/\/\/.*/, "", line)
        gsub(/\/\*.*\*\//, "", line)
        if (file ~ /\.h$/) declare(file, declared_in(line))
        take(file, line)
      }
      close(file)
    }
    for (f = 1; f <= count; f++) {
      file = files[f]
      split("", in_reach)
      close_over(file)
      n = split(uses[file], names, " ")
      for (i = 1; i <= n; i++) {
        name = names[i]
        if (!(name in declared) || (file, name) in own || index(declared[name] " ", " " file " ") || reaches(file, name)) continue
        printf "%s:%d: %s is declared in%s, which it does not include\n", file, used[file, name], name, declared[name]
        bad = 1
      }
    }
    exit bad
  }
'
