package sizing

import (
	"fmt"
	"strings"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
)

// Sizes are those of a configuration that Check has nothing against.
type Sizes []schedulingv1alpha1.SizeConfiguration

// Named is the size of a name, nil when there is none.
func (s Sizes) Named(name string) *schedulingv1alpha1.SizeConfiguration {
	for i := range s {
		if s[i].Name == name {
			return &s[i]
		}
	}
	return nil
}

// ForNodes is the size of clusters with that many nodes.
func (s Sizes) ForNodes(n int) *schedulingv1alpha1.SizeConfiguration {
	for i := range s {
		if c := s[i].Criteria; n >= int(c.From) && (c.To == nil || n <= int(*c.To)) {
			return &s[i]
		}
	}
	return nil
}

// Smallest is the one that begins at 0.
func (s Sizes) Smallest() *schedulingv1alpha1.SizeConfiguration { return &byRange(s)[0] }

// Nodes are how many a cluster has, or is to have.
type Nodes struct {
	// Known is false when nobody can tell now; the size stays as it is then.
	Known bool
	Count int
	// From says in words what was counted.
	From string
}

// CountNodes says how many nodes a cluster has, or is to have if these are more: a control plane has to be ready for nodes before they come, and
// until the last one has gone. hcp may be nil; pools are those of the cluster.
//
// The number that autoscaled NodePools report counts only while the hosted API answers: without it Cluster API sees none.
func CountNodes(hc *hyperv1.HostedCluster, hcp *hyperv1.HostedControlPlane, pools []hyperv1.NodePool) Nodes {
	asked := 0
	running := 0
	scaled := false
	for i := range pools {
		spec := &pools[i].Spec
		if !pools[i].DeletionTimestamp.IsZero() {
			continue
		}
		switch {
		case spec.AutoScaling != nil:
			scaled = true
			if spec.AutoScaling.Min != nil {
				asked += int(*spec.AutoScaling.Min)
			}
			running += int(pools[i].Status.Replicas)
		case spec.Replicas != nil:
			asked += int(*spec.Replicas)
			running += int(*spec.Replicas)
		}
	}
	if hcp != nil && hcp.Status.NodeCount != nil {
		if n := max(*hcp.Status.NodeCount, 0); n >= asked {
			return Nodes{Known: true, Count: n, From: fmt.Sprintf("%d nodes", n)}
		}
		return Nodes{Known: true, Count: asked, From: fmt.Sprintf("NodePools ask for %d nodes", asked)}
	}
	if scaled && hc.Labels[hyperv1.HostedClusterSizeLabel] != "" && !conditions.IsTrue(hc.Status.Conditions, hyperv1.KubeAPIServerAvailable) {
		return Nodes{From: "the hosted API is not available, so nobody knows how many nodes autoscaled NodePools have"}
	}
	n := max(asked, running)
	return Nodes{Known: true, Count: n, From: fmt.Sprintf("NodePools ask for %d nodes", n)}
}

// Want is the size that a cluster should have.
type Want struct {
	// Size is empty when nobody can tell now: the size stays as it is.
	Size string
	// Ordered: somebody said so, in contrast to a number that was measured.
	Ordered bool
	// Why in words; also when there is no size.
	Why string
}

// WantedFor is the size that a cluster should have: that of the override, else the recommended one when it asks for that, else by nodes.
func (s Sizes) WantedFor(hc *hyperv1.HostedCluster, nodes Nodes) Want {
	if name := hc.Annotations[hyperv1.ClusterSizeOverrideAnnotation]; name != "" {
		if s.Named(name) == nil {
			return Want{Why: fmt.Sprintf("annotation %s names size %q, which the ClusterSizingConfiguration doesn't have: it has %s", hyperv1.ClusterSizeOverrideAnnotation, name, s.names())}
		}
		return Want{Size: name, Ordered: true, Why: "annotation " + hyperv1.ClusterSizeOverrideAnnotation + " says so"}
	}
	if hc.Annotations[hyperv1.ResourceBasedControlPlaneAutoscalingAnnotation] == "true" {
		if name := hc.Annotations[hyperv1.RecommendedClusterSizeAnnotation]; s.Named(name) != nil {
			return Want{Size: name, Why: "it follows from what the API server uses"}
		}
		if hc.Labels[hyperv1.HostedClusterSizeLabel] != "" {
			return Want{Why: "what the API server uses is not known yet"}
		}
		return Want{Size: s.Smallest().Name, Why: "what the API server uses is not known yet"}
	}
	if !nodes.Known {
		return Want{Why: nodes.From}
	}
	size := s.ForNodes(nodes.Count)
	if size == nil {
		return Want{Why: fmt.Sprintf("no size is for %d nodes", nodes.Count)}
	}
	return Want{Size: size.Name, Why: nodes.From + ", and " + size.Name + " is " + rangeOf(size)}
}

func rangeOf(s *schedulingv1alpha1.SizeConfiguration) string {
	if s.Criteria.To == nil {
		return fmt.Sprintf("for %d and more", s.Criteria.From)
	}
	return fmt.Sprintf("for %d to %d", s.Criteria.From, *s.Criteria.To)
}

func (s Sizes) names() string {
	names := make([]string, 0, len(s))
	for i := range s {
		names = append(names, s[i].Name)
	}
	return strings.Join(names, ", ")
}
