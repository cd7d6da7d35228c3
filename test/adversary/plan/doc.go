// Package plan decides what the adversary does, and when. A plan is a pure function of a seed and of how long it may take, so a seed that found
// something finds it again, as far as clusters do the same twice.
//
//	For:   seed, length → Plan
//	Check: the bounds that every plan keeps
package plan
