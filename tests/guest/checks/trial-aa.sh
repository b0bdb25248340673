# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Both arms make the same pools, so whatever a trial sees is noise: of 20, none is reverted.
# timeout: 1800
# shellcheck source=tests/guest/lib.sh
. /usr/lib/wq-tests/lib.sh

crypt_open c0
wq=$(wq_of c0)
load_on c0
trap load_off EXIT
trial_policy leave 'alpha = 0.001'
systemctl start wq-tuned
for i in $(seq 1 20); do
  wq-tunectl trial "$wq" --arm cache --json 2>/run/wq-tests/progress | jq -c '[.trial, .verdict, .reason, .pairs, .dropped, .lost, .effect_percent, .interval_percent, .e_regressed, .e_improved]'
  check_eq "trials" "$i" "$(jq '.verdicts | length' $verdicts)"
  # Each is a first trial: with less and less alpha none could be wrong.
  if [ "$i" -lt 20 ]; then
    jq '.begun = []' $verdicts >/run/wq-tests/verdicts.json
    systemctl stop wq-tuned
    mv /run/wq-tests/verdicts.json $verdicts
    systemctl start wq-tuned
  fi
done
check_eq "reverted" 0 "$(jq '[.verdicts[] | select(.verdict == "regressed")] | length' $verdicts)"
check_eq "judged" 20 "$(jq '[.verdicts[] | select(.judged and .pairs >= 8)] | length' $verdicts)"
systemctl stop wq-tuned
