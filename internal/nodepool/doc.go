// Package nodepool is the controller of NodePools: it keeps the machines of a hosted cluster as users want them.
//
//	NodePool ─▶ token Secret ◀── ignition server ◀── machine boots ◀─┐
//	         ─▶ user data Secret ────────────────────────────────────┤
//	         ─▶ machine template ─────────────────────────────────┐  │
//	         ─▶ MachineDeployment or MachineSet ─▶ Cluster API ─▶ Machine
//	         ─▶ MachineHealthCheck
//
// A reconciliation reads everything (observe.go), decides everything (plan.go and the stages), writes in an order that can be interrupted anywhere
// (apply.go), and reports once. The two Secrets are named after a hash of what users wrote (package rollout), and a machine is up to date
// if it was created from the user data of the present hash.
//
// Secrets of earlier hashes stay as long as a MachineSet references them: a pool that goes back to an earlier configuration keeps the machines
// that it still has from then, and these keep their Secrets.
package nodepool
