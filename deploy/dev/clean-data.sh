#!/usr/bin/env bash
# `make clean-data`: forgets the demo market of this clone: database, keys, log-ins, images and containers.
set -euo pipefail
cd "$(dirname "$0")"
source ./say.sh
source ./where.sh

mkdir -p "$here"
exec 9>"$here/run.lock"
flock --nonblock 9 || fail "the market of this clone runs; stop it first (Ctrl-C there, or 'make stop')."

./stop.sh parts 9>&-
./postgres.sh remove "$here/postgres" 0 9>&-
./engine.sh remove "$here/engine" 9>&-
for part in agent bin demo log state; do rm -rf "${here:?}/$part"; done
rm -rf "$(run_folder_of "$here")"
say "the demo's data are gone; 'make run' starts afresh. What was built stays in $CARGO_TARGET_DIR."
