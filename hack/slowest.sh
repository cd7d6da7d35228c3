#!/usr/bin/env bash
# Passes on what `go test` prints, line by line as it comes. At the end it names the ten packages that took longest and, last of all, the tests and packages that
# failed: of a long run, often only the end is shown.
set -euo pipefail
printed=$(mktemp)
trap 'rm -f "$printed"' EXIT
tee "$printed"
awk '
  ($1 == "ok" || $1 == "FAIL") && $3 ~ /^[0-9.]+s$/ { lines = lines sprintf("%9.1f s  %s\n", substr($3, 1, length($3) - 1), $2); packages++ }
  # Tests come before their package; what a test binary prints itself may stand in front of them, on the same line.
  match($0, /--- FAIL: [^ ]+ \(/) { name = substr($0, RSTART + 10, RLENGTH - 12); tests = tests "    " name "\n" }
  /^panic: test timed out after / { tests = tests "    " substr($0, 8) "\n" }
  /^WARNING: DATA RACE/ { races++ }
  $1 == "FAIL" && NF > 1 && $2 !~ /^\(/ { failed = failed "  " $2 ($3 ~ /^\[/ ? " " $3 " " $4 : "") "\n" tests; tests = ""; if (races) failed = failed "    data races: " races "\n"; races = 0; bad = 1 }
  $1 == "ok" { tests = ""; races = 0 }
  END {
    if (packages > 1) {
      print "\nThe slowest packages:"; fflush()
      sort = "sort -rn | head -n 10"
      printf "%s", lines | sort
      close(sort)
    }
    if (bad || tests != "") printf "\nFailed:\n%s%s", failed, tests
  }' "$printed"
