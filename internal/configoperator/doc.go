// Package configoperator is the hosted-cluster-config-operator: it maintains the objects that a hosted cluster has from the
// start, such as the endpoints of its API and the permissions of joining nodes.
//
// It runs in the control plane namespace, one for each hosted cluster, and watches two API servers:
//
//	management ── HostedControlPlane (its own namespace only) ──▶ plan (pure) ──▶ objects ──▶ hosted API
//	      ▲                                                                                      │
//	      └── condition ConfigOperatorReconciliationSucceeded ◀── what could not be applied ◀────┘
//	                                     drift: watches of our labelled objects, nothing cached ◀┘
//
// The hosted API is the tenant's: it may be down, slow, or contain anything. So every request has a time limit and every
// answer a size limit; nothing that is read there ends up in a name, a path or a condition; objects are
// read one by one and never listed or cached; and changes by tenants trigger at most one reconciliation per driftPause.
//
// Package resources defines the objects; a new one is a file and a line there.
package configoperator
