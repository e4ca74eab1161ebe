#!/usr/bin/env bash
# Installs what the market needs and this machine lacks. Does nothing, at once, when all is there.
# usage: setup.sh [run|test|check|bench]   (what for; default: test)
set -euo pipefail
cd "$(dirname "$0")"
source ./say.sh
source ./where.sh

purpose=${1:-test}
nextest_version=0.9.143

missing=()

# need PACKAGE COMMAND: the Debian package, unless the command is here.
need() { has "$2" || [[ -x /usr/sbin/$2 ]] || missing+=("$1"); }

need gcc cc
[[ -e /usr/include/stdio.h ]] || missing+=(libc6-dev)
need curl curl
need jq jq
if [[ $purpose == check ]]; then
  need codespell codespell
  need shellcheck shellcheck
else
  postgres_bin >/dev/null || missing+=(postgresql)
fi
if [[ $purpose == run || $purpose == test ]]; then
  need podman podman
  need runc runc
  need conmon conmon
  need iptables iptables
  [[ -x /usr/lib/podman/netavark || -x /usr/libexec/podman/netavark ]] || missing+=(netavark)
  [[ -x /usr/lib/podman/aardvark-dns || -x /usr/libexec/podman/aardvark-dns ]] || missing+=(aardvark-dns)
  [[ -x /usr/libexec/podman/catatonit ]] || has catatonit || missing+=(catatonit)
  [[ $(dpkg-query -W -f '${db:Status-Status}' busybox-static 2>/dev/null) == installed ]] || missing+=(busybox-static)
  # Without root, Podman maps user ids and builds networks with these.
  if ! is_root; then
    need uidmap newuidmap
    need slirp4netns slirp4netns
  fi
fi

# apt's own steps, one line each.
apt_lines() { sed -un -E 's/^(Get:[0-9]+) [^ ]+ (.*)/\1 \2/p; /^(Unpacking|Setting up|E:|W:|Err)/p' | say_indented; }

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" 2>&1 | apt_lines; }

install_packages() {
  has apt-get || fail "these are missing, and this machine has no apt-get to install them: ${missing[*]}."
  is_root || fail "please run this one command, then try again: sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}"
  say "    installing Debian packages: ${missing[*]}"
  apt_get update || fail "apt-get update failed; see above."
  if [[ " ${missing[*]} " == *" postgresql "* ]]; then
    # The market starts a cluster of its own; Debian's default cluster would only take memory and a port.
    apt_get install -y --no-install-recommends postgresql-common || fail "apt-get could not install postgresql-common; see above."
    sed -i -E 's/^#? *create_main_cluster *=.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
  fi
  apt_get install -y --no-install-recommends "${missing[@]}" || fail "apt-get could not install ${missing[*]}; see above."
}

has cargo || fail "cargo is not on the PATH: please install Rust first (the version is in Cargo.toml, rust-version)."

if ((${#missing[@]})); then install_packages; fi

if [[ $purpose == test || $purpose == check ]] && ! has cargo-nextest; then
  say "    installing the test runner cargo-nextest $nextest_version from crates.io (some minutes, once per machine)"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  # Hardly optimised: it only starts tests. In a build folder of its own: ours keeps our crates only.
  env -u CARGO_TARGET_DIR CARGO_PROFILE_RELEASE_OPT_LEVEL=1 cargo install cargo-nextest --locked --version "$nextest_version" 2>&1 | tee "$log" |
    awk '/^ +Compiling/ && ++n % 50 == 0 { print "      compiled " n " crates"; fflush() } /^ +Installed/' || {
    say_tail "$log"
    fail "cargo could not install cargo-nextest."
  }
fi
