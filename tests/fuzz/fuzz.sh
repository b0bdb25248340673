#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs the targets that `./dev fuzz` has built in build/fuzz, with the kept corpus and the inputs that earlier
# runs have found, as many targets at once as there are CPUs. New inputs go to build/fuzz/found/TARGET.
#   fuzz.sh [TARGET...] [--seconds N]   default: all targets, 600 s each; fails if one crashes
#   fuzz.sh --keep [TARGET...]          makes corpus/TARGET again: the smallest inputs that reach all that was
#                                       reached, at most 100 KiB; files named crash-* are not changed
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$here/../../build/fuzz
programs=$build/tests/fuzz

# The inputs of sysfs are trees, so they may be longer.
options_of() { # TARGET
  printf '%s\n' -timeout=30 -rss_limit_mb=2048 -malloc_limit_mb=1024 "-max_len=$([ "$1" = sysfs ] && echo 8192 || echo 4096)"
  [ ! -f "$here/$1.dict" ] || printf '%s\n' "-dict=$here/$1.dict"
}

run() { # TARGET SECONDS
  local target=$1 options
  mapfile -t options < <(options_of "$target")
  # In memory, and removed with this script, because a target that is stopped leaves its files.
  TMPDIR=$(mktemp -d -p /dev/shm wq-tuned-fuzz-XXXXXX)
  export TMPDIR
  trap 'rm -rf "$TMPDIR"' EXIT
  mkdir -p "$build/found/$target" "$build/crashes" "$here/corpus/$target"
  "$programs/fuzz-$target" "${options[@]}" -max_total_time="$2" -print_final_stats=1 -use_value_profile=1 \
    -artifact_prefix="$build/crashes/$target-" "$build/found/$target" "$here/corpus/$target" >"$build/$target.log" 2>&1 && return
  echo "$target: stopped; the end of $build/$target.log:"
  grep -aE -B 4 -A 20 'does not hold|ERROR: |runtime error' "$build/$target.log" | head -n 40
  grep -aE 'Test unit written to' "$build/$target.log" || true
  return 1
}

summary() { # TARGET
  local log=$build/$1.log
  printf '%-10s %10s runs %6s edges %6s new inputs, %s\n' "$1" \
    "$(sed -n 's/^stat::number_of_executed_units: //p' "$log")" "$(grep -aoP 'cov: \K\d+' "$log" | tail -n 1)" \
    "$(sed -n 's/^stat::new_units_added: *//p' "$log")" "$(grep -aoP 'Test unit written to \K.*-(crash|leak|oom|timeout)-.*' "$log" || echo 'no crash')"
}

# Kept inputs are in every clone for ever, and run with each test: at most 100 KiB, the smallest inputs first.
most_kept=102400

bytes_in() { find "$1" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }'; } # FOLDER

keep() { # TARGET
  local target=$1 corpus=$here/corpus/$1 fresh options total=0 size file
  mapfile -t options < <(options_of "$target")
  fresh=$(mktemp -d)
  mkdir -p "$corpus" "$build/found/$target"
  "$programs/fuzz-$target" "${options[@]}" -merge=1 -use_counters=0 "$fresh" "$corpus" "$build/found/$target" >"$build/keep-$target.log" 2>&1
  # Removes kept inputs that are no longer needed. Those that are still needed stay, and count first.
  for file in "$corpus"/*; do
    case ${file##*/} in
      crash-*) ;;
      *) if [ -e "$fresh/${file##*/}" ]; then rm "$fresh/${file##*/}"; else rm -f "$file"; fi ;;
    esac
  done
  total=$(bytes_in "$corpus")
  while read -r size file; do
    total=$((total + size))
    [ $total -le $most_kept ] || break
    cp "$file" "$corpus"
  done < <(find "$fresh" -type f -printf '%s %p\n' | sort -n)
  rm -r "$fresh"
  echo "$target: $(find "$corpus" -type f | wc -l) inputs, $(bytes_in "$corpus") bytes"
}

if [ "${1:-}" = --one ]; then
  run "$2" "$3"
  exit
fi
seconds=600 keeping=0 targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=${2:?}; shift ;;
    --keep) keeping=1 ;;
    *) targets+=("$1") ;;
  esac
  shift
done
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cd "$here" && grep -l '^FUZZ_TARGET' -- *.cpp | sed 's/\.cpp$//')
for target in "${targets[@]}"; do
  [ -x "$programs/fuzz-$target" ] || { echo "no target $target" >&2; exit 2; }
done

if [ $keeping = 1 ]; then
  for target in "${targets[@]}"; do keep "$target"; done
  exit
fi
failed=0
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} "$here/fuzz.sh" --one {} "$seconds" || failed=1
for target in "${targets[@]}"; do summary "$target"; done
[ $failed = 1 ] || echo "To keep what is new: ./dev fuzz --keep ${targets[*]}"
exit $failed
