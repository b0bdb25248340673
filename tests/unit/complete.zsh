# SPDX-License-Identifier: LGPL-2.1-or-later
# What zsh offers at the end of LINE, one word a line: zsh -f complete.zsh COMPLETIONS-DIR LINE. $WQ_ZCOMPDUMP is
# compinit's cache, which saves most of the time from the second call on.
# Completion works in an interactive shell alone: one on a pseudo-terminal, whose compadd prints what it is given.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1= PS2= fpath=(${(q)1} \$fpath)"
zpty -w shell '
autoload -Uz compinit && compinit -u -d "$WQ_ZCOMPDUMP"
zstyle ":completion:*" verbose no
compadd() {
  local -a hits
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  builtin compadd -A hits "$@"
  print -rl -- "offer:"${^hits}
  builtin compadd "$@"
}
show() { print; _main_complete; print end-of-offers; exit }
zle -C show complete-word show
bindkey "^I" show
print ready-to-complete'
zpty -r shell answer '*[^ ]ready-to-complete*' || zpty -r shell answer '*ready-to-complete*'
zpty -w -n shell "$2"$'\t'
zpty -r shell answer '*end-of-offers*'
print -r -- "$answer" | tr -d '\r' | sed -n 's/.*offer://p'
zpty -d shell
