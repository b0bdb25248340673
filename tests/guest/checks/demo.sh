# SPDX-License-Identifier: LGPL-2.1-or-later
# The guest's part of `./dev demo`; not a test.
# timeout: 400
. lib.sh

rounds=6 seconds=4
step() { printf '\n[guest] %s\n' "$*"; }
median_of() { printf '%s\n' "$@" | sort -n | awk '{v[NR] = $1} END {print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'; }
spread_of() { printf '%s\n' "$@" | sort -n | sed -n '1p;$p' | paste -sd- ; }

step "a policy: set the plan first, and leave the kernel's default scope alone"
mkdir -p /etc/wq-tuned/wq-tuned.toml.d
tee /etc/wq-tuned/wq-tuned.toml.d/demo.toml <<<$'[default_scope]\nmanage = false\n[[workqueue]]\nmatch = "*"\nscope = "plan"'

step "systemctl enable --now wq-tuned"
systemctl enable --now wq-tuned
systemctl --no-pager --lines 0 status wq-tuned | sed -n '1,6p'

step "a dm-crypt device: its workqueue appears, and the daemon sees it"
crypt_c0
sleep 1
note "$wq: $(scope_of "$wq")"
wq-tunectl status

step "throughput of two writers on it, in turns without and with wq-tuned, $rounds times (MB/s)"
before=() after=() gains=()
for round in $(seq "$rounds"); do
  systemctl stop wq-tuned
  without="$(scope_of "$wq")"
  before+=("$(load_mbs c0 "$seconds" 2)")
  systemctl start wq-tuned
  sleep 0.5
  with="$(scope_of "$wq")"
  after+=("$(load_mbs c0 "$seconds" 2)")
  gains+=("$(awk -v b="${before[-1]}" -v a="${after[-1]}" 'BEGIN {print (a / b - 1) * 100}')")
  printf '  %s/%s   without: %s at "%s"   with: %s at "%s"\n' "$round" "$rounds" \
    "${before[-1]}" "$without" "${after[-1]}" "$with"
  systemctl reset-failed wq-tuned 2>/dev/null || true # the start limit must not stop the demo
done
printf '  median (spread) without: %s (%s), with: %s (%s); median of the %s gains: %+.0f%%\n' \
  "$(median_of "${before[@]}")" "$(spread_of "${before[@]}")" \
  "$(median_of "${after[@]}")" "$(spread_of "${after[@]}")" "$rounds" "$(median_of "${gains[@]}")"

step "systemctl stop wq-tuned: all is as the kernel had it"
systemctl stop wq-tuned
note "$wq: $(scope_of "$wq")"
wq-tunectl status || note "(exit code $?: no daemon)"
crypt_close c0
