#!/usr/bin/env bash
# `make check`: format, lints, the laws of the house, spelling, shell scripts. All steps run, also after a failure.
set -euo pipefail
cd "$(dirname "$0")"
source ./say.sh
source ./where.sh

./setup.sh check
cd "$repo"

output=$(mktemp)
trap 'rm -f "$output"' EXIT
failed=()

# check NAME COMMAND…: one line with its time; what it printed only if it failed.
check() {
  local name=$1 begun=$SECONDS verdict=ok
  shift
  printf '  %-28s' "$name"
  if ! "$@" >"$output" 2>&1 </dev/null; then
    verdict=FAILED
    failed+=("$name")
  fi
  printf '%-7s %s\n' "$verdict" "$(say_duration $((SECONDS - begun)))"
  if [[ $verdict == FAILED ]]; then tail -n 200 "$output" | say_indented; fi
}

# codespell: a Debian package, there in seconds. What it takes for a mistake wrongly goes into words.txt.
# Files of the repository, also those not committed yet; data and lock files are other people's words.
spelling() {
  git ls-files -co --exclude-standard -- ':!:*.lock' ':!:*-lock.json' ':!:*/data/*' ':!:*.svg' ':!:*.snap' ':!:deploy/dev/words.txt' |
    while read -r file; do if [[ -f $file ]]; then printf '%s\n' "$file"; fi; done |
    xargs -r -d '\n' codespell --ignore-words deploy/dev/words.txt
}

scripts() { shellcheck -x -P SCRIPTDIR deploy/dev/*.sh .ci/run; }

check "format" cargo fmt --all -- --check
check "spelling" spelling
check "shell scripts" scripts
check "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
check "laws of the house" cargo nextest run -p tests --locked -E 'test(house::)'

if ((${#failed[@]})); then
  printf -v list '%s, ' "${failed[@]}"
  fail "make check: ${list%, } failed; see above ($(say_duration $SECONDS))."
fi
say "make check: all clean ($(say_duration $SECONDS))."
