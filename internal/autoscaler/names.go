package autoscaler

import "strings"

// Name of the program.
const Name = "cluster-autoscaler"

// FieldOwner is who we are in both clusters.
const FieldOwner = "cluster-autoscaler"

// DeleteAnnotation has Cluster API delete a Machine before others when there are to be fewer.
const DeleteAnnotation = "cluster.x-k8s.io/delete-machine"

// Names in the hosted cluster, those of the cluster autoscaler: what we report, and the priorities that the user gives groups.
const (
	StatusConfigMap     = "cluster-autoscaler-status"
	PrioritiesConfigMap = "cluster-autoscaler-priority-expander"
	prioritiesKey       = "priorities"
	statusKey           = "status"
)

// markPrefix tells our marks from those of others; the time of the decision follows.
const markPrefix = FieldOwner + "/"

func isOurs(mark string) bool { return strings.HasPrefix(mark, markPrefix) }
