# shellcheck shell=bash
# Where things are on this machine: the repository, its private data, the build folder, free ports. Sourced, never run.

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck disable=SC2034 # for those who source this
here=$repo/.local

# Builds stay outside the clone, so that dependencies are compiled once per machine.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/gpumarket/target}

# rustup and `cargo install` put their programs here; a shell without a login profile lacks it.
if [[ -d ${CARGO_HOME:-$HOME/.cargo}/bin ]]; then PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin; fi

is_root() { [[ $(id -u) == 0 ]]; }

has() { command -v "$1" >/dev/null 2>&1; }

# A short, stable name for a path: sockets must have short paths (108 bytes), folders need not.
short_of() { printf '%s' "$1" | sha256sum | cut -c1-12; }

# The folder for sockets, locks and what must not outlive a boot, private to DIR.
run_folder_of() {
  local base=/run/gpumarket
  is_root || base=${XDG_RUNTIME_DIR:-/tmp/gpumarket-$(id -u)}/gpumarket
  printf '%s/%s' "$base" "$(short_of "$1")"
}

# Does something listen on this loopback port?
port_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# The first free loopback port at or above the one given.
free_port() {
  local port
  for ((port = $1; port < $1 + 200; port++)); do
    port_taken "$port" || { printf '%d' "$port"; return 0; }
  done
  return 1
}

# Where initdb and pg_ctl of the newest installed PostgreSQL are; Debian keeps them off the PATH.
postgres_bin() {
  local found
  found=$(find /usr/lib/postgresql -mindepth 3 -maxdepth 3 -path '*/bin/initdb' 2>/dev/null | sort -V | tail -n 1)
  if [[ -n $found ]]; then
    dirname "$found"
  elif has initdb && has pg_ctl; then
    dirname "$(command -v initdb)"
  else
    return 1
  fi
}

# wait_for SECONDS COMMAND…: until it succeeds, for at most so long.
wait_for() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || return 1
    sleep 0.1
  done
}
