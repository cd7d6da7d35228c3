// Package metrics exports metrics of hosted clusters and their NodePools.
//
// The gauges are computed at each scrape from the operator's cache: they cannot drift from the objects, and a deleted
// cluster leaves no series behind. Names and labels are those that dashboards and alerts of hosted clusters use.
package metrics
