#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Boots one guest, which runs the checks:
#   boot.sh --kernel 6.12 --smp TOPOLOGY --stage DIR --results DIR
#           [--append "..."] [--timeout SECONDS] [--stream] [--icount] [--tree peers|distro|trixie]
#           [--machine-args "..."] [--arch arm64] [--caches L2,L3] [--acpi] [--bare] CHECK...
#
# --caches: the device tree has caches: one L2 per L2 CPUs and one L3 per L3 CPUs, 0 for none (arm64).
# --acpi: boots by UEFI and ACPI instead of a device tree (arm64).
# --bare: no systemd, udev or D-Bus: only the checks run, a few seconds after the kernel has started.
# --icount: the guest's clock counts instructions, 1 ns each, at any load of this machine; CPUs take turns.
# --machine-args: further arguments for QEMU, such as -numa and its memory objects.
#
# DIR/CHECK.out has the output of the check, DIR/CHECK.rc its exit code. Files of an earlier boot are removed
# first. The exit code of boot.sh is only about the harness: 0 = the guest booted, ran every check and shut
# down; the results of the checks are in their files. If a guest oopses, panics or hangs, boot.sh prints that,
# fails, and does not try again.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/common.sh"

tree=guest append="" machine_args=() stream=no stage="" results="" kernel="" smp="" deadline=900 caches="" acpi=no bare=no icount=no
while [ $# -gt 0 ]; do
  case $1 in
    --kernel) kernel=$2; shift 2 ;;
    --smp) smp=$2; shift 2 ;;
    --append) append=$2; shift 2 ;;
    --stage) stage=$2; shift 2 ;;
    --results) results=$2; shift 2 ;;
    --timeout) deadline=$2; shift 2 ;;
    --stream) stream=yes; shift ;;
    --tree) tree=$2; shift 2 ;;
    --machine-args) read -ra machine_args <<<"$2"; shift 2 ;;
    --arch) use_arch "$2"; shift 2 ;;
    --caches) caches=$2; shift 2 ;;
    --acpi) acpi=yes; shift ;;
    --bare) bare=yes; shift ;;
    --icount) icount=yes; shift ;;
    -*) die "unknown option $1" ;;
    *) break ;;
  esac
done
: "${kernel:?}" "${smp:?}" "${stage:?}" "${results:?}" "${1:?no check named}"

kernel_dir=$(kernel_folder "$kernel")
modules=$kernel_dir/modules.cpio
tree=$(tree_file "$tree")
{ [ -e "$kernel_dir" ] && [ -e "$tree" ]; } || die "kernel $kernel or the guest tree is not in the cache: run ./dev fetch [--peers|--distro|--trixie|--arm64]"
qemu_is_good || die "QEMU 10 or later is needed: run ./dev fetch"

rm -rf "$results"
mkdir -p "$results"
work=$(mktemp -d /tmp/wq-tuned-guest.XXXXXX)
qemu_pid=""
tidy() {
  [ -z "$qemu_pid" ] || kill "$qemu_pid" 2>/dev/null || true
  rm -rf "$work"
}
trap tidy EXIT
trap 'exit 130' INT TERM

# The overlay: the installed project, the runner, and the checks of this boot.
overlay=$work/overlay
lib=$overlay/usr/lib/wq-tests
mkdir -p "$overlay"
cp -a "$stage/." "$overlay/"
mkdir -p "$lib/checks" "$overlay/etc/systemd/system/multi-user.target.wants"
cp "$guest_dir"/{lib,runner,bare,selinux-init}.sh "$lib/"
for check in "$@"; do cp "$guest_dir/checks/$check.sh" "$lib/checks/"; done
printf '%s\n' "$@" >"$lib/todo"
{
  printf 'guest_kernel=%q\nguest_release=%q\n' "$kernel" "$(cat "$kernel_dir/release")"
  printf 'guest_smp=%q\nguest_append=%q\nguest_port=/dev/%q\nguest_bare=%q\n' "$smp" "$append" "$port" "$bare"
} >"$lib/guest.env"
cp "$guest_dir/wq-tests.service" "$overlay/etc/systemd/system/"
ln -s ../wq-tests.service "$overlay/etc/systemd/system/multi-user.target.wants/wq-tests.service"
(cd "$overlay" && find . -mindepth 1 -print0 | cpio --null --quiet -R 0:0 -o -H newc) >"$work/overlay.cpio"
cat "$tree" "$modules" "$work/overlay.cpio" >"$work/initrd"
[ $bare = no ] || kernel_words+=" rdinit=/usr/lib/wq-tests/bare.sh"

hardware=("${machine_words[@]}" -m 3G -smp "$smp" "${machine_args[@]}")
[ $icount = no ] || hardware=("${hardware[@]/thread=multi/thread=single}" -icount "shift=0,sleep=off")
if [ -n "$caches" ]; then
  "$arm64_dir/name-caches.sh" "$work/caches.dtb" "${smp%%,*}" "${caches%,*}" "${caches#*,}" "$qemu" "${hardware[@]}"
  hardware+=(-dtb "$work/caches.dtb")
fi
if [ $acpi = yes ]; then
  hardware+=(-bios "$uefi")
  kernel_words+=" acpi=force"
fi

# The console goes to a file. The runner's messages come over the second serial port. Its requests to the
# machine (CPU hot-add) go to QEMU's monitor.
mkfifo "$work/serial" "$work/monitor.in" "$work/monitor.out"
start_guest() {
  rm -f "$results"/*
  cat "$work/monitor.out" >"$results/monitor.log" &
  "$qemu" "${hardware[@]}" -display none -no-reboot -nic none -kernel "$kernel_dir/vmlinuz" -initrd "$work/initrd" \
    -append "console=$console quiet panic=-1 nowatchdog mitigations=off $kernel_words wq_tests.machine=$machine $append" \
    -serial "file:$results/console.log" -serial stdio \
    -chardev pipe,id=monitor,path="$work/monitor" -mon chardev=monitor,mode=readline \
    </dev/null >"$work/serial" 2>"$results/qemu.log" &
  qemu_pid=$!
  exec 3<"$work/serial" 4>"$work/monitor.in"
  start=$SECONDS done=no ready=no check="" problem="" timers="" broken=no
}

end_guest() {
  kill "$qemu_pid" 2>/dev/null || true
  wait "$qemu_pid" 2>/dev/null || true
  qemu_pid=""
  exec 3<&- 4>&-
}

qemu_said() { sed 's/^/  qemu: /' "$results/qemu.log" | grep -v "TCG doesn't support" | tail -n 5 || true; }

# Handles one line of the runner.
heard() { # LINE
  local line=$1 name rc seconds
  case $line in
    '| '*)
      printf '%s\n' "${line#| }" >>"$results/$check.out"
      [ $stream = no ] || printf '%s\n' "${line#| }"
      ;;
    '@timer '*)
      [ -n "$timers" ] || first_timer=$SECONDS
      timers+=" ${line#@timer }"
      ;;
    '@ready'*) ready=yes && say "booted kernel $kernel, -smp $smp in $((SECONDS - start)) s" ;;
    '@begin '*) check=${line#@begin } ;;
    '@end '*)
      read -r _ name rc seconds <<<"$line"
      printf '%s\n' "$rc" >"$results/$name.rc"
      [ $stream = yes ] || say "$name: $([ "$rc" = 0 ] && echo passed || echo "FAILED ($rc)") in $seconds s"
      ;;
    '@monitor '*) printf '%s\n' "${line#@monitor }" >&4 ;;
    '@warn '*) printf '%s\n' "${line#@warn }" >>"$results/kernel-warnings.log" ;;
    '@abort') kill -ABRT "$qemu_pid" ;;
    '@done') done=yes ;;
    *) printf '%s\n' "$line" >>"$results/stray.log" ;;
  esac
}

# Returns when the guest has shut down, or when `problem` gives a reason to stop waiting.
follow_guest() {
  local line begun="" # the first part of a line that a timeout cut in two
  while [ -z "$problem" ]; do
    if IFS= read -r -t 5 -u 3 line; then
      heard "$begun$line"
      begun=""
    elif [ $? -le 128 ]; then
      break
    elif begun+=$line && [ "$ready" = no ] && [ -n "$timers" ] && [ $((SECONDS - first_timer)) -ge 60 ]; then
      broken=yes problem="of its CPUs only these got a timer interrupt:$timers"
    elif grep -aqE 'rcu_.*kthread timer wakeup didn.t happen' "$results/console.log"; then
      broken=yes problem="a CPU gets no timer interrupt any more${check:+ (in or after $check)}"
    fi
    [ $((SECONDS - first_start)) -lt "$deadline" ] ||
      problem="gave up after $((SECONDS - first_start)) s${check:+ (in or after $check)}"
  done
}

# Sometimes the emulator starts a CPU whose timer never fires, seems to execute a breakpoint that the kernel
# has already removed, or crashes (RESULTS.md, "The emulator"). If this happens before the first check, when
# no program of ours runs, boot.sh throws the machine away and starts another. A problem during a check is
# never tried again.
first_start=$SECONDS
for machine in 1 2 3; do
  start_guest
  follow_guest
  if [ "$ready" = no ] && oops=$(grep -aEm 1 'Oops: int3' "$results/console.log"); then
    broken=yes problem="its kernel: $oops"
  elif [ -z "$problem" ] && [ "$done" = no ]; then
    rc=0
    wait "$qemu_pid" || rc=$?
    [ "$rc" -le 128 ] || broken=yes # QEMU died by a signal; if the kernel panics, it exits with 0
    problem="QEMU ended early, exit code $rc${check:+ (in or after $check)}"
  fi
  if [ "$broken" = no ] || [ "$ready" = yes ] || [ "$machine" = 3 ]; then break; fi
  say "threw away a machine of the emulator's: $problem"
  qemu_said
  end_guest
done
if [ -z "$problem" ]; then
  wait "$qemu_pid" || problem="QEMU failed"
  qemu_pid=""
fi
if oops=$(grep -aEm 1 'Oops|\bBUG[: ]|Kernel panic' "$results/console.log"); then problem="its kernel: $oops"; fi
# A quiet console does not show warnings; the runner sends those of dmesg. (From 6.19 on, the CPU comes after
# the location.)
if [ -z "$problem" ] && oops=$(grep -aEm 1 'WARNING: (CPU: |.*CPU#)' "$results/kernel-warnings.log" 2>/dev/null); then problem="its kernel: $oops"; fi
if [ -n "$problem" ]; then
  say "GUEST FAILED, kernel $kernel, -smp $smp: $problem"
  qemu_said
  tail -n 40 "$results/console.log" | sed 's/^/  console: /'
  exit 1
fi
[ $stream = yes ] || say "shut down after $((SECONDS - start)) s in all"
