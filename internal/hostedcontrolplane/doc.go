// Package hostedcontrolplane is the reconciler of a HostedControlPlane, run by the control-plane-operator beside the control plane.
//
// One pass:
//
//	observe inputs (validity, pause, releases) ─▶ act (Services ▶ certificates ▶ components) ─▶ observe state ─▶ report (one status patch)
//
// Every step of act needs the one before it: certificates name the published address, components mount certificates. What the next step waits for is
// an event (a load balancer's address, a ready pod), so passes are driven by watches; requeueing is a safety net. The report is a pure
// function of what was observed, and every condition a function of its own.
//
// The process exists once per hosted cluster, so it caches little: its own namespace, without managed fields, no pods and no events.
package hostedcontrolplane
