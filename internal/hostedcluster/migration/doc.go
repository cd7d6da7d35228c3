// Package migration migrates the Cluster API objects of a hosted cluster from the standard groups to HyperShift's own, and back, while its
// machines run.
//
//	plan.go       the next action, decided only from what exists: annotations, objects in both groups, programs, a journal
//	steps.go      the parts of a plan
//	copy.go       how an object is copied
//	preflight.go  why a hosted cluster can't be migrated now; writes nothing
//	observe.go    reads all of it, under the names that are stored
//	apply.go      carries a plan out
//	controller.go which hosted cluster is migrated when, and what is reported to users
//
// Any step may be the last one before a crash, and any may be repeated. Until the annotations of the HostedCluster change, in one patch, every
// failure leads to a rollback; from then on, the migration only goes forward.
package migration
