// Package ignition prints how fast machines get their payloads: 200 requests a second, each on a connection of its own as machines
// make them, beside a bare HTTPS server that gives the same bytes, and while somebody guesses tokens as fast as they can.
//
//	go test -tags bench -run '^$' -bench . -benchtime 1x ./test/bench/ignition
//
// It talks to loopback only and ends by itself. It never fails because of a figure.
//
//	BENCH_RATE     requests a second (200)
//	BENCH_LOAD     for how long (10s)
package ignition
