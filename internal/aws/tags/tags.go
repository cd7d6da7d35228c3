// Package tags holds the tags by which objects in an AWS account are known as a hosted cluster's.
package tags

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Keys of tags. Other programs look for them; they never change.
const (
	// clusterPrefix and the infrastructure's identifier are the key whose value Owned says that an object goes with the cluster.
	clusterPrefix = "kubernetes.io/cluster/"
	Owned         = "owned"

	InfraID     = "hypershift.openshift.io/infra-id"
	ClusterName = "hypershift.openshift.io/cluster-name"
	Source      = "hypershift.openshift.io/source"
	Name        = "Name"

	InternalLoadBalancers = "kubernetes.io/role/internal-elb"
	PublicLoadBalancers   = "kubernetes.io/role/elb"
	KarpenterDiscovery    = "karpenter.sh/discovery"
)

// Bounds of AWS, in characters, and of tags on one object.
const (
	maxKey   = 128
	maxValue = 256
	maxTags  = 50
	// ours is how many tags an object gets besides those that the user asks for.
	ours = 8
)

// Set is tags by key.
type Set map[string]string

// Cluster is the key that says to which cluster an object belongs.
func Cluster(infraID string) string { return clusterPrefix + infraID }

// Parse reads key=value pairs; a value may hold further equals signs and may be empty.
func Parse(pairs []string) (Set, error) {
	set := Set{}
	var errs []error
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		switch {
		case !ok || key == "":
			errs = append(errs, fmt.Errorf("tag %q: write key=value", pair))
		case len([]rune(key)) > maxKey || len([]rune(value)) > maxValue:
			errs = append(errs, fmt.Errorf("tag %q: a key has at most %d characters, a value %d", pair, maxKey, maxValue))
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			errs = append(errs, fmt.Errorf("tag %q: keys that begin with aws: are reserved", pair))
		default:
			set[key] = value
		}
	}
	if len(set) > maxTags-ours {
		errs = append(errs, fmt.Errorf("%d tags: at most %d fit beside those that every object gets", len(set), maxTags-ours))
	}
	return set, errors.Join(errs...)
}

// Of are the tags of everything that is made in EC2, Route53 and RAM for a cluster.
func Of(infraID, name string, additional Set) Set {
	set := maps.Clone(additional)
	if set == nil {
		set = Set{}
	}
	set[Cluster(infraID)] = Owned
	set[InfraID] = infraID
	if name != "" {
		set[ClusterName] = name
	}
	return set
}

// With is a copy with more tags, given as key, value, key, value.
func (s Set) With(pairs ...string) Set {
	set := maps.Clone(s)
	for i := 0; i+1 < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	return set
}

// Keys are the keys in order, so that a request looks the same each time.
func (s Set) Keys() []string { return slices.Sorted(maps.Keys(s)) }

// List gives the set as a service's own type, in order.
func List[T any](s Set, tag func(key, value *string) T) []T {
	var list []T
	for _, key := range s.Keys() {
		value := s[key]
		list = append(list, tag(&key, &value))
	}
	return list
}

// Missing are the tags of want that have lacks or has with another value.
func Missing(have, want Set) Set {
	missing := Set{}
	for key, value := range want {
		if got, ok := have[key]; !ok || got != value {
			missing[key] = value
		}
	}
	return missing
}
