package describe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/get"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/why"
)

// componentLabel on pods holds the name of their component.
const componentLabel = "hypershift.openshift.io/control-plane-component"

// builder makes the tree of a hosted cluster. It judges as `hypershift why` does.
type builder struct {
	snap    *why.Snapshot
	judge   *why.Judge
	cluster *hyperv1.HostedCluster
	plane   string // the namespace of the control plane
}

// build makes the whole tree.
func build(snap *why.Snapshot) *Node {
	slices.SortFunc(snap.Components, func(x, y hyperv1.ControlPlaneComponent) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortFunc(snap.Machines, func(x, y clusterv1.Machine) int { return cmp.Compare(x.Name, y.Name) })
	hc := &snap.HostedClusters[0]
	b := &builder{snap: snap, judge: why.NewJudge(snap), cluster: hc, plane: names.ControlPlaneNamespace(hc.Namespace, hc.Name)}
	root := b.node("HostedCluster", "HostedCluster", hc, note(hc))
	root.Name = hc.Namespace + "/" + hc.Name
	for _, group := range []*Node{b.conditions(root.Finding), b.controlPlane(), b.nodePools(), b.packages(), b.unread()} {
		if group != nil {
			root.Children = append(root.Children, group)
		}
	}
	return root
}

// node is an object, which the tree calls word.
func (b *builder) node(word, kind string, obj metav1.Object, note string) *Node {
	return &Node{Kind: word, Name: obj.GetName(), Note: note, Finding: b.judge.Look(why.Object{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()})}
}

func note(hc *hyperv1.HostedCluster) string {
	parts := []string{string(hc.Spec.Platform.Type)}
	if v := get.VersionOf(hc); v != "" {
		parts = append(parts, v)
	}
	return strings.Join(parts, ", ")
}

// conditions are those that are not as they should be, besides the one that the root's line tells of.
func (b *builder) conditions(root why.Finding) *Node {
	group := &Node{Kind: "Conditions"}
	health := root.Health // what a control plane lacks on its way up is no trouble of its own
	if root.Health.Well() || root.Health == why.Blocked {
		health = why.Degraded
	}
	for _, c := range b.cluster.Status.Conditions {
		message := why.Clean(c.Message)
		if good, counts := why.Good(c.Type, c.Status); good || !counts || message != "" && message == root.Cause {
			continue
		}
		cause := fmt.Sprintf("%s=%s (%s)", clip.Line(c.Type), c.Status, clip.Line(c.Reason))
		if message != "" {
			cause += ": " + message
		}
		group.Children = append(group.Children, &Node{Kind: "Condition", Finding: why.Finding{Health: health, Cause: cause, Since: ptr.To(c.LastTransitionTime.Time)}})
	}
	return group.orNil()
}

func (b *builder) controlPlane() *Node {
	group := &Node{Kind: "ControlPlane", Name: b.plane}
	if len(b.snap.Components) == 0 {
		group.Finding = why.Finding{Health: why.Unknown, Cause: "it has no components yet"}
	}
	pods := map[string][]*corev1.Pod{}
	for i := range b.snap.Pods {
		if p := &b.snap.Pods[i]; p.Namespace == b.plane {
			pods[p.Labels[componentLabel]] = append(pods[p.Labels[componentLabel]], p)
		}
	}
	for i := range b.snap.Components {
		c := &b.snap.Components[i]
		node := b.node("Component", "ControlPlaneComponent", c, c.Status.Version)
		for _, p := range pods[c.Name] {
			node.Children = append(node.Children, b.node("Pod", "Pod", p, p.Spec.NodeName))
		}
		group.Children = append(group.Children, node)
	}
	return group
}

func (b *builder) nodePools() *Node {
	group := &Node{Kind: "NodePools"}
	for i := range b.snap.NodePools {
		np := &b.snap.NodePools[i]
		note := fmt.Sprintf("%d/%d ready", np.Status.Replicas, ptr.Deref(np.Spec.Replicas, np.Status.Replicas))
		if np.Status.Version != "" {
			note += ", " + np.Status.Version
		}
		n := b.node("NodePool", "NodePool", np, note)
		for j := range b.snap.Machines {
			if m := &b.snap.Machines[j]; get.PoolOf(m) == np.Name {
				n.Children = append(n.Children, b.node("Machine", "Machine", m, m.Status.NodeRef.Name))
			}
		}
		group.Children = append(group.Children, n)
	}
	return group.orNil()
}

func (b *builder) packages() *Node {
	group := &Node{Kind: "Packages"}
	for i := range b.snap.Packages {
		p := &b.snap.Packages[i]
		group.Children = append(group.Children, b.node("Package", "Package", p, p.Spec.Image))
	}
	return group.orNil()
}

// unread are kinds of which nothing is known: what is not well among them does not show.
func (b *builder) unread() *Node {
	group := &Node{Kind: "NotRead"}
	for _, kind := range slices.Sorted(maps.Keys(b.snap.Unread)) {
		group.Children = append(group.Children, &Node{Kind: kind, Finding: why.Finding{Health: why.Unknown, Cause: "it could not be read: " + why.Clean(b.snap.Unread[kind])}})
	}
	return group.orNil()
}

// orNil is the group, or nil when nothing is in it.
func (n *Node) orNil() *Node {
	if len(n.Children) == 0 {
		return nil
	}
	return n
}
