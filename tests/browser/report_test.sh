#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Reports in a headless Chromium: report_test.sh BIN-DIR REPORT-TREE OUT-DIR
#
# Pages, screenshots (light and dark, 1280 and 400 wide) and a printed page of each stay in OUT-DIR for
# inspection. Exits with 77 if Chromium is not installed.
set -uo pipefail
bin=$1 tree_maker=$2 out=$3
command -v chromium >/dev/null || { echo "chromium is not installed: no browser to test with"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out"
failed=0
complain() { printf 'FAILED: %s\n' "$*"; failed=1; }

# A fresh profile each time; nothing that would ask the network by itself.
browse() { # OPTION... URL
  local profile
  profile=$(mktemp -d "$work/profile.XXXXXX")
  timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --user-data-dir="$profile" \
    --enable-logging=stderr --v=0 "$@" 2>"$work/log"
  rm -rf "$profile"
}
console() { grep -a 'CONSOLE' "$work/log"; }

# Prints a page that has PAGE in a frame of WIDTH, and a script that measures the frame (both have the same
# origin). PAGE itself has no script and would not run one.
framed() { # PAGE WIDTH
  printf '<!DOCTYPE html><style>body{margin:0}iframe{border:0}</style><iframe width=%s height=3000 srcdoc="' "$2"
  sed 's/&/\&amp;/g; s/"/\&quot;/g' "$1"
  cat <<'END'
"></iframe><script>onload = () => {
  const page = document.querySelector("iframe").contentDocument;
  document.title = `width ${page.documentElement.scrollWidth} of ${page.documentElement.clientWidth}`;
  document.querySelector("iframe").remove();
}</script>
END
}
width_of() { # PAGE WIDTH: "width N of WIDTH"
  framed "$1" "$2" >"$work/framed.html"
  browse --dump-dom "file://$work/framed.html" | grep -ao 'width [0-9]* of [0-9]*' | head -n 1
}

# The functions that look for faults must find them in a bad page.
printf '<!DOCTYPE html><title>t</title><div style="width:2000px">wide</div><img src="http://localhost/x"><script>nothing()</script>' >"$work/bad.html"
browse --dump-dom "file://$work/bad.html" >/dev/null
console >/dev/null || complain "an error of a script is not seen: $(cat "$work/log")"
[ "$(width_of "$work/bad.html" 390)" = "width 2008 of 390" ] || complain "a wide page is not seen: $(width_of "$work/bad.html" 390)"

check() { # NAME CORES
  local page=$out/$1.html cores width errors
  browse --dump-dom "file://$page" >"$work/dom"
  if errors=$(console); then complain "$1: $errors"; fi
  cores=$(grep -ao ' data-core="' "$work/dom" | wc -l)
  [ "$cores" = "$2" ] || complain "$1: $cores cores are drawn, the machine has $2"
  if grep -aqiE 'https?:|url\(|@import|<(img|script|link|base|iframe|object|embed|audio|video|source|form)' "$work/dom"; then
    complain "$1: it would load something"
  fi
  for width in 390 400 768 1280; do
    [ "$(width_of "$page" $width)" = "width $width of $width" ] || complain "$1: at $width: $(width_of "$page" $width)"
  done
  [ "$(stat -c %s "$page")" -lt 2000000 ] || complain "$1: $(stat -c %s "$page") bytes"
}
picture() { # NAME WIDTH HEIGHT
  local theme scheme
  framed "$out/$1.html" "$2" | sed 's/document.querySelector("iframe").remove();//' | sed "s/height=3000/height=$3/" >"$work/framed.html"
  for theme in light dark; do
    scheme=1
    [ $theme = light ] || scheme=0
    browse --blink-settings=preferredColorScheme=$scheme --window-size="$(($2 < 520 ? 520 : $2)),$3" \
      --screenshot="$out/$1-$2-$theme.png" "file://$work/framed.html" >/dev/null
    [ -s "$out/$1-$2-$theme.png" ] || complain "$1: no picture"
  done
  cmp -s "$out/$1-$2-light.png" "$out/$1-$2-dark.png" && complain "$1: dark is light"
}

"$tree_maker" "$work/tree" || { complain "no tree"; exit 1; }
sources=("two-sockets=fsroot:$work/tree" "eight-cpus=synthetic:pack:8 l3:1 core:1 pu:1" "large=synthetic:pack:32 l3:16 core:8 pu:2"
  "zen4=synthetic:pack:2 l3:12 core:8 pu:2" "one-cpu=synthetic:pu:1" "shared-llc=synthetic:l3:1 pack:2 core:2 pu:1")
for source in "${sources[@]}"; do
  name=${source%%=*} source=${source#*=}
  "$bin/wq-tunectl" report -o "$out/$name.html" --topology "$source" 2>"$work/err" || { complain "$name: $(cat "$work/err")"; continue; }
  check "$name" "$("$bin/wq-tunectl" topology --topology "$source" --json | jq .cores)"
  picture "$name" 1280 2600
  picture "$name" 400 3800
  browse --no-pdf-header-footer --print-to-pdf="$out/$name.pdf" "file://$out/$name.html"
  [ "$(head -c 5 "$out/$name.pdf")" = %PDF- ] || complain "$name: is not printed"
done
[ "$(grep -c 'class="dots"' "$out/two-sockets.html")" = 12 ] || complain "the latest verdicts are not drawn"
ls "$out"
exit $failed
