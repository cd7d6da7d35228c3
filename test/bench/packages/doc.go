// Package packages measures what rolling out many deployments of objects costs: time until all are available, processor time and
// memory of the operator, and what it does when there is nothing to do.
//
//	go test -tags bench -run '^$' -bench . -benchtime 1x ./test/bench/packages
package packages
