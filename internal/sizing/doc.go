// Package sizing decides which size a hosted cluster has, when it may change, and what follows from it. It is pure; package fleet feeds it, and
// "hypershift sizing plan" shows what it would do.
//
//	Check    what is wrong with a ClusterSizingConfiguration
//	Wanted   the size that a cluster should have by its nodes, a recommendation or an override
//	Decide   what becomes of the cluster now: a first size, a change, a wait, or nothing
//	Effects  the annotations that follow from a size
//
// A size is a signal that wobbles: nodes come and go, and fail. So a change is made only when the same size has been wanted for the whole delay
// of its direction, and only so many clusters change within a window of time, those first that have waited longest.
package sizing
