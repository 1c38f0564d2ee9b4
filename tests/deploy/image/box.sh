#!/bin/sh
# Starts a command as the first process of a container: box.sh ROOT FOLDER PROBE USER [SOURCE TARGET]... -- COMMAND...
# To be run by `unshare --map-root-user --mount --net`. ROOT is an empty folder. The programs of this machine stand for the
# base image, and each SOURCE is at its TARGET. Everything is read-only but /tmp. The program PROBE gets the process id of
# `unshare`, whose child is the first process, and writes to file descriptor 3.
set -eu
root=$1 folder=$2 probe=$3 user=$4
shift 4

# Of a file or a folder.
read_only() {
  if [ -d "$1" ]; then mkdir -p "./$2"; else mkdir -p "./$(dirname "$2")"; : >"./$2"; fi
  mount --rbind "$1" "./$2"
  mount -o remount,bind,ro "./$2"
}

mount --make-rprivate /
mount -t tmpfs image "$root"
cd "$root"
mkdir -p proc dev tmp old
for name in bin sbin lib lib64; do
  if [ -L "/$name" ]; then ln -s "$(readlink "/$name")" "$name"
  elif [ -d "/$name" ]; then read_only "/$name" "$name"; fi
done
read_only /usr usr
read_only /etc etc
read_only "$(dirname "$probe")" probe
while [ "$1" != -- ]; do
  read_only "$1" "$2"
  shift 2
done
shift
mount --rbind /proc proc
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmp tmp
pivot_root . old
cd "$folder"
umount -l /old
mount -o remount,ro /
ip link set lo up

start='mount -t proc proc /proc; exec unshare --user --map-user="$0" --map-group="$0" -- "$@" 3>&-'
unshare --pid --mount --fork --kill-child -- sh -c "$start" "$user" "$@" 3>&- &
server=$!
"$NODE" "/probe/$(basename "$probe")" "$server" >&3 || kill "$server"
code=0
wait "$server" || code=$?
echo "{\"exitCode\":$code}" >&3
