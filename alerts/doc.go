// Package alerts plays the alerts that hypershift install brings with Prometheus's own engine: each must fire when it should, and not
// otherwise. With the build tag e2e it runs a real Prometheus against the local cluster (make e2e-monitoring). It is a module of its own, for the engine needs more packages than everything else here together.
package alerts
