// Package capiproxy measures the proxy of Cluster API's objects beside no proxy and beside Go's own reverse proxy, in one run on one machine.
//
//	go test -tags bench -run '^$' -bench . -benchtime 1x ./test/bench/capiproxy
//
// All three ways lead to the same server in the benchmark's process, over HTTP/2 with TLS. The proxies are processes of their own.
package capiproxy
