// Package supervisor runs the processes of the local management cluster and keeps them running.
//
//	            ┌────────── exits ──────────┐
//	waiting ─► starting ─► ready ─► (probe fails: starting)
//	   ▲        (dependencies ready)        │
//	   └───────────── backoff ◄─────────────┘
//
// Children die with the supervisor (a parent death signal), so there is never a second copy of one; containers belong
// to their shims and survive both. Everything lives in one control group, by which "down" finds what is left.
package supervisor
