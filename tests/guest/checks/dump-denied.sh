# SPDX-License-Identifier: LGPL-2.1-or-later
# If `wq-tunectl dump` cannot read the kernel, it prints one line that says what is missing, and nothing else.
. lib.sh
out=/run/wq-tests/dump.out err=/run/wq-tests/dump.err

refused() { # WHAT WORDS COMMAND...
  local what=$1 words=$2 code=0
  shift 2
  "$@" >"$out" 2>"$err" || code=$?
  note "$what: $(cat "$err")"
  check_eq "$what: exit code" 1 "$code"
  check_eq "$what: lines" 1 "$(wc -l <"$err")"
  check_eq "$what: output" 0 "$(wc -c <"$out")"
  grep -q "^wq-tunectl: .*$words" "$err" || fail "$what: not clear"
}
dump=(wq-tunectl dump --json)
without() { echo "--bounding-set=-$1" --inh-caps=-all; }

if ! grep -q '"scopes"' <<<"$(wq-tunectl dump --json 2>/dev/null)"; then
  refused "lockdown" "lockdown" "${dump[@]}"
  expect_no_probes
  exit 0
fi
check_eq "this guest is not locked down" "" "$(grep -o 'lockdown=confidentiality' <<<"$guest_append" || true)"
refused "user nobody" "CAP_BPF" setpriv --reuid=65534 --clear-groups "${dump[@]}"
# shellcheck disable=SC2046
refused "without CAP_BPF" "CAP_BPF" setpriv $(without bpf,-sys_admin) "${dump[@]}"
# shellcheck disable=SC2046
refused "without CAP_SYSLOG" "CAP_SYSLOG" setpriv $(without syslog) "${dump[@]}"
before=$(sysctl -n kernel.kptr_restrict)
trap 'sysctl -q kernel.kptr_restrict=$before' EXIT
sysctl -q kernel.kptr_restrict=2
refused "kptr_restrict 2" "kptr_restrict" "${dump[@]}"
sysctl -q kernel.kptr_restrict=1
"${dump[@]}" >"$out" || fail "kptr_restrict 1 is enough for root"
sysctl -q "kernel.kptr_restrict=$before"
mkdir -p /run/wq-tests/empty
refused "no BTF" "/sys/kernel/btf/vmlinux" unshare -m sh -c 'mount --bind /run/wq-tests/empty /sys/kernel/btf && exec wq-tunectl dump --json'
expect_no_probes

note "-- with these three capabilities and no more"
setpriv --bounding-set=-all,+bpf,+perfmon,+syslog --inh-caps=-all "${dump[@]}" >"$out" || fail "they are not enough"
check_eq "scopes" true "$(jq '.scopes | length >= 5' "$out")"
