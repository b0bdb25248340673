# SPDX-License-Identifier: LGPL-2.1-or-later
# What `wq-tunectl dump` reads by BPF agrees with what the kernel shows elsewhere: pods in the masks of strict
# workers, pools and workers in /proc, masks and settings in /sys.
# timeout: 400
# shellcheck disable=SC2016 # these dollars are jq's
. lib.sh
out=/run/wq-tests/dump.json

dump() { wq-tunectl dump --json >"$out"; }
said() { jq -r "$@" "$out"; }
# jq functions: CPU lists as arrays, and the intersection of two arrays.
lists='def cpus: if . == "" then [] else split(",") | map(split("-") | map(tonumber) | [range(.[0]; .[-1] + 1)]) | add end;
  def both($b): . - (. - $b);'

some_workqueue
dump
note "$(said '"\(.pools | length) pools, \(.workqueues | length) workqueues, default scope \(.default_scope)"')"

note "-- settings, as /sys has them"
check_eq "default scope" "$(cat /sys/module/workqueue/parameters/default_affinity_scope)" "$(said .default_scope)"
check_eq "release" "$(uname -r)" "$(said .kernel.release)"
for mask in unbound: requested:_requested isolated:_isolated; do
  hex=$(tr -d , <"$workqueues/cpumask${mask#*:}")
  check_eq "mask ${mask%:*}" $((16#$hex)) \
    "$(said --arg m "${mask%:*}" "$lists"' .masks[$m] | cpus | map(pow(2; .)) | add // 0')"
done
of_sysfs() {
  local dir name
  for dir in "$workqueues"/*/; do
    name=$(basename "$dir")
    [ -e "$dir/max_active" ] || continue
    if [ -e "$dir/affinity_scope" ]; then
      echo "$name $(cut -d' ' -f1 "$dir/affinity_scope") $(cat "$dir/affinity_strict" "$dir/nice" "$dir/max_active" | tr '\n' ' ')"
    else
      echo "$name - 0 0 $(cat "$dir/max_active") "
    fi
  done | sort
}
of_dump() {
  said '.workqueues[] | select(.flags | index("sysfs")) |
    if .kind == "per-cpu" then "\(.name) - 0 0 \(.max_active) "
    else "\(.name) \(.scope) \(if .strict then 1 else 0 end) \(.nice) \(.max_active) " end' | sort
}
check_eq "workqueues in sysfs: scope, strict, nice, max_active" "$(of_sysfs)" "$(of_dump)"

note "-- workers, as /proc has them"
# Prints the number of workers, and the pool, for each pool that has workers: u64, 3, 3H.
of_proc() { cat /proc/[0-9]*/comm 2>/dev/null | sed -nE 's|^kworker/(u?[0-9]+):[0-9]+(H?).*|\1\2|p' | sort | uniq -c; }
of_pools() {
  said '.pools[] | select(.bh | not) | range(.workers) as $n |
    if .cpu == null then "u\(.id)" elif .nice < 0 then "\(.cpu)H" else "\(.cpu)" end' | sort | uniq -c
}
same_workers() { # workers come and go: /proc must be equal before and after the dump
  before=$(of_proc)
  dump
  after=$(of_proc)
  pools=$(of_pools)
  [ "$before" = "$after" ] && [ "$before" = "$pools" ]
}
wait_until 60 same_workers || check_eq "workers by pool" "$after" "$pools"
note "ok: $(wc -l <<<"$pools") pools with $(said '[.pools[] | select(.bh | not) | .workers] | add') workers"
check_eq "each pool is there once" 0 "$(said '[.pools[].id] | length - (unique | length)')"
cpus=$(said "$lists"'.scopes[-1].pods[0].cpus | cpus | length')
check_eq "each possible CPU has a pool of each nice level" $((2 * cpus)) "$(said '[.pools[] | select(.cpu != null and (.bh | not))] | length')"
check_eq "pools that a workqueue names and nobody has" "[]" "$(said -c '[.workqueues[] | .pools[], .default_pool | values] - [.pools[].id]')"
check_eq "workqueues without a pool for each CPU" "[]" "$(said -c --argjson n "$cpus" '[.workqueues[] | select(.pools | length != $n) | .name]')"
check_eq "workqueues that use another CPU's own pool" "[]" \
  "$(said -c '(.pools | map({key: "\(.id)", value: .cpu}) | from_entries) as $cpu_of | [.workqueues[] | .name as $wq | .pools | to_entries[] |
    (.key | tonumber) as $cpu | $cpu_of["\(.value)"] | values | select(. != $cpu) | $wq]')"
rescuers() { cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^kworker/R-'; }
check_eq "rescuers" "$(rescuers)" "$(said '[.workqueues[].rescuer | values] | length')"
while read -r pid cpus; do
  check_eq "rescuer $pid" "$(sed -n 's/^Cpus_allowed_list:\t//p' "/proc/$pid/status")" "$cpus"
done < <(said '.workqueues[].rescuer | values | "\(.pid) \(.cpus)"' | tail -n 3)

note "-- pods, as strict workers have them"
online=$(cat /sys/devices/system/cpu/online)
everywhere=$(worker_lists | head -n 1)
arrays() { jq -Rc "$lists cpus" | jq -sc 'unique'; }
# Only of online CPUs, like real_pods. A pod without online CPUs has no pool. A pod with the same CPUs as all
# other workers cannot be seen.
expected() { # SCOPE
  jq -c --arg s "$1" --arg on "$online" --arg all "$everywhere" "$lists"'
    (.masks.unbound | cpus | both($on | cpus)) as $mask | ($all | cpus) as $all |
    [.scopes[] | select(.scope == $s) | .pods[].cpus | cpus | both($mask) | select(. != [])] - [$all] |
    if . == [] then [$all] else unique end' "$out"
}
for scope in $(said '.scopes[].scope'); do
  check_eq "pods of $scope" "$(real_pods "$wq" "$scope" | arrays)" "$(expected "$scope")"
done
[ -n "$(sed -E 's/wq_tests\.[a-z_]+=[0-9]+ *//g' <<<"$guest_append")" ] || check_eq "the model has the same" '{}' "$(wq-tunectl topology --json | jq -c .pods.differ)"
check_eq "scopes" "$(wq-tunectl plan --json | jq -c '.kernel.scopes')" "$(said -c '[.scopes[].scope]')"
check_eq "cpu_pod is the pods the other way round" true "$(said "$lists"'all(.scopes[]; . as $s |
  (.cpu_pod | length > 0 and length == ([$s.pods[].cpus | cpus | length] | add)) and all(.cpu_pod | to_entries[];
  .key as $cpu | $s.pods[.value].cpus | cpus | index([$cpu | tonumber]) != null))')"
check_eq "and nr_pods their number" true "$(said 'all(.scopes[]; .nr_pods == (.pods | length))')"

note "-- one strict workqueue: each of its pools has that worker"
echo smt >"$workqueues/$wq/affinity_scope"
echo 1 >"$workqueues/$wq/affinity_strict"
dump
# Prints "POOL CPUS" for the pool of each unbound worker: the online CPUs on which the worker may run.
of_workers() {
  local dir comm
  for dir in /proc/[0-9]*; do
    comm=""
    read -r comm 2>/dev/null <"$dir/comm" || continue
    [[ $comm =~ ^kworker/u([0-9]+): ]] || continue
    echo "${BASH_REMATCH[1]} $(sed -n 's/^Cpus_allowed_list:\t//p' "$dir/status" 2>/dev/null | online_of)"
  done | sort -u
}
want=$(said --arg wq "$wq" '([.workqueues[] | select(.name == $wq) | .default_pool, .pools[]]) as $its |
  .pools[] | select(.cpu == null and (.id | IN($its[]))) | "\(.id) \(if .strict then .pod_cpus else .cpus end)"' |
  while read -r pool cpus; do echo "$pool $(online_of <<<"$cpus")"; done | sort)
[ -n "$want" ] || fail "no pools of $wq"
check_eq "pools and where their workers may run" "$want" "$(of_workers | grep -E "^($(cut -d' ' -f1 <<<"$want" | paste -sd'|')) ")"
echo 0 >"$workqueues/$wq/affinity_strict"
echo default >"$workqueues/$wq/affinity_scope"
wq-tunectl dump --json >/run/wq-tests/after.json
check_eq "what differs from before" '[["'"$wq"'",["scope","smt","default"]],["'"$wq"'",["strict","true","false"]]]' \
  "$(wq-tunectl dump --diff "$out" --json | jq -c --arg wq "$wq" '[.workqueues[] | select(.name == $wq) | .name as $n | .changes[] | select(.what != "pools") |
    [$n, [.what, .before, (.after | sub(" .*"; ""))]]]')"
wq-tunectl dump --diff /run/wq-tests/after.json >/run/wq-tests/dump.txt

note "-- for people"
COLUMNS=80 wq-tunectl dump >/run/wq-tests/dump.txt
check_eq "lines wider than a terminal" 0 "$(grep -cE '^.{81}' /run/wq-tests/dump.txt || true)"
check_eq "kernel addresses" 0 "$(cat /run/wq-tests/dump.txt "$out" | grep -ciE 'ffff[0-9a-f]{12}|1844[0-9]{16}' || true)"
head -n 30 /run/wq-tests/dump.txt
expect_no_probes
some_workqueue_done
