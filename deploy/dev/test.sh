#!/usr/bin/env bash
# `make test`: every test, on a private PostgreSQL and a private container engine that exist for this run only.
# usage: test.sh [ARGS…]     ARGS for cargo nextest run instead of --workspace, e.g. test.sh -p store
set -euo pipefail
cd "$(dirname "$0")"
source ./say.sh
source ./where.sh

steps=4
own=$here/test

mkdir -p "$here"
exec 9>"$here/test.lock"
flock --nonblock 9 || fail "'make test' runs already in this clone."

# Also what a killed run left behind: its folders have fixed names.
remove_services() {
  ./postgres.sh remove "$own/postgres" 0
  ./engine.sh remove "$own/engine"
  rm -rf "$own"
}

# shellcheck disable=SC2317 # run by the trap
finish() {
  local code=$?
  trap '' INT TERM HUP
  trap - EXIT
  remove_services >/dev/null 9>&- || code=1
  exit "$code"
}

# Do comments hold Rust examples? ``` opens one, ```text and the like do not.
has_doctests() {
  # shellcheck disable=SC2016 # awk's own dollars
  find "$repo" -name '*.rs' -path '*/src/*' -not -path '*/.local/*' -not -path '*/target/*' -print0 | xargs -0 awk '
    FNR == 1 { inside = 0 }
    /^[ \t]*\/\/[\/!][ \t]*```/ {
      if (inside) { inside = 0; next }
      inside = 1
      sub(/^[ \t]*\/\/[\/!][ \t]*```[ \t]*/, "")
      if ($0 == "" || $0 ~ /^(rust|should_panic|no_run|compile_fail|edition)/) found = 1
    }
    END { exit !found }'
}

say_step 1 $steps "installing what this machine lacks"
./setup.sh test

say_step 2 $steps "starting PostgreSQL and the container engine for this run"
trap finish EXIT
trap 'exit 130' INT TERM HUP
remove_services
mkdir -p "$own"
port=$(free_port $((15432 + RANDOM % 2000))) || fail "no port is free for the tests' PostgreSQL."
./postgres.sh start "$own/postgres" "$port" fast
./engine.sh start "$own/engine"
./image.sh "$own/engine"
./engine.sh try "$own/engine" localhost/gpumarket/busybox:1

GPUMARKET_TEST_DATABASE_URL=$(./postgres.sh url "$own/postgres" "$port")
GPUMARKET_TEST_ENGINE=$(./engine.sh socket "$own/engine")
export GPUMARKET_TEST_DATABASE_URL GPUMARKET_TEST_ENGINE
# The settings of a market that this shell may know must not reach the tests.
unset GPUMARKET_SERVER GPUMARKET_API_KEY GPUMARKET_CONFIG GPUMARKET_PROFILE GPUMARKET_PASSWORD GPUMARKET_DATABASE_URL GPUMARKET_ENGINE
# The same on every machine, so that a leak of file handles fails everywhere.
ulimit -Sn 4096 2>/dev/null || true

say_step 3 $steps "testing the examples in comments"
code=0
if has_doctests; then
  (cd "$repo" && cargo test --doc --workspace --locked --quiet 9>&-) || code=$?
else
  say "    there are none"
fi

say_step 4 $steps "building and running the tests"
# The integration tests run the binaries as processes; nextest alone would not build them.
(cd "$repo" && cargo build --workspace --bins --locked 9>&-) || exit 1
(($#)) || set -- --workspace
(cd "$repo" && cargo nextest run --locked "$@" 9>&-) || code=$?
exit "$code"
