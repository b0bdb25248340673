#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The metrics, rules and dashboard against Debian's Prometheus: metrics_test.sh SOURCE-DIR BIN-DIR.
#
# The real daemon runs on a file tree instead of a machine, with a file as its counter. A real node_exporter
# and a real Prometheus, both on the loopback interface, read its metrics, and the test queries Prometheus.
# shellcheck disable=SC2317 # functions are called through `within`
set -euo pipefail
source=$1 bin=$2
tools=$(find "${XDG_CACHE_HOME:-$HOME/.cache}/wq-tuned" -maxdepth 1 -name "prometheus-$(sha256sum <"$source/tests/metrics/fetch.sh" | cut -c1-12)" 2>/dev/null || true)
if [ -z "$tools" ]; then
  echo "tests/metrics/fetch.sh did not run: no Prometheus to test with"
  exit 77
fi
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
failed=0
complain() { printf 'FAILED: %s\n' "$*"; failed=1; }
die() { complain "$*"; tail -n 5 "$work"/*.log; exit 1; }

# ---- The shipped rules alone
"$tools/promtool" check rules "$source"/conf/prometheus/*.rules.yml >"$work/out" || complain "$(cat "$work/out")"
(cd "$source/conf/prometheus" && "$tools/promtool" test rules wq-tuned.rules.test.yml) >"$work/out" 2>&1 || complain "$(cat "$work/out")"

# ---- A machine of four cores with two threads each, one cache for all
tree=$work/tree
put() { mkdir -p "$(dirname "$tree/$1")" && printf '%s\n' "$2" >"$tree/$1"; } # FILE TEXT
cpus=sys/devices/system/cpu
for file in online present possible; do put $cpus/$file 0-7; done
put $cpus/isolated ""
put sys/devices/system/node/online 0
put sys/devices/system/node/node0/cpumap ff
for cpu in 0 1 2 3 4 5 6 7; do
  core=$((cpu % 4))
  mask=$(printf '%08x' $((1 << core | 1 << (core + 4))))
  put $cpus/cpu$cpu/topology/thread_siblings "$mask"
  put $cpus/cpu$cpu/topology/core_siblings ff
  put $cpus/cpu$cpu/cache/index0/level 3
  put $cpus/cpu$cpu/cache/index0/type Unified
  put $cpus/cpu$cpu/cache/index0/shared_cpu_map ff
done
wq=sys/devices/virtual/workqueue
put $wq/cpumask ff
for name in kcryptd writeback; do
  put $wq/$name/affinity_scope cache
  put $wq/$name/affinity_strict 0
  put $wq/$name/per_cpu 0
  put $wq/$name/max_active 512
  put $wq/$name/cpumask ff
done
put sys/module/workqueue/parameters/default_affinity_scope cache
put proc/cmdline ""
put proc/sys/kernel/osrelease 6.12.1
put proc/sys/kernel/ostype Linux
put run/cost 100
mkdir -p "$tree/textfiles"
policy() { # [LINE]
  put etc/wq-tuned/wq-tuned.toml "$1"'
[metrics]
textfile = "/textfiles/wq-tuned.prom"
[judge]
counters = ["file:/run/cost"]
window = "500ms"
washout = "0ms"
alpha = 0.07
guards = []
jitter = "0s"
settle = "0s"
[default_scope]
manage = false
[[workqueue]]
match = "*"
scope = "smt"'
}
policy ""
textfile=$tree/textfiles/wq-tuned.prom

# The counter is a quarter higher while kcryptd has the scope that the policy wants.
while sleep 0.02; do
  word=""
  read -r word _ 2>/dev/null <"$tree/$wq/kcryptd/affinity_scope" || true
  if [ "$word" = smt ]; then echo 125; else echo 100; fi >"$tree/run/cost.new"
  mv "$tree/run/cost.new" "$tree/run/cost"
done &
children+=($!)
WATCHDOG_USEC=1000000 "$bin/wq-tuned" --root "$tree" 2>"$work/daemon.log" &
daemon=$!
children+=("$daemon")
has() { grep -qE "$1" "$textfile" 2>/dev/null; }
within 10 has '^wq_tuned_slots_total ' || die "the daemon tells nothing"
"$tools/promtool" check metrics <"$textfile" >"$work/out" 2>&1 || complain "promtool check metrics: $(cat "$work/out")"

# ---- node_exporter and Prometheus. The alerts fire at once here (no `for`).
for rules in wq-tuned wq-tuned-fleet; do
  sed '/^ *for: /d; s/interval: .*/interval: 1s/' "$source/conf/prometheus/$rules.rules.yml" >"$work/$rules.yml"
done
listens() { sed -nE 's/.*msg="Listening on" .*address=(\[?[0-9a-f.:]+\]?:[1-9][0-9]*).*/\1/p' "$1" | head -n 1; }
is_up() { [ -e "$1" ] && [ -n "$(listens "$1")" ]; }
"$tools/prometheus-node-exporter" --collector.disable-defaults --collector.textfile --web.listen-address=127.0.0.1:0 \
  --collector.textfile.directory="$tree/textfiles" 2>"$work/exporter.log" &
children+=($!)
within 10 is_up "$work/exporter.log" || die "node_exporter does not listen"
cat >"$work/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [wq-tuned.yml, wq-tuned-fleet.yml]
scrape_configs:
  - job_name: node
    static_configs: [{targets: ['$(listens "$work/exporter.log")']}]
END
"$tools/promtool" check config "$work/prometheus.yml" >"$work/out" || complain "$(cat "$work/out")"
"$tools/prometheus" --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" --web.listen-address=127.0.0.1:0 \
  2>"$work/prometheus.log" &
children+=($!)
within 20 is_up "$work/prometheus.log" || die "Prometheus does not listen"
url=http://$(listens "$work/prometheus.log")
query() { "$tools/promtool" query instant -o json "$url" "$1" 2>"$work/query.err"; }
finds() { [ "$(query "$1" | jq length)" -gt 0 ] 2>/dev/null; }

# ---- A comparison with a verdict, and one that goes on
within 120 has '^wq_tuned_verdicts_total\{outcome="regressed"\} 1$' || die "no verdict: $(cat "$textfile")"
within 20 has '^wq_tuned_comparison_pairs\{[^}]*class="writeback",' || die "no second comparison: $(cat "$textfile")"
arms='class="kcryptd",reference="cache",candidate="smt"'
for line in "wq_tuned_effect_ratio{$arms,counter=\"file:/run/cost\"} 1.25" "wq_tuned_verdict_info{$arms,outcome=\"regressed\"} 1" \
  'wq_tuned_comparisons{course="resting"} 1' 'wq_tuned_comparisons{course="dense"} 1' 'wq_tuned_targets{state="reverted"} 1' \
  'wq_tuned_policy_files 1'; do
  grep -qxF "$line" "$textfile" || complain "the textfile does not have $line: $(cat "$textfile")"
done
hash=$("$bin/wq-tunectl" --root "$tree" cat-config --json | jq -r .hash)
has "^wq_tuned_policy_info\{hash=\"$hash\"," || complain "not the hash $hash of cat-config: $(grep policy_info "$textfile")"

# ---- Prometheus has exactly what the daemon wrote, without empty labels. The daemon is stopped during this
# comparison.
kill -STOP "$daemon"
written() {
  jq -Rnc '[inputs | select(startswith("#") | not) | capture("^(?<name>[a-z_]+)(\\{(?<labels>.*)\\})? (?<value>\\S+)$") |
    {name, value: (.value | tonumber), labels: ([(.labels // "") | scan("([a-z_]+)=(\"(?:[^\"\\\\]|\\\\.)*\")")
      | {key: .[0], value: (.[1] | fromjson)} | select(.value != "")] | from_entries)}] | sort_by(.name, .labels | tostring) | .[]' "$textfile"
}
scraped() {
  query '{__name__=~"wq_tuned_[a-z_]+"}' | jq -c '[.[] | {name: .metric.__name__, value: (.value[1] | tonumber),
    labels: (.metric | del(.__name__, .job, .instance))}] | sort_by(.name, .labels | tostring) | .[]'
}
sorted() { "$1" | jq -Sc . | sort >"$work/$1"; }
sorted written
[ "$(wc -l <"$work/written")" -gt 40 ] || complain "only $(wc -l <"$work/written") series were written"
is_same() { sorted scraped && cmp -s "$work/written" "$work/scraped"; }
within 10 is_same || complain "< was written, > was scraped: $(diff "$work/written" "$work/scraped")"
kill -CONT "$daemon"

# ---- Every expression of the dashboard
asked=0
while read -r expression; do
  for name in job instance; do expression=${expression//\$$name/.*}; done
  expression=${expression//\$__rate_interval/1m}
  asked=$((asked + 1))
  within 5 finds "$expression" || complain "the dashboard asks for nothing: $expression $(cat "$work/query.err")"
done < <(jq -r '.panels[].targets[].expr' "$source/conf/grafana/wq-tuned.json")
[ $asked -ge "$(jq '.panels | length' "$source/conf/grafana/wq-tuned.json")" ] || complain "only $asked expressions in the dashboard"
while read -r record; do
  within 5 finds "$record" || complain "nothing is recorded as $record"
done < <(sed -nE 's/.*- record: //p' "$work"/wq-tuned*.yml)

# ---- Alerts: none if all is well, one for a broken policy, one for a daemon that is gone
firing() { query 'ALERTS{alertstate="firing"}' | jq -r '[.[].metric.alertname] | unique | join(" ")'; }
check_eq() { [ "$2" = "$3" ] || complain "$1: '$3', not '$2'"; }
check_eq "alerts while all is well" "" "$(firing)"
policy 'nonsense'
kill -HUP "$daemon"
within 10 has '^wq_tuned_policy_broken 1$' || complain "a broken policy is not told"
within 10 finds 'ALERTS{alertname="WqTunedPolicyBroken", alertstate="firing"}' || complain "no alert for a broken policy"
check_eq "alerts for a broken policy" WqTunedPolicyBroken "$(firing)"
kill -TERM "$daemon"
wait "$daemon" || complain "the daemon ended with $?"
for i in "${!children[@]}"; do [ "${children[i]}" != "$daemon" ] || unset "children[i]"; done # its PID may be in use again
[ ! -e "$textfile" ] || complain "the textfile outlived the daemon"
within 10 finds 'ALERTS{alertname="WqTunedGone", alertstate="firing"}' || complain "no alert for a daemon that is gone"
[ $failed = 0 ] || cat "$work/daemon.log"
exit $failed
