// Package configoperator is the hosted-cluster-config-operator: it keeps the objects that a hosted cluster holds from the
// start, such as the endpoints of its API and the rights of joining nodes.
//
// It runs in the control plane namespace, one for each hosted cluster, and looks at two API servers:
//
//	management ── HostedControlPlane (its own namespace only) ──▶ plan (pure) ──▶ objects ──▶ hosted API
//	      ▲                                                                                      │
//	      └── condition ConfigOperatorReconciliationSucceeded ◀── what could not be applied ◀────┘
//	                                     drift: watches of our labelled objects, nothing cached ◀┘
//
// The hosted API is the tenant's: it may be down, slow, or hold anything. So no request goes without a time limit and no
// answer is read without a size limit; nothing that is read there ends up in a name, a path or a condition; objects are
// read one by one and never listed or cached; and changes by tenants cause at most one pass in driftPause.
//
// What the objects are is in package resources; a new one is a file and a line there.
package configoperator
