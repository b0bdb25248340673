# SPDX-License-Identifier: LGPL-2.1-or-later
# One row of the table of pods (tests/guest/RESULTS.md): `topology`, `plan` and `dump` show the kernel's pods
# of one topology, and the plan is right for them. The last line is the row; tests/arm64/table.sh collects the
# rows.
# timeout: 600
. lib.sh
wq=writeback
note "kernel: $(uname -r)"
dir=/run/wq-tests
policy <<POLICY
default_scope.manage = false
[[workqueue]]
match = "$wq"
scope = "auto"
POLICY

wq-tunectl topology --json >$dir/topology.json
as_nobody wq-tunectl topology --json >$dir/topology-nobody.json
wq-tunectl explain "$wq" --json >$dir/explain.json
wq-tunectl plan --json >$dir/plan.json
wq-tunectl dump --json >$dir/dump.json
as_nobody wq-tunectl plan --json >$dir/plan-nobody.json
target_of() { jq -c --arg wq "$wq" '.targets[] | select(.name == $wq)' "$1"; }
mapfile -t scopes < <(jq -er '.kernel.scopes[]' $dir/plan.json)
[ "${#scopes[@]}" -ge 5 ] || fail "scopes: ${scopes[*]}"

# Counts the mismatches instead of failing, so that one boot shows all of them.
wrong=0
agree() { # WHAT EXPECTED ACTUAL
  if [ "$2" = "$3" ]; then note "ok: $1"; else
    wrong=$((wrong + 1))
    printf 'WRONG: %s\n  the kernel: %s\n  wq-tuned:   %s\n' "$1" "$(paste -sd' ' <<<"$2")" "$(paste -sd' ' <<<"$3")"
  fi
}

for scope in "${scopes[@]}"; do
  real_pods "$wq" "$scope" >"$dir/pods-$scope"
  agree "explain: pods of $scope" "$(cat "$dir/pods-$scope")" \
    "$(jq -r --arg s "$scope" '.candidates[] | select(.same | index($s)) | .pods[]' $dir/explain.json | sort -uV)"
  agree "dump: pods of $scope" "$(cat "$dir/pods-$scope")" \
    "$(jq -r --arg s "$scope" '.scopes[] | select(.scope == $s) | .pods[].cpus' $dir/dump.json | online_of)"
done
agree "LLCs of topology" "$(cat $dir/pods-cache)" "$(jq -r '.llcs[].cpus' $dir/topology.json | sort -uV)"
agree "pods are read from the kernel" kernel "$(jq -r .pods.source $dir/topology.json)"

# A user who may not read the pods gets those of the rule (daemon/machine/llc_rule.cpp), which must be the
# kernel's.
agree "pods that the rule makes otherwise" '{}' "$(jq -c .pods.differ $dir/topology.json)"
agree "another user's are the rule's" model "$(jq -r .pods.source $dir/topology-nobody.json)"
agree "LLCs of another user's topology" "$(cat $dir/pods-cache)" "$(jq -r '.llcs[].cpus' $dir/topology-nobody.json | sort -uV)"
agree "why they are in doubt" null "$(jq -c .llcs_unknown $dir/topology-nobody.json)"

# `in_one_of FILE LIST`: whether all CPUs of LIST are in one line of FILE.
expand() { awk -F, '{ for (i = 1; i <= NF; i++) { n = split($i, e, "-"); for (c = e[1] + 0; c <= e[n] + 0; c++) print c } }'; }
in_one_of() {
  local line
  while read -r line; do
    [ -n "$(comm -23 <(expand <<<"$2" | sort) <(expand <<<"$line" | sort))" ] || return 0
  done <"$1"
  return 1
}
cores_of() { # LIST: prints the number of cores
  local cpu
  expand <<<"$1" | while read -r cpu; do cat "/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list"; done | sort -u | wc -l
}

planned=$(target_of $dir/plan.json | jq -r '.planned // "-"')
action=$(target_of $dir/plan.json | jq -r .action)
note "plan: $(target_of $dir/plan.json | jq -r '"\(.planned) (\(.action)): \(.reason)"')"
sockets=$(cat /sys/devices/system/cpu/cpu*/topology/core_siblings_list | sort -u)
most=0
while read -r pod; do
  cores=$(cores_of "$pod")
  [ "$cores" -le "$most" ] || most=$cores
done <$dir/pods-cache
agree "the plan is for a scope of this kernel" yes "$([ -e "$dir/pods-$planned" ] && echo yes || echo "$planned")"
if [ "$most" = 1 ] && ! grep -q '[-,]' <<<"$sockets"; then
  note "each package is one core: its LLC says nothing"
elif [ -e "$dir/pods-$planned" ]; then
  while read -r pod; do
    in_one_of $dir/pods-cache "$pod" || agree "pod of the planned $planned stays in an LLC of the kernel's" "$(cat $dir/pods-cache)" "$pod"
  done <"$dir/pods-$planned"
  # (cores + 4) / 8 shards of eight
  if [ $(((most + 4) / 8)) -le 1 ]; then
    agree "the kernel's LLC is no more than a shard: left as it is" none "$action"
  fi
fi
agree "another user is told the same" "$(target_of $dir/plan.json | jq -c '[.planned, .action, .reason]')" \
  "$(target_of $dir/plan-nobody.json | jq -c '[.planned, .action, .reason]')"
agree "pods that are unknown" "" "$(target_of $dir/plan-nobody.json | jq -r '.reason | select(startswith("pods unknown"))')"

short() { # FILE: prints the pods in short form
  if ! grep -q '[-,]' "$1"; then echo singles; elif [ "$(wc -l <"$1")" -gt 4 ]; then echo "$(wc -l <"$1"): $(head -n 2 "$1" | paste -sd' ') ..."; else paste -sd' ' "$1"; fi
}
index() { find /sys/devices/system/cpu/cpu0/cache -maxdepth 1 -name 'index*' 2>/dev/null | sort | tail -n 1; }
last=$(index)
if [ -n "$last" ]; then
  cat /sys/devices/system/cpu/cpu[0-9]*/cache/"${last##*/}"/shared_cpu_list 2>/dev/null | sort -uV >$dir/outermost
  outermost="L$(cat "$last/level") $(short $dir/outermost)"
else
  outermost=none
fi
shards="-"
[ ! -e $dir/pods-cache_shard ] || shards=$(short $dir/pods-cache_shard)
note "row|$outermost|$(short $dir/pods-cache)|$shards|$(short $dir/pods-numa)|$planned, $action|$([ $wrong = 0 ] && echo yes || echo "$wrong differ")"
[ $wrong = 0 ] || fail "$wrong differences"
