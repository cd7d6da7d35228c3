// Package nodepool is the controller of NodePools: it keeps the machines of a hosted cluster as users want them.
//
//	NodePool ─▶ token Secret ◀── ignition server ◀── machine boots ◀─┐
//	         ─▶ user data Secret ────────────────────────────────────┤
//	         ─▶ machine template ─────────────────────────────────┐  │
//	         ─▶ MachineDeployment or MachineSet ─▶ Cluster API ─▶ Machine
//	         ─▶ MachineHealthCheck
//
// A pass reads everything (observe.go), decides everything (plan.go and the stages), writes in an order that can be cut anywhere
// (apply.go), and reports once. The two Secrets are named after a hash of what users wrote (package rollout), and a machine is up to date
// when it was made from the user data of the present hash.
//
// Secrets of earlier hashes stay as long as a MachineSet refers to them: a pool that goes back to what it was finds its machines, and
// they their Secrets.
package nodepool
