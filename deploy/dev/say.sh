# shellcheck shell=bash
# Messages of the development scripts: what a person sees, in one voice. Sourced, never run.

say_started=$SECONDS

say() { printf '%s\n' "$*"; }

# Indents what another program prints, so that it reads as part of the step above it.
say_indented() { sed -u 's/^/      /'; }

# 75 -> 1m15s
say_duration() {
  local s=$1
  if ((s >= 60)); then printf '%dm%02ds' $((s / 60)) $((s % 60)); else printf '%ds' "$s"; fi
}

# say_step 3 8 "building": opens a numbered step and shows how long the whole has taken so far.
say_step() {
  printf '[%d/%d] %s  (%s)\n' "$1" "$2" "$3" "$(say_duration $((SECONDS - say_started)))"
}

# One clear sentence on standard error.
say_wrong() { printf 'gpumarket: %s\n' "$*" >&2; }

fail() {
  say_wrong "$*"
  exit 1
}

# say_tail FILE: the last lines of a log, for a failure report.
say_tail() {
  [[ -s $1 ]] || return 0
  printf -- '--- last lines of %s\n' "$1" >&2
  tail -n "${2:-15}" "$1" | sed 's/^/    /' >&2
}
