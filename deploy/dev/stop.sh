#!/usr/bin/env bash
# Stops the market of this clone. Data stay; containers go on running: a stopped market ends no lease.
# usage: stop.sh          asks a running `make run` to stop; then stops what a killed one may have left behind
#        stop.sh parts    only the latter: what `make run` itself does at its end and at its start
set -euo pipefail
cd "$(dirname "$0")"
source ./say.sh
source ./where.sh

run=$(run_folder_of "$here")

# Process ids are reused: it must be the program that we think it is.
is_ours() { [[ $(readlink "/proc/$1/exe" 2>/dev/null) == */"$2"* ]]; }

# stop_program NAME SECONDS: asks, waits, insists.
stop_program() {
  local name=$1 pid
  pid=$(cat "$run/$name.pid" 2>/dev/null) || return 0
  if [[ -n $pid ]] && is_ours "$pid" "$name"; then
    kill -TERM "$pid" 2>/dev/null || true
    wait_for "$2" eval "! is_ours $pid $name" || kill -KILL "$pid" 2>/dev/null || true
  fi
  rm -f "$run/$name.pid"
}

if [[ ${1:-} != parts ]]; then
  runner=$(cat "$run/runner.pid" 2>/dev/null || true)
  if [[ -n $runner ]] && [[ $(tr '\0' ' ' <"/proc/$runner/cmdline" 2>/dev/null) == *run.sh* ]]; then
    say "stopping the market of $repo"
    kill -TERM "$runner"
    wait_for 60 eval "! kill -0 $runner" || fail "'make run' (process $runner) does not stop."
  fi
fi

stop_program gpumarket-agent 5
stop_program gpumarket-server 20
./postgres.sh stop "$here/postgres" 0
./engine.sh stop "$here/engine"
