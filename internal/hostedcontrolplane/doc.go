// Package hostedcontrolplane is the reconciler of a HostedControlPlane. The control-plane-operator runs it beside the control plane.
//
// One reconciliation:
//
//	Services ─▶ certificates ─▶ components ─▶ observe state ─▶ report (one status patch)
//
// Each of the first three is a round of observe ─▶ plan ─▶ apply, because it needs what the previous round has written: certificates contain the published
// address, and components mount certificates. Reads are in observe.go (and releases.go, troubles.go), decisions in plan.go (and pkispec.go, conditions.go)
// and packages pki and component, writes in apply.go and report.go. The next round waits for an event (a load balancer's address, a ready pod), so
// watches trigger reconciliations; requeueing is a safety net. The report is a pure function of what was observed, and every condition is a
// function of its own.
//
// The process exists once per hosted cluster, so it caches little: its own namespace, without managed fields, no pods and no events.
package hostedcontrolplane
