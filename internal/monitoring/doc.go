// Package monitoring has what people look at: dashboards for Grafana, and what a Prometheus without its operator has to be told.
//
// Queries name metrics of our own programs, which docs/reference/metrics.md lists, and those in Foreign; tests hold them to both.
package monitoring
