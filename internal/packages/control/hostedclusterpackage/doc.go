// Package hostedclusterpackage keeps a Package up to date in the control-plane namespace of every hosted cluster that a HostedClusterPackage
// selects. What to do next is package rollout's decision; here is what it looks at and how it is carried out.
//
//	HostedClusters ─┐
//	Packages ───────┼─► observe ─► rollout.Step ─► Packages (server-side apply), status.processing before and status after
//	template, past ─┘                    ▲
//	                       ControllerRevisions: which templates there were, and which of them was good
package hostedclusterpackage
