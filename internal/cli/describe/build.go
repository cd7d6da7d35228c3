package describe

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/get"
	"hcp.internal/platform/internal/cli/health"
	"hcp.internal/platform/internal/contract/names"
)

// snapshot is what the tree is made of.
type snapshot struct {
	cluster    *hyperv1.HostedCluster
	components []hyperv1.ControlPlaneComponent
	pods       []corev1.Pod // of the control plane
	pools      []hyperv1.NodePool
	machines   []clusterv1.Machine
	packages   []packagesv1.Package
}

// componentLabel on pods holds the name of their component.
const componentLabel = "hypershift.openshift.io/control-plane-component"

// build makes the whole tree.
func build(s snapshot) *Node {
	hc := s.cluster
	root := &Node{Kind: "HostedCluster", Name: hc.Namespace + "/" + hc.Name, Finding: health.OfHostedCluster(hc), Note: note(hc)}
	for _, group := range []*Node{conditions(s), controlPlane(s), nodePools(s), packages(s)} {
		if group != nil {
			root.Children = append(root.Children, group)
		}
	}
	return root
}

func note(hc *hyperv1.HostedCluster) string {
	parts := []string{string(hc.Spec.Platform.Type)}
	if v := get.VersionOf(hc); v != "" {
		parts = append(parts, v)
	}
	return strings.Join(parts, ", ")
}

// badWhenTrue are conditions of a HostedCluster that are False while all is well.
var badWhenTrue = []string{hyperv1.HostedClusterDegraded, hyperv1.HostedClusterProgressing, hyperv1.ClusterVersionFailing, hyperv1.EtcdRecoveryActive, hyperv1.ClusterVersionProgressing}

// quiet are conditions that may be anything without somebody having to act.
var quiet = []string{
	hyperv1.PrivateCAPIMigrationProgressing, hyperv1.AutoNodeEnabled, hyperv1.ClusterSizeTransitionPending, hyperv1.ClusterSizeTransitionRequired,
	hyperv1.HostedClusterRestoredFromBackup, hyperv1.AllFieldsHeeded,
}

// conditions are those that are not as they should be, besides the one that the root's line tells of.
func conditions(s snapshot) *Node {
	group := &Node{Kind: "Conditions"}
	cause := health.OfHostedCluster(s.cluster).Cause
	for i := range s.cluster.Status.Conditions {
		c := &s.cluster.Status.Conditions[i]
		wrong := c.Status != metav1.ConditionTrue
		if slices.Contains(badWhenTrue, c.Type) {
			wrong = c.Status == metav1.ConditionTrue
		}
		if !wrong || slices.Contains(quiet, c.Type) || health.Describe(c) == cause {
			continue
		}
		f := health.Finding{Health: health.Degraded, Cause: health.Describe(c), Since: ptr.To(c.LastTransitionTime.Time)}
		if c.Status == metav1.ConditionUnknown {
			f.Health = health.Unknown
		}
		group.Children = append(group.Children, &Node{Kind: "Condition", Finding: f})
	}
	if len(group.Children) == 0 {
		return nil
	}
	return group
}

func controlPlane(s snapshot) *Node {
	group := &Node{Kind: "ControlPlane", Name: names.ControlPlaneNamespace(s.cluster.Namespace, s.cluster.Name)}
	if len(s.components) == 0 {
		group.Finding = health.Finding{Health: health.Unknown, Cause: "it has no components yet"}
	}
	for i := range s.components {
		c := &s.components[i]
		node := &Node{Kind: "Component", Name: c.Name, Finding: health.OfComponent(c), Note: c.Status.Version}
		for j := range s.pods {
			if p := &s.pods[j]; p.Labels[componentLabel] == c.Name {
				node.Children = append(node.Children, &Node{Kind: "Pod", Name: p.Name, Finding: health.OfPod(p), Note: p.Spec.NodeName})
			}
		}
		group.Children = append(group.Children, node)
	}
	return group
}

func nodePools(s snapshot) *Node {
	group := &Node{Kind: "NodePools"}
	for i := range s.pools {
		np := &s.pools[i]
		n := &Node{Kind: "NodePool", Name: np.Name, Finding: health.OfNodePool(np)}
		n.Note = fmt.Sprintf("%d/%d ready", np.Status.Replicas, ptr.Deref(np.Spec.Replicas, np.Status.Replicas))
		if np.Status.Version != "" {
			n.Note += ", " + np.Status.Version
		}
		for j := range s.machines {
			if m := &s.machines[j]; get.PoolOf(m) == np.Name {
				n.Children = append(n.Children, &Node{Kind: "Machine", Name: m.Name, Finding: health.OfMachine(m), Note: m.Status.NodeRef.Name})
			}
		}
		group.Children = append(group.Children, n)
	}
	if len(group.Children) == 0 {
		return nil
	}
	return group
}

func packages(s snapshot) *Node {
	group := &Node{Kind: "Packages"}
	for i := range s.packages {
		p := &s.packages[i]
		group.Children = append(group.Children, &Node{Kind: "Package", Name: p.Name, Finding: health.OfPackage(p), Note: p.Spec.Image})
	}
	if len(group.Children) == 0 {
		return nil
	}
	return group
}
