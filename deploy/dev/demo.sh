# shellcheck shell=bash
# The demo's parties, machine and offer, made once through the market's public API by its own client. Sourced by run.sh.
# Needs: say.sh, where.sh, and `market` (the address), `programs` (the folder of the built programs).
# shellcheck disable=SC2154 # those are set by who sources this

demo=$here/demo
demo_log=$here/log/demo.log
demo_image=localhost/gpumarket/busybox:1

# demo_cli PROFILE ARGS…
demo_cli() {
  local profile=$1
  shift
  GPUMARKET_CONFIG=$demo/config.toml GPUMARKET_SERVER=$market "$programs/gpumarket" --profile "$profile" "$@" 2>>"$demo_log"
}

# demo_once NAME COMMAND…: runs it unless it succeeded in an earlier start.
demo_once() {
  local done=$demo/$1.done
  shift
  [[ -e $done ]] && return 0
  "$@" && touch "$done"
}

# Both streams of a refused command are in the log: problem documents go to standard output.
demo_must() {
  local sentence=$1
  shift
  "$@" >>"$demo_log" || { say_tail "$demo_log" 8; fail "$sentence"; }
}

demo_email() { printf '%s@demo.example' "$1"; }

demo_password() {
  local file=$demo/$1.password
  if [[ ! -s $file ]]; then
    (umask 077 && head -c 18 /dev/urandom | base64 | tr '+/' 'xy' >"$file.new" && mv "$file.new" "$file")
  fi
  cat "$file"
}

# demo_party ROLE NAME: logged in already, or known, or new.
demo_party() {
  local role=$1 name=$2
  demo_cli "$role" --json whoami >/dev/null && return 0
  demo_password "$role" | demo_cli "$role" --json login --email "$(demo_email "$role")" --password-stdin >/dev/null && return 0
  demo_password "$role" | demo_cli "$role" --json register --email "$(demo_email "$role")" --name "$name" --password-stdin
}

demo_parties() {
  mkdir -p "$demo"
  chmod 700 "$demo"
  demo_must "the demo renter could not log in or register (a password lost? 'make clean-data' starts afresh)." \
    demo_party renter "Demo Renter"
  demo_must "the demo provider could not log in or register (a password lost? 'make clean-data' starts afresh)." \
    demo_party provider "Demo Provider"
  demo_must "the demo moderator could not log in or register (a password lost? 'make clean-data' starts afresh)." \
    demo_party moderator "Demo Moderation"
  demo_must "the demo moderator could not be granted the role." \
    demo_once grant "$programs/gpumarket-server" grant --email "$(demo_email moderator)" --role moderator --reason "demo of make run"
  demo_must "the demo renter's wallet could not be topped up with play money." \
    demo_once top-up demo_cli renter --json top-up 100
}

# A one-time token for the agent.
demo_token() { demo_cli provider --json machine token --name demo-8xh100 | jq -er .token; }

# demo_machine MOMENT: the machine as JSON, once it is verified and was heard from since (UTC, as in 2026-01-31T12:00:00).
demo_machine() {
  local id
  id=$(jq -er .machine_id "$here/agent/identity.json") || return 1
  demo_cli provider --json machine show "$id" | jq -ec --arg since "$1" '
    select((.last_seen_at // "")[0:19] >= $since and (.state | IN("listed", "unlisted", "draining", "maintenance")))'
}

demo_offer() {
  local id
  id=$(jq -er .machine_id "$here/agent/identity.json") || return 1
  demo_cli provider --json offer create --machine "$id" --price 2.10 || return 1
  # Listing is the provider's own wish: it is told once, and a later 'unlist' is respected.
  if [[ $(demo_cli provider --json machine show "$id" | jq -r .state) == unlisted ]]; then
    demo_cli provider --json machine list "$id"
  fi
}

# A client that works when pasted from anywhere, with the demo's log-ins.
demo_wrapper() {
  mkdir -p "$here/bin"
  cat >"$here/bin/gpumarket.new" <<WRAPPER
#!/bin/sh
# Written by 'make run': the command-line client with the demo's log-ins (--profile renter, the default, provider or moderator).
export GPUMARKET_CONFIG='$demo/config.toml' GPUMARKET_SERVER="\${GPUMARKET_SERVER:-$market}"
export GPUMARKET_PROFILE="\${GPUMARKET_PROFILE:-renter}"
exec '$programs/gpumarket' "\$@"
WRAPPER
  chmod 755 "$here/bin/gpumarket.new"
  mv "$here/bin/gpumarket.new" "$here/bin/gpumarket"
}

demo_greeting() {
  local role
  say
  say "The market is open: $market   (docs: $market/docs, API: $market/openapi.json)"
  say "Its GPUs are SIMULATED and its money is PLAY MONEY; containers, ledger and API are the real ones."
  say
  say "  log-ins (API and client; the passwords are in .local/demo/)"
  for role in renter provider moderator; do
    printf '    %-10s %-24s %s\n' "$role" "$(demo_email "$role")" "$(demo_password "$role")"
  done
  say
  say "  book a GPU: paste this in another terminal, in $repo"
  say "    .local/bin/gpumarket --profile renter book --simulated --gpu h100-sxm-80gb --image $demo_image"
  say "  and, to paste what it suggests next: export PATH=\"$here/bin:\$PATH\""
  say
  say "  logs: .local/log/server.log, .local/log/agent.log"
  say "  Ctrl-C stops the market; data stay, and running containers go on: the next start finds them again."
  say "  'make clean-data' forgets everything, containers too."
}
