// Package phase rolls a group of objects out and tears it down again. It is the engine below ObjectSets and ObjectSetPhases.
//
// A reconciliation examines every object of the phase, decides what to do with each, checks with a dry run what it wants to create or adopt,
// writes in order, and probes. Nothing is written while any object of the phase would be refused.
//
// The engine tracks objects by their metadata, which watch.Cache keeps, and reads a complete object only if it hasn't evaluated its resourceVersion
// yet. It remembers its evaluations in memory; losing them costs reads. An unchanged object costs nothing, not even
// a read.
//
//	          not there ──────────────────────────► create
//	          controlled by us ── drifted ────────► apply
//	                          └── intact ─────────► nothing
//	live ───┤ controlled by a previous revision ──► adopt
//	          controlled by a later revision ─────► nothing; it is only probed
//	          anything else ──────────────────────► as collisionProtection says: adopt or refuse
package phase
