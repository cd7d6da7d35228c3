package operator

import "hcp.internal/platform/internal/contract/scope"

// Identity is what tells one operator of a management cluster from another.
type Identity = scope.Identity

// Ownership says what an operator does with a hosted cluster.
type Ownership = scope.Ownership

// What an operator does with a hosted cluster, see package scope.
const (
	NotOurs       = scope.NotOurs
	Ours          = scope.Ours
	Unclaimed     = scope.Unclaimed
	Contradictory = scope.Contradictory
)
