package world

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/why"
)

// Kind is what a row is about.
type Kind string

// Kinds of rows.
const (
	Clusters Kind = "clusters"
	Pools    Kind = "pools"
	Packages Kind = "packages"
	Rollouts Kind = "rollouts"
)

// Key names an object of a kind. Rollouts have no namespace.
type Key struct {
	Namespace, Name string
}

// String is "namespace/name", or the name alone.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Bounds of what a row keeps of an object.
const (
	maxLabels = 20
	maxText   = 256
)

// Cluster is a hosted cluster. Nodes are those of all its NodePools.
type Cluster struct {
	Namespace string            `json:"ns"`
	Name      string            `json:"name"`
	Health    why.Health        `json:"health"`
	Cause     string            `json:"cause,omitempty"`
	Since     *time.Time        `json:"since,omitempty"` // when the cause began
	Version   string            `json:"version,omitempty"`
	Target    string            `json:"target,omitempty"` // empty: it has arrived
	Platform  string            `json:"platform"`
	Ready     int32             `json:"ready"`
	Wanted    int32             `json:"wanted"`
	Pools     int               `json:"pools"`
	Created   time.Time         `json:"created"`
	Deleting  *time.Time        `json:"deleting,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// Pool is a NodePool.
type Pool struct {
	Namespace string     `json:"ns"`
	Name      string     `json:"name"`
	Cluster   string     `json:"cluster"`
	Health    why.Health `json:"health"`
	Cause     string     `json:"cause,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
	Version   string     `json:"version,omitempty"`
	Ready     int32      `json:"ready"`
	Wanted    int32      `json:"wanted"`
	Scaling   string     `json:"scaling,omitempty"` // "2-10"; empty: a fixed size
	Upgrade   string     `json:"upgrade,omitempty"`
	Created   time.Time  `json:"created"`
}

// Package is a Package of a hosted cluster or of anybody else.
type Package struct {
	Namespace string     `json:"ns"`
	Name      string     `json:"name"`
	Health    why.Health `json:"health"`
	Cause     string     `json:"cause,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
	Revision  int64      `json:"revision,omitempty"`
	Image     string     `json:"image"`
	Rollout   string     `json:"rollout,omitempty"` // the HostedClusterPackage that made it
	Created   time.Time  `json:"created"`
}

// Rollout is a HostedClusterPackage.
type Rollout struct {
	Name      string     `json:"name"`
	Health    why.Health `json:"health"`
	Cause     string     `json:"cause,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
	Total     int32      `json:"total"`
	Updated   int32      `json:"updated"`
	Available int32      `json:"available"`
	InFlight  int        `json:"inFlight"`
	Strategy  string     `json:"strategy"`
	GroupBy   string     `json:"groupBy,omitempty"` // the label of HostedClusters by which it groups them
	Image     string     `json:"image"`
	Created   time.Time  `json:"created"`
}

// ClusterOf is the row of a HostedCluster at a time, without nodes: those are of its NodePools.
func ClusterOf(hc *hyperv1.HostedCluster, now time.Time) *Cluster {
	f := why.Of(hc, now)
	row := &Cluster{Namespace: hc.Namespace, Name: hc.Name, Health: f.Health, Cause: f.Cause, Since: f.Since, Platform: string(hc.Spec.Platform.Type),
		Created: hc.CreationTimestamp.Time, Labels: labelsOf(hc.Labels)}
	if v := hc.Status.Version; v != nil {
		for _, entry := range v.History {
			if entry.State == configv1.CompletedUpdate { // one that was given up has a time of its end, too
				row.Version = text(entry.Version)
				break
			}
		}
		if row.Version != v.Desired.Version {
			row.Target = text(v.Desired.Version)
		}
	}
	if at := hc.DeletionTimestamp; at != nil {
		row.Deleting = &at.Time
	}
	return row
}

// PoolOf is the row of a NodePool at a time.
func PoolOf(np *hyperv1.NodePool, now time.Time) *Pool {
	f := why.Of(np, now)
	row := &Pool{Namespace: np.Namespace, Name: np.Name, Cluster: np.Spec.ClusterName, Health: f.Health, Cause: f.Cause, Since: f.Since, Version: text(np.Status.Version),
		Ready: np.Status.Replicas, Wanted: ptr.Deref(np.Spec.Replicas, np.Status.Replicas), Upgrade: string(np.Spec.Management.UpgradeType), Created: np.CreationTimestamp.Time}
	if a := np.Spec.AutoScaling; a != nil {
		row.Scaling = fmt.Sprintf("%d-%d", ptr.Deref(a.Min, 0), a.Max)
	}
	return row
}

// PackageOf is the row of a Package at a time.
func PackageOf(p *packagesv1.Package, now time.Time) *Package {
	f := why.Of(p, now)
	row := &Package{Namespace: p.Namespace, Name: p.Name, Health: f.Health, Cause: f.Cause, Since: f.Since, Revision: p.Status.Revision, Image: text(p.Spec.Image), Created: p.CreationTimestamp.Time}
	if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == "HostedClusterPackage" {
		row.Rollout = owner.Name
	}
	return row
}

// RolloutOf is the row of a HostedClusterPackage at a time.
func RolloutOf(p *packagesv1.HostedClusterPackage, now time.Time) *Rollout {
	f := why.Of(p, now)
	s := p.Status
	row := &Rollout{Name: p.Name, Health: f.Health, Cause: f.Cause, Since: f.Since, Total: s.TotalPackages, Updated: s.UpdatedPackages, Available: s.AvailablePackages,
		InFlight: len(s.Processing), Image: text(p.Spec.Template.Spec.Image), Strategy: "all at once", Created: p.CreationTimestamp.Time}
	if p.Spec.Partition != nil {
		row.GroupBy = text(p.Spec.Partition.LabelKey)
	}
	if r := p.Spec.Strategy.RollingUpgrade; r != nil && p.Spec.Strategy.Instant == nil {
		row.Strategy = fmt.Sprintf("at most %d unavailable", r.MaxUnavailable)
	}
	return row
}

// ControlPlane is the namespace of the control plane of a hosted cluster.
func (k Key) ControlPlane() string { return names.ControlPlaneNamespace(k.Namespace, k.Name) }

func text(s string) string { return clip.Over(clip.Line(s), maxText, "…") }

func labelsOf(all map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	out := make(map[string]string, min(len(all), maxLabels))
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if len(out) == maxLabels {
			break
		}
		out[k] = all[k]
	}
	return out
}
