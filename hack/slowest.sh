#!/usr/bin/env bash
# Passes on what `go test` prints, line by line as it comes, and names the ten packages that took longest at the end.
set -euo pipefail
printed=$(mktemp)
trap 'rm -f "$printed"' EXIT
tee "$printed"
awk '
  ($1 == "ok" || $1 == "FAIL") && $3 ~ /^[0-9.]+s$/ { lines = lines sprintf("%9.1f s  %s\n", substr($3, 1, length($3) - 1), $2); packages++ }
  END {
    if (packages > 1) {
      print "\nThe slowest packages:"; fflush()
      sort = "sort -rn | head -n 10"
      printf "%s", lines | sort
      close(sort)
    }
  }' "$printed"
