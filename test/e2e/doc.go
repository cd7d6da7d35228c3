// Package e2e walks the user's journeys on a real local cluster, as root, in a state folder of its own.
//
// It needs the build tag e2e, bin/ from `make build` and the bundle from `make kubernetes`; `make e2e` does all of that.
package e2e
