#!/usr/bin/env bash
# A private PostgreSQL cluster, run by a user that is not root, reachable on loopback and a socket in its folder.
# usage: postgres.sh start DIR PORT [durable|fast]   durable (default): safe over a power cut; fast: for tests, not safe
#        postgres.sh stop DIR PORT                   stops it; the data stay
#        postgres.sh crash DIR PORT                  stops it at once, without a word to anybody, as a power cut would
#        postgres.sh url DIR PORT [DATABASE]         prints postgres://…, for a superuser without a password; the cluster
#                                                    has the databases postgres (default) and gpumarket
#        postgres.sh alive DIR PORT                  succeeds if it runs
#        postgres.sh log DIR PORT                    prints where its log is
#        postgres.sh remove DIR PORT                 stops it and removes its data
# Anyone on this machine can connect: it is for development and tests only.
set -euo pipefail
scripts=$(cd "$(dirname "$0")" && pwd)
source "$scripts/say.sh"
source "$scripts/where.sh"

verb=${1:?usage: postgres.sh start|stop|crash|url|alive|log|remove DIR PORT}
asked=$(realpath -m "${2:?usage: postgres.sh $verb DIR PORT}")
port=${3:?usage: postgres.sh $verb DIR PORT}
option=${4:-}

# PostgreSQL refuses to run as root: root lends the work to the system user that Debian's package made.
as_owner() {
  if is_root; then
    (cd / && exec setpriv --reuid=postgres --regid=postgres --init-groups env HOME=/ "$@")
  else
    "$@"
  fi
}

# The folder asked for, or, where user postgres may not enter its parents (a clone under /root), one under /var/lib.
choose_folder() {
  local parent=$asked
  folder=$asked
  is_root || return 0
  id postgres >/dev/null 2>&1 || fail "the system user 'postgres' is missing; deploy/dev/setup.sh installs it with PostgreSQL."
  while [[ ! -d $parent ]]; do parent=$(dirname "$parent"); done
  if ! as_owner test -x "$parent"; then
    folder=/var/lib/gpumarket/$(short_of "$asked")
    if [[ $verb == start && ! -d $folder ]]; then say "    user postgres may not enter $parent: the cluster is kept in $folder"; fi
  fi
}

make_cluster() {
  [[ -s $folder/data/PG_VERSION ]] && return 0
  mkdir -p "$folder"
  if is_root; then chown postgres: "$folder"; fi
  chmod 700 "$folder"
  # A start that was cut short leaves half a cluster; PG_VERSION above tells a whole one only after the move.
  as_owner rm -rf "$folder/data.new"
  as_owner "$bin/initdb" --pgdata="$folder/data.new" --username=postgres --auth=trust --encoding=UTF8 \
    --locale=C.UTF-8 --no-instructions >"$log" 2>&1 || { say_tail "$log"; fail "PostgreSQL could not make a cluster in $folder."; }
  as_owner mv "$folder/data.new" "$folder/data"
}

answers() { "$bin/pg_isready" --quiet --host=127.0.0.1 --port="$port"; }

runs() { as_owner "$bin/pg_ctl" status --pgdata="$folder/data" >/dev/null 2>&1; }

listens_on() { as_owner sed -n 4p "$folder/data/postmaster.pid"; }

options() {
  local all=(-p "$port" -c listen_addresses=127.0.0.1 -c max_connections=200 -c checkpoint_timeout=2min
    -c max_wal_size=1GB -c log_min_messages=warning -c log_line_prefix='%m\ [%p]\ ')
  # A socket's path has at most 107 bytes.
  if ((${#folder} < 85)); then all+=(-c "unix_socket_directories=$folder"); else all+=(-c unix_socket_directories=); fi
  if [[ $option == fast ]]; then all+=(-c fsync=off -c full_page_writes=off -c synchronous_commit=off); fi
  printf '%s ' "${all[@]}"
}

start() {
  [[ ${option:=durable} =~ ^(durable|fast)$ ]] || fail "postgres.sh start DIR PORT [durable|fast], not '$option'."
  bin=$(postgres_bin) || fail "PostgreSQL is not installed; deploy/dev/setup.sh installs it."
  choose_folder
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  make_cluster
  local data_version server_version
  data_version=$(as_owner cat "$folder/data/PG_VERSION")
  server_version=$("$bin/postgres" --version | sed -E 's/^[^0-9]*([0-9]+).*/\1/')
  [[ $data_version == "$server_version" ]] ||
    fail "the cluster in $folder was made by PostgreSQL $data_version and $server_version is installed: upgrade it with pg_upgrade, or forget it with 'make clean-data'."
  if runs; then
    if [[ $(listens_on) == "$port" ]] && answers; then return; fi
    say "    the cluster in $folder does not answer on port $port: restarting it"
    stop
  fi
  if port_taken "$port"; then fail "port $port, meant for the private PostgreSQL, is in use."; fi
  as_owner "$bin/pg_ctl" start --silent --no-wait --pgdata="$folder/data" --log="$folder/postgres.log" \
    --options="$(options)" </dev/null >"$log" 2>&1 9>&- || { say_tail "$log"; fail "PostgreSQL did not start in $folder."; }
  if ! wait_for 60 answers; then
    as_owner cat "$folder/postgres.log" >"$log" 2>/dev/null || true
    say_tail "$log"
    fail "PostgreSQL did not answer on port $port within 60 seconds; its log is $folder/postgres.log."
  fi
  make_database
}

make_database() {
  local to=(--host=127.0.0.1 "--port=$port" --username=postgres)
  [[ $("$bin/psql" "${to[@]}" --dbname=postgres -Atc "SELECT 1 FROM pg_database WHERE datname = 'gpumarket'") == 1 ]] ||
    "$bin/createdb" "${to[@]}" gpumarket
}

stop() {
  bin=$(postgres_bin) || return 0
  if ! runs; then return; fi
  as_owner "$bin/pg_ctl" stop --silent --mode=fast --timeout=30 --pgdata="$folder/data" >/dev/null 2>&1 ||
    as_owner "$bin/pg_ctl" stop --silent --mode=immediate --timeout=10 --pgdata="$folder/data" >/dev/null 2>&1 ||
    ! runs ||
    fail "PostgreSQL in $folder does not stop."
}

# It starts again by itself from its log of changes.
crash() {
  bin=$(postgres_bin) || fail "PostgreSQL is not installed; deploy/dev/setup.sh installs it."
  runs || fail "no PostgreSQL runs in $folder."
  as_owner "$bin/pg_ctl" stop --silent --mode=immediate --timeout=30 --pgdata="$folder/data" >/dev/null 2>&1 || ! runs ||
    fail "PostgreSQL in $folder does not stop."
}

# Where PostgreSQL is not installed there is nothing to stop or remove.
if [[ $verb == stop || $verb == remove ]] && ! postgres_bin >/dev/null; then exit 0; fi

case $verb in
  start) start ;;
  stop) choose_folder; stop ;;
  crash) choose_folder; crash ;;
  url) printf 'postgres://postgres@127.0.0.1:%s/%s\n' "$port" "${option:-postgres}" ;;
  alive) choose_folder; bin=$(postgres_bin) && runs ;;
  log) choose_folder; printf '%s\n' "$folder/postgres.log" ;;
  remove) choose_folder; stop; rm -rf "$folder" ;;
  *) fail "postgres.sh knows start, stop, crash, url, alive, log and remove, not '$verb'." ;;
esac
