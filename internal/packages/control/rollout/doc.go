// Package rollout decides what a HostedClusterPackage does next: which Packages to make, change and delete, in which order, and why.
//
//	            ┌──────────── groups, in order; the first that is not done is current ───────────┐
//	observed ─► │ early: e1 ✔ e2 ↻   │   late: l1 … │   unknown: u1 …                            │ ─► Plan
//	            └─────────────────────────────────────────────────────────────────────────────────┘
//	                      │                budget = maxUnavailable − (unavailable ∪ in flight ∪ missing)
//	                      └─ first what is down already, then what is up, as far as the budget goes
//
// Make is pure: it has no client, no clock and no memory. All that must outlive a pass is in the HostedClusterPackage's status (which
// Packages are in flight) and on the Packages themselves. Step carries a plan out in the one order that is safe to die in: what is about to
// be changed is recorded, under the lock of the resource version, before it is changed; and a record is only dropped after a look at the
// Package itself, not at a cache. The same Make and Step run in the controller, in `rollout plan` and in the simulation of the tests.
package rollout
