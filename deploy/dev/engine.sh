#!/usr/bin/env bash
# A container engine of the market's own: Podman with runc behind a Docker-compatible socket, apart from the user's engine.
# usage: engine.sh start DIR            starts it (at once when it runs already), images and containers under DIR
#        engine.sh stop DIR             stops the service; containers go on running: a stopped market ends no lease
#        engine.sh socket DIR           prints its URL, unix:///…
#        engine.sh try DIR IMAGE        runs a container for a moment: does the engine work here at all?
#        engine.sh alive DIR            succeeds if the service runs
#        engine.sh podman DIR ARGS…     runs podman on that engine
#        engine.sh remove DIR           removes its containers, networks, images and DIR
set -euo pipefail
scripts=$(cd "$(dirname "$0")" && pwd)
source "$scripts/say.sh"
source "$scripts/where.sh"

verb=${1:?usage: engine.sh start|stop|socket|try|alive|podman|remove DIR}
folder=$(realpath -m "${2:?usage: engine.sh $verb DIR}")
shift 2

run=$(run_folder_of "$folder")
socket=$run/podman.sock
export CONTAINERS_CONF=$run/containers.conf CONTAINERS_STORAGE_CONF=$run/storage.conf
PATH=$PATH:/usr/sbin:/sbin

# Podman answers Ctrl-C with an error of its own, which would read as a broken engine.
trap 'exit 130' INT

# Podman thinks that containers survived when its run folder did, and /run is not everywhere emptied at boot.
forget_earlier_boot() {
  local boot
  boot=$(cat /proc/sys/kernel/random/boot_id)
  if [[ -d $run && $(cat "$run/boot" 2>/dev/null) != "$boot" ]]; then rm -rf "$run"; fi
  mkdir -p "$run" "$folder"
  [[ -O $run && -O $folder ]] || fail "$run or $folder belongs to another user."
  chmod 700 "$run" "$folder"
  printf '%s\n' "$boot" >"$run/boot"
}

# One bridge network per lease: 4,096 subnets of 16 addresses, in a pool that another engine here is unlikely to share.
subnet_pool() { printf '10.%d.0.0/16' $((128 + 0x$(short_of "$folder" | cut -c1-2) / 2)); }

write_containers_conf() {
  local cgroups=cgroupfs
  if [[ -d /run/systemd/system ]]; then cgroups=systemd; fi
  cat >"$CONTAINERS_CONF" <<CONF
[containers]
# Limits of a container's processes; crun and the distribution's defaults ask for more than a nested machine may give.
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
log_driver = "k8s-file"
log_size_max = 16777216

[engine]
# No static_dir or volume_path here: conmon's clean-up after an exit would look elsewhere, and never mark it exited.
runtime = "runc"
cgroup_manager = "$cgroups"
events_logger = "file"
events_logfile_path = "$run/events.log"
tmp_dir = "$run/tmp"

[network]
network_backend = "netavark"
network_config_dir = "$folder/networks"
default_subnet_pools = [{ base = "$(subnet_pool)", size = 28 }]
CONF
}

write_storage_conf() {
  cat >"$CONTAINERS_STORAGE_CONF" <<CONF
[storage]
driver = "$1"
graphroot = "$folder/storage"
runroot = "$run/storage"
CONF
}

# Overlay where the folder's file system can carry it; else vfs, which works everywhere and copies. Chosen once per folder.
choose_storage() {
  if [[ -s $folder/driver ]]; then
    write_storage_conf "$(cat "$folder/driver")"
    return
  fi
  write_storage_conf overlay
  if ! podman info >/dev/null 2>"$run/podman.err"; then
    rm -rf "$folder/storage" "$run/storage"
    write_storage_conf vfs
    podman info >/dev/null 2>"$run/podman.err" || broken "$(tail -n 1 "$run/podman.err")"
  fi
  sed -n 's/^driver = "\(.*\)"/\1/p' "$CONTAINERS_STORAGE_CONF" >"$folder/driver"
}

broken() { fail "the container engine does not work here: $*"; }

service_runs() { [[ -s $run/service.pid ]] && kill -0 "$(cat "$run/service.pid")" 2>/dev/null; }

service_answers() { curl -fsS --max-time 5 --unix-socket "$socket" http://d/_ping; }

start() {
  has podman || fail "Podman is not installed; deploy/dev/setup.sh installs it."
  has runc || fail "runc is not installed; deploy/dev/setup.sh installs it."
  forget_earlier_boot
  if service_runs && service_answers >/dev/null 2>&1; then return; fi
  stop
  write_containers_conf
  choose_storage
  # In a session of its own: Ctrl-C in the terminal must not reach it, nor the containers it starts; and they must not
  # inherit that a script's background programs ignore SIGINT. In its own folder: conmon leaves files where it stands.
  cd "$run"
  setsid env --default-signal=INT,QUIT podman system service --time=0 "unix://$socket" >"$run/service.log" 2>&1 </dev/null 9>&- &
  printf '%d\n' $! >"$run/service.pid"
  if ! wait_for 30 service_answers; then
    say_tail "$run/service.log" 5
    stop
    broken "its socket did not answer within 30 seconds."
  fi
}

try() {
  podman run --rm --network podman --memory 64m "$1" true >"$run/try.log" 2>&1 || broken "$(tail -n 1 "$run/try.log")"
}

stop() {
  if service_runs; then
    local pid
    pid=$(cat "$run/service.pid")
    kill "$pid" 2>/dev/null || true
    wait_for 10 eval "! kill -0 $pid" || kill -KILL "$pid" 2>/dev/null || true
  fi
  rm -f "$run/service.pid" "$socket"
}

mounts_under() { awk -v under="$1/" 'index($2, under) == 1 { print $2 }' /proc/mounts | sort --reverse; }

remove() {
  if [[ -d $folder ]] && has podman; then
    forget_earlier_boot
    write_containers_conf
    choose_storage
    podman rm --all --force --time 2 >/dev/null 2>&1 || say_wrong "some containers under $folder could not be removed."
    podman network prune --force >/dev/null 2>&1 || true
  fi
  stop
  if is_root; then
    # What a container that Podman lost track of still holds.
    mounts_under "$folder" | while read -r mount; do umount --lazy "$mount" || true; done
    rm -rf "$folder" "$run"
  elif [[ -d $folder ]]; then
    podman unshare rm -rf "$folder"
    # The process that keeps a rootless engine's user namespace.
    if [[ -s $run/tmp/pause.pid ]]; then kill "$(cat "$run/tmp/pause.pid")" 2>/dev/null || true; fi
    rm -rf "$run"
  fi
}

case $verb in
  start) start ;;
  stop) stop ;;
  socket) printf 'unix://%s\n' "$socket" ;;
  try) try "${1:?usage: engine.sh try DIR IMAGE}" ;;
  alive) service_runs ;;
  podman) exec podman "$@" ;;
  remove) remove ;;
  *) fail "engine.sh knows start, stop, socket, try, alive, podman and remove, not '$verb'." ;;
esac
