// Package phase rolls a group of objects out and tears it down again. It is the engine below ObjectSets and ObjectSetPhases.
//
// A pass looks at every object of the phase, decides what to do with each, checks what it wants to create or adopt by a dry run,
// writes in order, and probes. Nothing is written while any object of the phase would be refused.
//
// The engine knows objects by their metadata, which watch.Cache keeps, and reads an object as a whole only when its resourceVersion
// is one that it hasn't judged yet. What it judged is remembered in memory; losing that costs reads. An object that nobody changed
// costs nothing, not even a look.
//
//	          not there ──────────────────────────► create
//	          controlled by us ── drifted ────────► apply
//	                          └── intact ─────────► nothing
//	live ───┤ controlled by a previous revision ──► adopt
//	          controlled by a later revision ─────► nothing; it is probed, that's all
//	          anything else ──────────────────────► as collisionProtection says: adopt or refuse
package phase
