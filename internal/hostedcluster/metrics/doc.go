// Package metrics tells Prometheus about hosted clusters and their NodePools.
//
// The gauges are computed when somebody asks, from what the operator's cache holds: they cannot drift from the objects, and a
// cluster that is gone leaves no series behind. Names and labels are those that dashboards and alerts of hosted clusters know.
package metrics
