// Package objectset rolls out the revisions of an ObjectDeployment, one ObjectSet or ClusterObjectSet each.
//
// Phases without a class go through the phase engine right here; for each other one there is an ObjectSetPhase, and its status counts.
// The rollout stops at the first phase that is not available. An ObjectSet that is archived or deleted is torn down in reverse order, and
// a phase is gone entirely before the one in front of it begins to go.
//
//	Active ⇄ Paused ──► Archived (objects of its own are gone, those that others took over stay)
package objectset
