// Package connector is the remote phase manager: it rolls ObjectSetPhases of a class out in another cluster than the one that they live in.
//
// There is one in the namespace of every hosted control plane, for the class hosted-cluster. Phases, revisions and status are read and written on
// the management cluster; objects are read, written and watched in the target, which is the hosted cluster, with the engine that serves
// all other phases, too. An object there knows its owner by an annotation.
//
//	           management cluster                              hosted cluster
//	ObjectSet ─► ObjectSetPhase ◄──────── connector ─────────► objects
//	           (class hosted-cluster)  status     apply, watch
//
// The target may be dead for any time, and it may be hostile. So nothing here needs it to start or to be ready; what it answers is bounded in size and
// in time (see guard); and a probe decides whether there is a session with it (see Target). Without a session nothing but the probe asks it
// anything, and phases say Unknown with the reason. A new session begins with nothing remembered, as the target may have been restored
// from a backup meanwhile.
package connector
