#!/usr/bin/env bash
# `make run`: a working market on this machine, from nothing, until Ctrl-C.
# GPUMARKET_PORT chooses another port than 8080; CARGO_TARGET_DIR another build folder.
set -euo pipefail
cd "$(dirname "$0")"
source ./say.sh
source ./where.sh

port=${GPUMARKET_PORT:-8080}
market=http://127.0.0.1:$port
programs=$CARGO_TARGET_DIR/market
run=$(run_folder_of "$here")
steps=8
serving=false

source ./demo.sh

# --- one at a time ------------------------------------------------------------------------------------------------

[[ $port =~ ^[1-9][0-9]{0,4}$ && $port -lt 65536 ]] || fail "GPUMARKET_PORT is '$port': a port is a number from 1 to 65535."
mkdir -p "$here/log" "$run"
chmod 700 "$run"
exec 9>"$here/run.lock"
flock --nonblock 9 || fail "the market of this clone runs already; 'make stop' stops it."
printf '%d\n' $$ >"$run/runner.pid"

# --- the end, however it comes ------------------------------------------------------------------------------------

finish() {
  local code=$?
  trap '' INT TERM HUP
  trap - EXIT
  if $serving; then say "stopping; containers go on running"; fi
  ./stop.sh parts 9>&- || code=1
  rm -f "$run/runner.pid"
  if $serving; then say "stopped after $(say_duration $SECONDS); the data are in .local"; fi
  exit "$code"
}

# Ctrl-C is how a served market ends; before that it interrupts a start.
interrupted() {
  say
  if $serving; then exit 0; else exit 130; fi
}

trap finish EXIT
trap interrupted INT TERM HUP

# start_program NAME ARGS…: in the background, out of the reach of the terminal's Ctrl-C, with its own log.
start_program() {
  local name=$1 log=$here/log/${1#gpumarket-}.log
  shift
  if [[ -s $log ]]; then mv "$log" "$log.1"; fi
  setsid env --default-signal=INT,QUIT "$programs/$name" "$@" >"$log" 2>&1 </dev/null 9>&- &
  printf '%d\n' $! >"$run/$name.pid"
  # Its end is ours to report, not bash's.
  disown
}

program_runs() { kill -0 "$(cat "$run/$1.pid")" 2>/dev/null; }

# died NAME: say which, show why, stop all.
died() {
  say_tail "$here/log/${1#gpumarket-}.log"
  fail "$1 ended by itself; the market stops."
}

# wait_with PROGRAM SECONDS SENTENCE COMMAND…: until the command succeeds, for at most so long, while the program lives.
wait_with() {
  local program=$1 deadline=$((SECONDS + $2)) sentence=$3
  shift 3
  until "$@" >/dev/null 2>&1; do
    program_runs "$program" || died "$program"
    if ((SECONDS >= deadline)); then
      say_tail "$here/log/${program#gpumarket-}.log"
      fail "$sentence"
    fi
    sleep 0.2
  done
}

# need_space FOLDER: two GiB, or it would end in a worse way later.
need_space() {
  local folder=$1 free
  while [[ ! -d $folder ]]; do folder=$(dirname "$folder"); done
  free=$(df --output=avail -B1M "$folder" | tail -n 1)
  ((free >= 2048)) || fail "only $((free)) MiB are free on the disk of $1; the market needs 2048."
}

# --- the eight steps ----------------------------------------------------------------------------------------------

say_step 1 $steps "installing what this machine lacks"
./setup.sh run

say_step 2 $steps "checking port $port and the disk"
./stop.sh parts
if port_taken "$port"; then
  fail "port $port on 127.0.0.1 is in use: stop what uses it, or choose another with GPUMARKET_PORT=$(free_port $((port + 1))) make run."
fi
need_space "$here"
need_space "$CARGO_TARGET_DIR"

say_step 3 $steps "starting the container engine (Podman with runc)"
./engine.sh start "$here/engine"
./image.sh "$here/engine"
./engine.sh try "$here/engine" "$demo_image"

say_step 4 $steps "building (the first time takes some minutes)"
(cd "$repo" && cargo build --profile market --locked --bin gpumarket-server --bin gpumarket-agent --bin gpumarket 9>&-) ||
  fail "the build failed; the compiler's messages are above."

say_step 5 $steps "starting a private PostgreSQL and migrating it"
database_port=$(free_port 5480) || fail "no port is free between 5480 and 5679 for the private PostgreSQL."
./postgres.sh start "$here/postgres" "$database_port" durable
GPUMARKET_DATABASE_URL=$(./postgres.sh url "$here/postgres" "$database_port" gpumarket)
export GPUMARKET_DATABASE_URL
export GPUMARKET_LISTEN=127.0.0.1:$port GPUMARKET_PUBLIC_URL=$market GPUMARKET_STATE_DIR=$here/state
export GPUMARKET_PAYMENTS=sandbox GPUMARKET_ALLOW_SIMULATED=true GPUMARKET_HEARTBEAT_MS=2000
mkdir -p "$GPUMARKET_STATE_DIR"
chmod 700 "$GPUMARKET_STATE_DIR"
if ! "$programs/gpumarket-server" migrate >"$here/log/migrate.log" 2>&1; then
  say_tail "$here/log/migrate.log"
  fail "the database could not be migrated; if this clone went back in time, 'make clean-data' starts afresh."
fi

say_step 6 $steps "starting the server"
start_program gpumarket-server serve
wait_with gpumarket-server 60 "the server was not ready within 60 seconds." curl -fsS --max-time 5 "$market/readyz"

say_step 7 $steps "logging in the demo renter, provider and moderator"
: >"$demo_log"
demo_parties
demo_wrapper

say_step 8 $steps "starting an agent with eight simulated H100 and real containers"
since=$(date -u +%FT%T)
how=(--state "$here/agent" --simulate 8xh100-sxm --engine "$(./engine.sh socket "$here/engine")" --name demo-8xh100 --disk-path "$here")
if [[ -s $here/agent/identity.json ]]; then
  # The port may be another than last time.
  jq --arg server "$market" '.server = $server' "$here/agent/identity.json" >"$run/identity.json"
  cat "$run/identity.json" >"$here/agent/identity.json"
  rm -f "$run/identity.json"
  start_program gpumarket-agent run "${how[@]}"
else
  token=$(demo_token) || { say_tail "$demo_log" 8; fail "the demo provider got no token for its machine."; }
  GPUMARKET_ENROLLMENT_TOKEN=$token start_program gpumarket-agent join --server "$market" "${how[@]}"
fi
wait_with gpumarket-agent 90 "the machine was not verified within 90 seconds." demo_machine "$since"
demo_must "the demo's offer could not be made." demo_once offer demo_offer

serving=true
demo_greeting

# --- until Ctrl-C or a death --------------------------------------------------------------------------------------

beat=0
while true; do
  for name in gpumarket-server gpumarket-agent; do program_runs "$name" || died "$name"; done
  if ((beat++ % 5 == 0)); then
    ./postgres.sh alive "$here/postgres" "$database_port" ||
      fail "PostgreSQL ended by itself; the market stops. Its log: $(./postgres.sh log "$here/postgres" 0)"
    ./engine.sh alive "$here/engine" ||
      fail "the container engine's service ended by itself; the market stops. Its log: $(run_folder_of "$here/engine")/service.log"
  fi
  # In the background, so that a signal is not kept waiting.
  sleep 1 9>&- &
  wait $! || true
done
