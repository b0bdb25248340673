# SPDX-License-Identifier: LGPL-2.1-or-later
# The pods that wq-tuned reads, and the pods of its model, are the pods that the kernel really made.
# timeout: 400
. lib.sh

some_workqueue
scopes=$(wq-tunectl plan --json | jq -r '.kernel.scopes[]')
case $guest_kernel in 6.* | 7.0) want=5 ;; *) want=6 ;; esac
check_eq "number of scopes on $guest_kernel" $want "$(wc -l <<<"$scopes")"

machine=$(wq-tunectl topology --json)
check_eq "where they are from" '{"differ":{},"source":"kernel","why":null}' "$(jq -cS .pods <<<"$machine")"
check_pods "$wq"

# The same for `topology`, which shows two of the scopes.
check_eq "LLCs of topology" "$(real_pods "$wq" cache)" "$(jq -r '.llcs[].cpus' <<<"$machine" | sort -uV)"
if grep -q cache_shard <<<"$scopes"; then
  check_eq "shards of topology" "$(real_pods "$wq" cache_shard)" "$(jq -r '.llcs[].shards[]' <<<"$machine" | sort -uV)"
fi
some_workqueue_done
