// Package scope says which operator of a management cluster works on a hosted cluster.
package scope

import (
	"maps"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Identity is what tells one operator of a management cluster from another.
type Identity struct {
	// PrivateCAPI: it stores the objects of Cluster API in HyperShift's own groups, and leaves hosted clusters alone whose objects are in the
	// standard ones. They are of an operator without it that has LegacyScope.
	PrivateCAPI bool
	// Scope is the value of annotation scope that it looks after; nil: all, except for what others are known to.
	Scope *string
}

// Ownership says what an operator does with a hosted cluster.
type Ownership int

const (
	// NotOurs: another operator's.
	NotOurs Ownership = iota
	// Ours to reconcile.
	Ours
	// Unclaimed: ours, if nothing shows that its objects are in the standard groups: hostedcluster finds out.
	Unclaimed
	// Contradictory: the annotations name both kinds of storage. Nobody reconciles it until that is repaired.
	Contradictory
)

// Owns decides by the annotations alone which operator works on a hosted cluster. It is asked at the head of each pass, and for no annotations
// do two operators with different answers to PrivateCAPI or Scope both work on it, as long as only one of them has no scope.
func (o Identity) Owns(annotations map[string]string) Ownership {
	scope, private := annotations[hyperv1.HostedClusterScopeAnnotation], annotations[hyperv1.PrivateCAPITypesAnnotation] == "true"
	if annotations[hyperv1.PrivateCAPIMigrationInProgressAnnotation] == "true" {
		return NotOurs // the migration's
	}
	if private && scope == hyperv1.LegacyScope {
		if o.PrivateCAPI && o.Scope == nil {
			return Contradictory
		}
		return NotOurs
	}
	if !o.PrivateCAPI {
		if !private && (o.Scope == nil || *o.Scope == scope) {
			return Ours
		}
		return NotOurs
	}
	mine := ""
	if o.Scope != nil {
		mine = *o.Scope
	}
	switch {
	case scope != mine:
		return NotOurs // of another scope, or legacy
	case private:
		return Ours
	default:
		return Unclaimed
	}
}

// Acknowledges returns the lock on a hosted cluster that this operator, whose it is otherwise, has to acknowledge on its own objects, so that
// whoever moves them knows that no pass from before is still under way; empty: none. A queue works on an object once at a time, so a pass that
// sees the lock proves that for the object that it is about.
func (o Identity) Acknowledges(annotations map[string]string) string {
	if annotations[hyperv1.PrivateCAPIMigrationInProgressAnnotation] != "true" {
		return ""
	}
	unlocked := maps.Clone(annotations)
	delete(unlocked, hyperv1.PrivateCAPIMigrationInProgressAnnotation)
	if o.Owns(unlocked) != Ours {
		return ""
	}
	return annotations[hyperv1.PrivateCAPIMigrationLockAnnotation]
}
