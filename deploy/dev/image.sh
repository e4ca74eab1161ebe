#!/usr/bin/env bash
# Builds the demo image from Debian's busybox-static, without any registry, into the engine of engine.sh.
# usage: image.sh DIR     (DIR as for engine.sh start; at once when the image is there)
set -euo pipefail
scripts=$(cd "$(dirname "$0")" && pwd)
source "$scripts/say.sh"

image=localhost/gpumarket/busybox:1
folder=${1:?usage: image.sh DIR}
engine() { "$scripts/engine.sh" podman "$folder" "$@"; }

# Whoever changes this file or upgrades busybox gets a new image under the same name.
recipe=$({ cat "$0"; cat /bin/busybox; } | sha256sum | cut -c1-16)
if [[ $(engine image inspect --format '{{index .Labels "gpumarket.recipe"}}' "$image" 2>/dev/null) == "$recipe" ]]; then exit 0; fi

applets=$(/bin/busybox --list 2>/dev/null) || fail "/bin/busybox is missing; deploy/dev/setup.sh installs it (package busybox-static)."

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir -p "$root"/{bin,etc,dev,proc,sys,run,root,home,var/log}
mkdir -m 1777 "$root/tmp" "$root/var/tmp"
ln -s bin "$root/sbin"
mkdir -p "$root/usr"
ln -s ../bin "$root/usr/bin"

cp /bin/busybox "$root/bin/busybox"
while read -r applet; do
  [[ $applet == busybox ]] || ln -s busybox "$root/bin/${applet##*/}"
done <<<"$applets"

printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"

# The first process of a container ignores SIGTERM unless it asks for it: so it asks, and stops at once.
cat >"$root/bin/gpumarket-hello" <<'HELLO'
#!/bin/sh
trap 'echo "asked to stop after $n s"; exit 0' TERM INT
n=0
echo "hello from a gpumarket lease on $(hostname)"
env | grep '^GPUMARKET_' | sort
while true; do
  n=$((n + 1))
  echo "running for $n s"
  sleep 1 &
  wait $!
done
HELLO
chmod 755 "$root/bin/gpumarket-hello"

tar -C "$root" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - . |
  engine import --quiet \
    --change 'CMD ["/bin/gpumarket-hello"]' --change 'ENV PATH=/bin' --change 'WORKDIR /' \
    --change "LABEL gpumarket.recipe=$recipe" - "$image" >/dev/null ||
  fail "the demo image could not be built in the engine under $folder."
