#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# One data set in three engines: fleet_engines_test.sh SOURCE-DIR BIN-DIR.
#
# `wq-tunectl fleet show`, the SQL of docs/fleet.md in SQLite, and the rules of conf/prometheus in a real Prometheus must
# have the same rows, to nine digits. Exits 77 if SQLite or Prometheus is missing, after comparing with what is there.
# shellcheck disable=SC2317 # functions are called through `within` and `trap`
set -euo pipefail
source=$1 bin=$2
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
missing=0
die() { printf 'FAILED: %s\n' "$*"; exit 1; }
from_page() { # LANGUAGE: prints the code in this language in docs/fleet.md
  sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/!p}" "$source/docs/fleet.md"
}

# A row is the key, hosts, pairs, log_e_better, log_e_worse, effect_percent, hosts_better, hosts_worse.
rows='
def key: [(.machine | .arch, .vendor, .model, .packages, .cores, .llc_cores), .kernel, .class, .reference, .reference_origin,
  .candidate, (.strict == true or .strict == 1), .counter];
def row: [key, .hosts, .pairs, .log_e_better, .log_e_worse, .effect_percent, .hosts_better, .hosts_worse];'

# same EXPECTED ACTUAL: whether two files of rows are equal; writes the differences.
same() {
  jq -rn --slurpfile a "$1" --slurpfile b "$2" '
    def near($x; $y): ($x | type) == "number" and ($y | type) == "number" and ($x - $y | fabs) <= 1e-9 * ([1e-3, ($x | fabs)] | max);
    ($a[0] | sort_by(.[0])) as $a | ($b[0] | sort_by(.[0])) as $b |
    if ($a | length) != ($b | length) then "\($a | length) rows, and \($b | length)" else
      range($a | length) as $i | $a[$i] as $x | $b[$i] as $y |
      select(($x[0] == $y[0] and ([range(1; 8) | near($x[.]; $y[.])] | all)) | not) | "\($x) and \($y)"
    end' >"$work/differences" && [ ! -s "$work/differences" ]
}

# ---- Ledgers of 42 hosts of two kinds. 15 of them were read again three hours later; the others never again.
# The last two hosts report absurdly strong evidence: one for every candidate, one against.
now=$(date +%s)
awk -v now="$now" 'BEGIN {
  srand(1)
  for (export = 0; export < 2; export++)
    for (host = 0; host < (export ? 15 : 42); host++)
      for (entry = 0; entry < 4; entry++) {
        printf "{\"v\":1,\"host\":\"%032x\",\"at\":%d,\"machine\":{\"arch\":\"x86_64\",\"vendor\":\"V\",\"model\":\"M \\\"%d\\\"\",", host, now - 21600 + 10800 * export, host % 2
        printf "\"packages\":1,\"cores\":%d,\"llc_cores\":%s},\"kernel\":\"6.12 cpu smt\",\"topology\":\"t%d\",\"scheduler\":\"\",", 8 + host % 2, host % 2 ? 8 : "null", host % 3
        printf "\"class\":\"c%d\",\"reference\":\"cache\",\"reference_origin\":\"%s\",\"candidate\":\"%s\",", entry, host % 5 ? "kernel" : "policy", entry ? "smt" : "smt strict"
        printf "\"partitions\":[1,4],\"strict\":%s,\"counter\":\"latency\",\"guard\":false,\"tolerance\":0.0,\"window\":\"w\",\"n\":0,\"pairs\":%d,", entry ? "false" : "true", 10 + host + 7 * export
        for (side = 0; side < 2; side++) {
          printf "\"%s\":[", side ? "worse" : "better"
          for (stake = 0; stake < 7; stake++)
            printf "%s%.15g", stake ? "," : "", host < 40 ? 17 * rand() - 11 : (side == host % 2 ? 28 : -2e3) + stake
          printf "],"
        }
        printf "\"sum\":%.15g,\"squares\":%.15g}\n", host < 40 ? rand() - 0.5 : (host % 2 ? 40 : -40), 41 + rand()
      }
}' >"$work/ledgers.jsonl"
# Some hosts measured before with other settings. That evidence must not count, and they no longer report it.
head -n 100 "$work/ledgers.jsonl" | jq -c '.at -= 1 | .pairs += 5 | .sum *= 0.9 |
  .machine.packages = 2, .kernel = "6.12 cpu", .topology = "x", .scheduler = "x", .partitions = [1, 1], .tolerance = 0.1, .window = "x"' \
  >"$work/lines.jsonl"
cat "$work/ledgers.jsonl" >>"$work/lines.jsonl"
"$bin/wq-tunectl" fleet show --json "$work/lines.jsonl" >"$work/shown.jsonl"
jq -s "$rows map(row)" "$work/shown.jsonl" >"$work/shown"
[ "$(jq length "$work/shown")" = 16 ] || die "not 16 rows by fleet show: $(cat "$work/shown")"

# ---- `same` must find each of these differences.
for change in '.[-1] |= (.[3] *= 1.00000001)' '.[0] |= (.[4] *= 1.00000001)' '.[3] |= (.[5] *= 1.00000001)' '.[2][1] += 1' \
  '.[2][2] += 1' '.[1][6] += 1' '.[1][7] += 1' '.[1][0][7] = "c9"' '.[1][5] = null' 'del(.[5])'; do
  jq "$change" "$work/shown" >"$work/changed"
  ! same "$work/shown" "$work/changed" || die "no difference is seen after $change"
done
same "$work/shown" "$work/shown" || die "a difference where there is none: $(cat "$work/differences")"

# ---- SQLite
if sqlite3 :memory: 'SELECT ln(2)' >/dev/null 2>&1; then
  {
    echo 'CREATE TABLE lines (line TEXT);'
    printf '.mode list\n.separator "\\001" "\\n"\n'
    echo ".import '$work/lines.jsonl' lines"
    printf '.mode json\n'
    from_page sql
  } | sqlite3 :memory: | jq "$rows map((.shown | fromjson) + . | row)" >"$work/queried"
  same "$work/shown" "$work/queried" || die "fleet show and SQL differ: $(head -n 1 "$work/differences")"
  echo "fleet show = SQL: $(jq length "$work/queried") rows"
else
  echo "sqlite3 with math functions is not installed: no SQL to test with"
  missing=77
fi

# ---- Prometheus, which scrapes what these hosts would report
tools=$(find "${XDG_CACHE_HOME:-$HOME/.cache}/wq-tuned" -maxdepth 1 -name "prometheus-$(sha256sum <"$source/tests/metrics/fetch.sh" | cut -c1-12)" 2>/dev/null || true)
if [ -z "$tools" ]; then
  echo "tests/metrics/fetch.sh did not run: no Prometheus to test with"
  exit 77
fi
rules=$source/conf/prometheus/wq-tuned-fleet.rules.yml
"$tools/promtool" check rules "$rules" >"$work/out" || die "$(cat "$work/out")"
(cd "$source/conf/prometheus" && "$tools/promtool" test rules wq-tuned-fleet.rules.test.yml) >"$work/out" 2>&1 || die "$(cat "$work/out")"

mkdir "$work/textfiles"
report() { # reads lines of ledgers
  jq -rn '
    def text: to_entries | map("\(.key)=\(.value // "" | tostring | tojson)") | "{" + join(",") + "}";
    ["wq_tuned_machine_info", "wq_tuned_comparison_pairs", "wq_tuned_comparison_effect_log", "wq_tuned_evidence_log"] as $names |
    [inputs | {job: "node", instance: .host, machine: ([.machine, .kernel] | tojson | @base64)} as $host |
      ($host + {class, reference, reference_origin, candidate, counter}) as $labels |
      [$names[0], $host + .machine + {kernel}, 1],
      [$names[1], $labels, .pairs],
      [$names[2], $labels, .sum / .pairs],
      ([0.125, 0.25, 0.5, 1, 2, 4, 8] as $stakes | {better, worse} | to_entries[] | .key as $direction | .value | to_entries[] |
        [$names[3], $labels + {direction: $direction, stake: $stakes[.key]}, .value])] as $samples |
    $names[] as $name | "# HELP \($name) .", "# TYPE \($name) gauge",
      ([$samples[] | select(.[0] == $name)] | unique[] | "\($name)\(.[1] | text) \(.[2])")' >"$work/samples"
  mv "$work/samples" "$work/textfiles/hosts.prom"
}
address() { sed -nE 's/.*msg="Listening on" .*address=(\[?[0-9a-f.:]+\]?:[1-9][0-9]*).*/\1/p' "$work/$1.log" | head -n 1; }
listens() { [ -n "$(address "$1")" ]; }
: >"$work/exporter.log"
"$tools/prometheus-node-exporter" --collector.disable-defaults --collector.textfile --web.listen-address=127.0.0.1:0 \
  --collector.textfile.directory="$work/textfiles" 2>>"$work/exporter.log" &
children+=($!)
within 20 listens exporter || die "node_exporter does not listen: $(tail -n 5 "$work/exporter.log")"
sed 's/interval: .*/interval: 1s/' "$rules" >"$work/rules.yml"
cat >"$work/prometheus.yml" <<END
rule_files: [rules.yml]
scrape_configs:
  - job_name: node
    scrape_interval: 1s
    scrape_timeout: 1s
    honor_labels: true
    static_configs: [{targets: ['$(address exporter)']}]
END
: >"$work/prometheus.log"
"$tools/prometheus" --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" --web.listen-address=127.0.0.1:0 \
  2>>"$work/prometheus.log" &
children+=($!)
within 20 listens prometheus || die "Prometheus does not listen: $(tail -n 5 "$work/prometheus.log")"

page=$(from_page promql)
example=job_comparison:wq_tuned_evidence_log:pooled
[ "${page//$example/}" != "$page" ] || die "docs/fleet.md does not ask for $example"
query() { "$tools/promtool" query instant -o json "http://$(address prometheus)" "$1" 2>"$work/query.err"; }
pooled() {
  for record in comparison_pairs:{hosts,sum} comparison_effect_ratio:mean evidence_log:{pooled,hosts}; do
    query "${page//$example/job_comparison:wq_tuned_$record}" | jq -c --arg record "$record" '.[] + {record: $record}'
  done | jq -s "$rows"'
    def number: if . == null then null else tonumber end;
    map(.metric as $m | {($m | {machine: {arch, vendor, model, packages: (.packages | number), cores: (.cores | number),
        llc_cores: (.llc_cores | number)}, kernel, class, reference, reference_origin, candidate,
        strict: (.candidate | endswith(" strict")), counter} | tojson): {(.record + ($m.direction // "")): (.value[1] | tonumber)}})
    | map(to_entries[]) | group_by(.key) | map((.[0].key | fromjson) + (map(.value) | add) |
      . + {hosts: .["comparison_pairs:hosts"], pairs: .["comparison_pairs:sum"], log_e_better: .["evidence_log:pooledbetter"],
        log_e_worse: .["evidence_log:pooledworse"], effect_percent: (.["comparison_effect_ratio:mean"] | if . then 100 * (. - 1) else . end),
        hosts_better: .["evidence_log:hostsbetter"], hosts_worse: .["evidence_log:hostsworse"]} | row)' >"$work/recorded"
}
agrees() { pooled && same "$1" "$work/recorded"; } # ROWS
"$bin/wq-tunectl" fleet show --json <(head -n 168 "$work/ledgers.jsonl") | jq -s "$rows map(row)" >"$work/shown-first"
head -n 168 "$work/ledgers.jsonl" | report
within 90 agrees "$work/shown-first" || die "fleet show and Prometheus differ: $(head -n 1 "$work/differences"; cat "$work/query.err")"
tail -n +169 "$work/ledgers.jsonl" | report
within 90 agrees "$work/shown" || die "fleet show and Prometheus differ, now that hosts are gone: $(head -n 1 "$work/differences"; cat "$work/query.err")"
[ "$(query 'count(count by (instance) (wq_tuned_machine_info))' | jq -r '.[0].value[1]')" = 15 ] || die "no host is gone"
echo "fleet show = Prometheus: $(jq length "$work/recorded") rows"

# ---- One host can move ln of the pooled e-value by ln 900.1 up and ln 0.1 down, and no further.
last=$(printf '%032x' 41)
grep -v "\"host\":\"$last\"" "$work/ledgers.jsonl" >"$work/without.jsonl"
"$bin/wq-tunectl" fleet show --json "$work/without.jsonl" | jq -s "$rows map(row)" >"$work/without"
jq -en --slurpfile with "$work/recorded" --slurpfile without "$work/without" '
  INDEX($without[0][]; .[0] | tojson) as $before |
  [$with[0][] | . as $x | $before[.[0] | tojson] | select(.[1] != $x[1]) | {better: ($x[3] - .[3]), worse: ($x[4] - .[4])}] |
  length == 4 and all(.[]; (.better - (0.1 | log) | fabs) < 1e-9 and (.worse - (900.1 | log) | fabs) < 1e-9)' >/dev/null ||
  die "host $last does not count as one share"
exit $missing
