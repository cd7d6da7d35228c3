// Package watches defines which objects the operator caches, which of their changes matter, and which HostedClusters they concern.
package watches
