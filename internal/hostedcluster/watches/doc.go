// Package watches says which objects the operator keeps in its cache, which of their changes matter, and which HostedClusters they concern.
package watches
