// Package world is the shared picture of a management cluster: rows of hosted clusters, NodePools, rollouts and packages, kept by one watch a kind
// however many people look.
//
// Rows are made as objects arrive, and objects are dropped, so that a thousand hosted clusters need a few MB. Each change gets a number; Since says
// what changed after a number, as long as it is among the last Ring changes. Readers ask when they are ready, so nobody's slowness costs memory.
package world
