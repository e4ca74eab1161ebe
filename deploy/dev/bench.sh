#!/usr/bin/env bash
# `make bench`: each measurement as a ratio to a yardstick of the same run, on a private PostgreSQL that is safe over
# a power cut. Prints a table and writes bench/latest.json.
# usage: bench.sh [--rows NAME,…] [--seconds N] [--rounds N] [--leases N]
#        rows: bookings ledger_batches ledger_copy ledger_single running_leases disk placement; all of them if none is named
set -euo pipefail
cd "$(dirname "$0")"
source ./say.sh
source ./where.sh

steps=4
own=$here/bench

mkdir -p "$here"
exec 9>"$here/bench.lock"
flock --nonblock 9 || fail "'make bench' runs already in this clone."

# shellcheck disable=SC2317 # run by the trap
finish() {
  local code=$?
  trap '' INT TERM HUP
  trap - EXIT
  ./postgres.sh remove "$own/postgres" 0 9>&- || code=1
  rm -rf "$own"
  exit "$code"
}

say_step 1 $steps "installing what this machine lacks"
./setup.sh bench
pgbench=$(postgres_bin)/pgbench
[[ -x $pgbench ]] || fail "pgbench is missing beside PostgreSQL's programs; Debian has it in the package postgresql."

say_step 2 $steps "building the release profile (the first time takes long)"
(cd "$repo" && cargo build --release --locked -p tests -p api --bin gpumarket-bench --bin gpumarket-server 9>&-) ||
  fail "the build failed; see above."

say_step 3 $steps "starting a durable PostgreSQL for this run"
trap finish EXIT
trap 'exit 130' INT TERM HUP
./postgres.sh remove "$own/postgres" 0
mkdir -p "$own"
port=$(free_port $((17432 + RANDOM % 2000))) || fail "no port is free for the measured PostgreSQL."
./postgres.sh start "$own/postgres" "$port" durable
GPUMARKET_TEST_DATABASE_URL=$(./postgres.sh url "$own/postgres" "$port")
export GPUMARKET_TEST_DATABASE_URL
# The settings of a market that this shell may know must not reach what is measured.
unset GPUMARKET_CONFIG GPUMARKET_DATABASE_URL GPUMARKET_STATE_DIR GPUMARKET_LISTEN GPUMARKET_HEARTBEAT_MS

say_step 4 $steps "measuring"
"$CARGO_TARGET_DIR/release/gpumarket-bench" "$GPUMARKET_TEST_DATABASE_URL" "$pgbench" "$repo/bench/latest.json" "$@" 9>&-
say "written to bench/latest.json"
