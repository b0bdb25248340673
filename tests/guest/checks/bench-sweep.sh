# SPDX-License-Identifier: LGPL-2.1-or-later
# One size of cache_shard for sweep.sh: `wq-tunectl bench` reports the kernel's pools. Sends the result to the
# host.
# timeout: 420
. lib.sh

check_eq "the kernel has the size" "$(sed -nE 's/.*cache_shard_size=([0-9]+).*/\1/p' <<<"$guest_append")" \
  "$(cat /sys/module/workqueue/parameters/cache_shard_size)"
crypt_open c0
pods=$(real_pods "$(wq_of c0)" cache_shard) || fail "$pods"
crypt_close c0
note "the kernel's shards: ${pods//$'\n'/ }"

result=/run/wq-tests/bench.json
wq-tunectl bench --seconds 1 --rounds 6 --load write --json >$result || fail "exit code $?"
check_eq "all counted, to the end" "6  " "$(jq -r '"\(.rounds) \(.missing) \(.stopped)"' $result)"
check_eq "shards in the result" "$(wc -l <<<"$pods")" "$(jq '.scopes[] | select(.scope == "cache_shard").pools' $result)"
check_eq "and as the kernel counts them" "$(wc -l <<<"$pods")" "$(jq '.scopes[] | select(.scope == "cache_shard").median.pools' $result)"
bring_out $result
