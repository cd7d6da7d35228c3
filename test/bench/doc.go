// Package bench prints what a hosted cluster costs in time and memory, each figure beside its floor from the same run: etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler as bare processes of the same binary, with the arguments that the
// product renders, started all at once and without any operator. A worker has a bare containerd and kubelet in a pod of the same kind
// beside it, with settings, certificate and pod network that are there already. It never fails because of a figure.
//
//	make bench                                        everything, on a cluster of its own or on the one that runs
//	go test -tags bench -run '^$' -bench Floor  -benchtime 1x ./test/bench
//	go test -tags bench -run '^$' -bench Single -benchtime 1x ./test/bench
//	go test -tags bench -run '^$' -bench Worker -benchtime 1x ./test/bench
//	HOSTED_CLUSTERS=5 go test -tags bench -run '^$' -bench Fleet -benchtime 1x ./test/bench
//
// It uses the local cluster of $KUBECONFIG, else the one in .local, else it starts one in a state folder of its own and takes
// that down at the end. It needs root, bin/ from `make build` and the bundle from `make kubernetes`. What it makes lives in
// the namespace "bench", which it empties before and after.
//
//	BENCH_RUNS       how many runs of Floor, Single and Worker the medians are of (3)
//	BENCH_SETTLE     how long processes are left alone before their memory is read (30s)
//	BENCH_IDLE       how long idle operators are watched (60s)
//	WORKERS          how many workers Workers scales a pool to (10)
//	HOSTED_CLUSTERS  how many hosted clusters Fleet creates at once (15)
package bench
