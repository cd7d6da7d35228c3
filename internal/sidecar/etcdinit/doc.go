// Package etcdinit prepares the data directory and the configuration of one etcd member before etcd starts.
//
// etcd's image has no shell, and etcd must be told whether it founds a cluster or joins one. So the init container writes
// etcd's configuration file: a template with $(VAR) references, filled from the container's environment, plus what only
// the init container can know (initial-cluster-state, and the member list when joining).
//
//	data on disk ───────────────────────────────────────────▶ start as what it was
//	no data, no cluster answers ────────────────────────────▶ new: found the cluster with the others
//	no data, cluster knows us, we never served ─────────────▶ new (member of the founding list), existing (member added later)
//	no data, cluster knows us and we did serve: disk is lost ▶ remove the old member, add a new one, existing
//	no data, cluster doesn't know us ───────────────────────▶ add, existing
//
// A lost member is replaced by a voting member, not by a learner. A learner exists to keep quorum small while a *new* member
// catches up; here the old vote is gone already, and after remove and add the cluster needs as many of the others as before
// the loss. A learner would need somebody to promote it later, and that somebody would be one more thing that can be down.
//
// Each step may be killed and repeated: a member that was added but never started has no name and is taken over as it is.
package etcdinit
