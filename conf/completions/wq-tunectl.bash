# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of wq-tunectl(1) for bash. The program itself computes the words (daemon/ctl/command.h, complete()).

_wq_tunectl() {
  local line=${COMP_LINE:0:COMP_POINT} part="" whole kept offer
  local -a words
  COMPREPLY=()
  # Split only at blanks: bash also splits the names of workqueues at each ':'.
  read -ra words <<<"$line"
  case $line in
    *[[:blank:]]) ;;
    *) part=${words[-1]} && unset 'words[-1]' ;;
  esac
  while IFS= read -r offer; do
    case $offer in
      :nospace) compopt -o nospace 2>/dev/null ;;
      :command) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- "$part") ;;
      :file\ * | :dir\ *)
        compopt -o filenames 2>/dev/null
        kept=${offer#* }
        case $offer in :file*) offer=-f ;; *) offer=-d ;; esac
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -P "$kept" "$offer" -- "${part#"$kept"}")
        ;;
      *) COMPREPLY+=("${offer%%$'\t'*}") ;;
    esac
  done < <(wq-tunectl --complete "${words[@]:1}" "$part" 2>/dev/null)
  # Bash replaces only the text after the last '=' or ':' by the reply.
  whole=${part##*[=:]}
  kept=${part%"$whole"}
  COMPREPLY=("${COMPREPLY[@]#"$kept"}")
}
complete -F _wq_tunectl wq-tunectl
