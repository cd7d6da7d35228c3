// Package migration moves the objects of Cluster API of a hosted cluster from the standard groups to HyperShift's own, and back, while its
// machines run.
//
//	plan.go       what is done next, decided from what is there alone: annotations, objects in both groups, programs, a journal
//	steps.go      what a plan consists of
//	copy.go       what a copy of an object is
//	preflight.go  why a hosted cluster can't be moved now; writes nothing
//	observe.go    reads all of it, under the names that are stored
//	apply.go      carries a plan out
//	controller.go which hosted cluster is moved when, and what users are told
//
// Any step may be the last one before a crash, and any may be done twice. Until the annotations of the HostedCluster change, in one patch, every
// failure leads back; from then on only forward.
package migration
