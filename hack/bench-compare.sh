#!/usr/bin/env bash
# Compares benchmarks of this tree with those of another commit (BASE): both are built, their runs alternate, and what got more than WORSE percent worse
# beyond noise is an error. The program that measures is the one of this tree for both, so that both are measured alike.
#
#   BASE=main [RUNS=5] [BENCH=Single] [WORSE=10] hack/bench-compare.sh
#
# It starts a local cluster for each run and takes it down again: run it as root, where no other runs. A run of Single takes 4 minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
: "${BASE:?name the commit to compare with, such as BASE=main}"
runs=${RUNS:-5} bench=${BENCH:-Single} worse=${WORSE:-10}
commit=$(git rev-parse --verify --quiet "$BASE^{commit}") || { echo "BASE=$BASE is no commit of this repository" >&2; exit 2; }
for cluster in .local "${KUBECONFIG:-}"; do
	[ -n "$cluster" ] && [ -e "$cluster" ] && { echo "take down the local cluster first (make down) and unset KUBECONFIG: each side starts its own" >&2; exit 2; }
done

head=$PWD
work=$(mktemp -d "${TMPDIR:-/tmp}/bench-compare.XXXXXX")
base=$work/base
clean() { git -C "$head" worktree remove --force "$base" 2>/dev/null || true; rm -rf "$work"; }
trap clean EXIT
git worktree add --quiet --detach "$base" "$commit"
for side in "$base" "$head"; do
	echo "building $(git -C "$side" describe --always --dirty)"
	make -C "$side" --no-print-directory kubernetes build >"$work/build.log" 2>&1 || { tail -50 "$work/build.log" >&2; exit 1; }
done
mkdir -p "$head/dist/bench" "$base/test/bench"
go test -c -tags bench -o "$work/bench.test" ./test/bench

one() { # one NAME FOLDER: a run of one side
	echo "run $run of $runs: $1"
	(cd "$2/test/bench" && BENCH_RUNS=1 "$work/bench.test" -test.run '^$' -test.bench "$bench" -test.benchtime 1x -test.timeout 30m) >"$work/run.txt" 2>&1 ||
		{ tail -50 "$work/run.txt" >&2; echo "a run of $1 failed" >&2; exit 1; }
	cat "$work/run.txt" >>"$work/$1.txt"
}
for run in $(seq "$runs"); do
	# Who is first has a colder machine, so it is each in turn.
	if [ $((run % 2)) = 1 ]; then one base "$base"; one head "$head"; else one head "$head"; one base "$base"; fi
done
cp "$work/base.txt" "$work/head.txt" "$head/dist/bench/"
echo
(cd tools && go run ./benchcompare -worse "$worse" "$work/base.txt" "$work/head.txt")
