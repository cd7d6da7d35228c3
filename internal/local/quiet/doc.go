// Package quiet tells whether a local cluster rests when nobody asks anything of it, and who doesn't.
//
// It judges from outside, by three accounts that don't trust each other: what API servers hold before and after (every object of every
// resource that discovery shows), what they were asked (their audit logs), and what processes used of the processors (/proc). No list of
// kinds or of controllers decides what is looked at, so that a kind or a controller that is new is looked at, too.
//
//	Observe: settle, read objects → wait → read objects, requests and processors   (I/O)
//	judge:   what was read → Report                                               (pure)
package quiet
