// Package adversary plays a seeded mix of faults against a local cluster while users work on it, and holds it to what is promised all the time.
// docs/adversary.md says what it plays, what it checks, how a seed is replayed and how a fault is added.
//
//	plan:  seed → what is done, and when                          (pure)
//	fault: kills, stops, partitions, hostile tenants; undone in the end, by a journal also after a crash
//	work:  hosted clusters, NodePools and packages come, change and go
//	watch: what was acknowledged is there, budgets hold, no Secret leaks, nothing is left
package adversary
