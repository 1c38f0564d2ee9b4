#!/bin/sh
# Starts a command as the first process of a container: box.sh ROOT APP FOLDER MODELS PROBE USER COMMAND...
# To be run by `unshare --map-root-user --mount --net`. ROOT is an empty folder. The programs of this machine stand for the
# base image. Everything is read-only but /tmp. The program PROBE gets the process id of `unshare`, whose child is the first
# process, and writes to file descriptor 3.
set -eu
root=$1 app=$2 folder=$3 models=$4 probe=$5 user=$6
shift 6

read_only() {
  mount --rbind "$1" "$2"
  mount -o remount,bind,ro "$2"
}

mount --make-rprivate /
mount -t tmpfs image "$root"
cd "$root"
mkdir -p usr etc proc dev tmp mnt/models old "./$folder" probe
for name in bin sbin lib lib64; do
  if [ -L "/$name" ]; then ln -s "$(readlink "/$name")" "$name"
  elif [ -d "/$name" ]; then mkdir "$name"; read_only "/$name" "$name"; fi
done
read_only /usr usr
read_only /etc etc
read_only "$app" "./$folder"
read_only "$models" mnt/models
read_only "$(dirname "$probe")" probe
case $NODE in
  /usr/*) ;;
  *) mkdir -p ".$(dirname "$NODE")"; : >".$NODE"; read_only "$NODE" ".$NODE" ;;
esac
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
"$NODE" "/probe/$(basename "$probe")" "$server" >&3
code=0
wait "$server" || code=$?
echo "{\"exitCode\":$code}" >&3
