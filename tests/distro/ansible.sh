#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests the Ansible role on this machine: runs ansible-lint, then `ansible-playbook` into a temporary
# directory, with the wq-tunectl of BIN-DIR. Nothing is installed, and no service is touched.
# ansible.sh BIN-DIR
set -euo pipefail
bin=$(realpath "$1")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
complain() { printf 'FAILED: %s\n' "$*"; exit 1; }

export ANSIBLE_ROLES_PATH=$PWD/conf/ansible ANSIBLE_LOCAL_TEMP=$work/tmp ANSIBLE_NOCOLOR=1 HOME=$work
# A copy, because ansible-lint leaves a cache in the folder, and ignores files that git does not track.
mkdir "$work/lint"
cp -r conf/ansible "$work/lint/roles"
(cd "$work/lint" && git init --quiet && git add . && ansible-lint --offline --project-dir . roles/wq_tuned)

# A wrapper whose `history` prints the test's ledger.
mkdir "$work/bin"
cat >"$work/bin/wq-tunectl" <<END
#!/bin/sh
[ "\$1" != history ] || exec cat $work/ledger
exec $bin/wq-tunectl "\$@"
END
# The role reloads the host's daemon. This systemctl reports that there is none, and touches nothing.
printf '#!/bin/sh\nexit 5\n' >"$work/bin/systemctl"
chmod +x "$work/bin/wq-tunectl" "$work/bin/systemctl"
printf '[[workqueue]]\nmatch = "writeback"\nscope = "leave"\n' >"$work/50-fleet.toml"
cat >"$work/site.yml" <<END
- hosts: all
  gather_facts: true
  environment: {PATH: "$work/bin:/usr/bin:/bin"}
  roles:
    - role: wq_tuned
      wq_tuned_packages: []
      wq_tuned_enabled: null
      wq_tuned_policy_dir: $work/policy
      wq_tuned_policies: [$work/50-fleet.toml]
END
cat >"$work/ledgers.yml" <<END
- hosts: all
  environment: {PATH: "$work/bin:/usr/bin:/bin"}
  tasks:
    - ansible.builtin.include_role: {name: wq_tuned, tasks_from: ledgers}
      vars: {wq_tuned_ledgers: $work/ledgers}
END
play() { ansible-playbook --inventory host-1, --connection local "$@" >"$work/log" 2>&1; }
changed() { sed -nE 's/^host-1 .* changed=([0-9]+) .*/\1/p' "$work/log"; }

play --syntax-check "$work/site.yml" "$work/ledgers.yml" || complain "$(cat "$work/log")"
play --check "$work/site.yml" || complain "check mode: $(cat "$work/log")"
[ ! -e "$work/policy" ] || complain "check mode writes"
play --extra-vars '{"wq_tuned_canary": "1%"}' "$work/site.yml" || complain "$(cat "$work/log")"
[ "$(changed)" = 3 ] || complain "not three changes: $(cat "$work/log")"
"$bin/wq-tunectl" check "$work"/policy/*.toml || complain "the policy: $(cat "$work"/policy/*)"
grep -qx 'when = { canary = "1%" }' "$work/policy/05-canary.toml" || complain "the canaries: $(cat "$work/policy/05-canary.toml")"
play --extra-vars '{"wq_tuned_canary": "1%"}' "$work/site.yml" || complain "$(cat "$work/log")"
[ "$(changed)" = 0 ] || complain "the second run changes something: $(cat "$work/log")"
play "$work/site.yml" || complain "$(cat "$work/log")"
diff <(grep -v '^#' "$work/policy/05-canary.toml") <(grep -v '^#' conf/examples/05-canary.toml) || complain "not as the example"

cp "$work/policy/50-fleet.toml" "$work/before"
echo 'scope = "nonsense"' >>"$work/50-fleet.toml"
! play "$work/site.yml" || complain "a broken policy is installed"
cmp "$work/before" "$work/policy/50-fleet.toml" || complain "a broken policy replaced the one in force"

printf '{"v":1}\n{"v":1}\n' >"$work/ledger"
play "$work/ledgers.yml" || complain "$(cat "$work/log")"
cmp "$work/ledger" "$work/ledgers/host-1.jsonl" || complain "the ledger is not as it was"
: >"$work/ledger"
play "$work/ledgers.yml" || complain "$(cat "$work/log")"
[ "$(changed)" = 0 ] || complain "a host without a ledger: $(cat "$work/log")"
echo ok
