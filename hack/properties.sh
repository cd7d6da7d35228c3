#!/usr/bin/env bash
# Runs every test of a property with CHECKS new cases, 1000 unless told otherwise. make test draws the same cases each time, so that a change is judged by
# what it changes; this is how others are tried. What breaks a property is printed with the line that plays it again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

code=0
while read -r dir; do
  tests=$(awk '/^func Test/ { name = $2; sub(/\(.*/, "", name) } /rapid\.(Check|MakeCheck)\(/ && name != "" { print name; name = "" }' "$dir"/*_test.go | sort -u | paste -sd '|')
  [ -z "$tests" ] && continue
  RAPID_SEED=0 RAPID_CHECKS="${CHECKS:-1000}" RAPID_NOFAILFILE=1 CGO_ENABLED=0 go test -trimpath -count=1 -timeout 30m "$dir" -run "^($tests)\$" || code=1
done < <(grep -rl --include='*_test.go' '"pgregory.net/rapid"' ./internal ./test | xargs -n1 dirname | sort -u)
exit $code
