#!/usr/bin/env bash
# Runs a command, and beside it another one that only gets the processors and the disk when nobody else wants them. The output of that one comes at the end,
# and behind it, if the first command failed, the end of that one's output again: of a long run, often only the end is shown. BESIDE_GROUP is the group of the idle
# command's processes, for who has to stop it for a while because it measures something.
#
#	hack/beside.sh 'idle command' command [argument ...]
set -euo pipefail
idle=$1
shift
printed=$(mktemp -d)
# The idle command is a group of its own, so that all of it ends with this script.
set -m
(chrt --idle 0 ionice -c 3 bash -c "$idle") >"$printed/idle" 2>&1 &
group=$!
set +m
trap 'kill -CONT -- -$group 2>/dev/null && kill -- -$group; rm -rf "$printed"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
code=0
BESIDE_GROUP=$group "$@" 2>&1 | tee "$printed/first" || code=1
idlecode=0
wait "$group" || idlecode=1
cat "$printed/idle"
if [ $code -ne 0 ]; then
  printf '\nThe end of: %s\n\n' "$*"
  tail -n 60 "$printed/first"
fi
if [ $idlecode -ne 0 ]; then
  printf '\nFailed: %s\n' "$idle"
fi
exit $((code | idlecode))
