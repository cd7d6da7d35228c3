package why

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// Health is how an object is, in one word for a column of a table.
type Health string

// The words, from the best to the worst.
const (
	Healthy     Health = "Healthy"
	Progressing Health = "Progressing" // it gets there by itself, as far as can be told
	Deleting    Health = "Deleting"
	Paused      Health = "Paused"  // somebody has stopped it
	Blocked     Health = "Blocked" // nothing goes on before somebody acts
	Degraded    Health = "Degraded"
	Unknown     Health = "Unknown" // nobody has said anything yet
)

// Well tells whether nobody needs to look.
func (h Health) Well() bool { return h == Healthy }

// Finding is what a table says of an object.
type Finding struct {
	Health Health     `json:"health"`
	Cause  string     `json:"cause,omitempty"` // one line, the cause of Explain; empty while it is healthy
	Since  *time.Time `json:"since,omitempty"` // when the cause began, where that is known
}

// Stages are conditions of a HostedCluster that become True one after the other while a control plane comes up.
var Stages = []string{
	hyperv1.ValidHostedControlPlaneConfiguration, hyperv1.ValidReleaseInfo, hyperv1.InfrastructureReady, hyperv1.EtcdAvailable,
	hyperv1.KubeAPIServerAvailable, hyperv1.HostedClusterAvailable,
}

// Judge finds the words for many objects of one snapshot. It is for one goroutine.
type Judge struct{ scene *scene }

// NewJudge makes a snapshot ready. The snapshot must not be changed as long as the judge is used.
func NewJudge(s *Snapshot) *Judge {
	j := &Judge{scene: newScene(s)}
	j.scene.major = true
	return j
}

// Look is how an object of the snapshot is. It follows the same rules as Explain, and leaves out those about what is not heeded: these keep nobody from
// being well. An object that is not there is Unknown.
func (j *Judge) Look(of Object) Finding {
	it := j.scene.find(of)
	if it == nil {
		return Finding{Health: Unknown, Cause: "there is no " + of.String()}
	}
	clear(j.scene.asked) // who was asked on the way from another object was asked in another order
	return j.scene.finding(it)
}

// Of is how an object is, by what it says itself: a HostedCluster, HostedControlPlane, ControlPlaneComponent, NodePool, Machine, Pod, Package, ObjectSet or
// HostedClusterPackage. Any other is Unknown.
func Of(obj metav1.Object, now time.Time) Finding {
	s := &Snapshot{Now: now}
	of := Object{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	switch o := obj.(type) {
	case *hyperv1.HostedCluster:
		of.Kind, s.HostedClusters = kindHostedCluster, []hyperv1.HostedCluster{*o}
	case *hyperv1.HostedControlPlane:
		of.Kind, s.HostedControlPlanes = kindHostedControlPlane, []hyperv1.HostedControlPlane{*o}
	case *hyperv1.ControlPlaneComponent:
		of.Kind, s.Components = kindComponent, []hyperv1.ControlPlaneComponent{*o}
	case *hyperv1.NodePool:
		of.Kind, s.NodePools = kindNodePool, []hyperv1.NodePool{*o}
	case *clusterv1.Machine:
		of.Kind, s.Machines = kindMachine, []clusterv1.Machine{*o}
	case *corev1.Pod:
		of.Kind, s.Pods = kindPod, []corev1.Pod{*o}
	case *packagesv1.Package:
		of.Kind, s.Packages = kindPackage, []packagesv1.Package{*o}
	case *packagesv1.ObjectSet:
		of.Kind, s.ObjectSets = kindObjectSet, []packagesv1.ObjectSet{*o}
	case *packagesv1.HostedClusterPackage:
		of.Kind, s.HostedClusterPackages = kindHostedClusterPackage, []packagesv1.HostedClusterPackage{*o}
	}
	return NewJudge(s).Look(of)
}

// finding is the answer in the words of a table.
func (s *scene) finding(it *item) Finding {
	a := s.answer(it, it.shown())
	out := Finding{Health: Healthy}
	switch {
	case a.Deleting:
		out.Health = Deleting
	case len(it.conditions) == 0 && speaks(it) && a.State.rank() <= Waiting.rank():
		out.Health = Unknown
		if a.State == Well {
			a.Cause = "nobody has said anything about it yet"
		}
	case a.State == Well:
		return out
	case a.State == Waiting:
		out.Health = Progressing
	case a.State == Held:
		out.Health = Paused
	default:
		out.Health = Degraded
	}
	if chain := s.asked[it]; len(chain) > 0 && chain[0].health != "" && (out.Health == Degraded || out.Health == Paused) {
		out.Health = chain[0].health
	}
	out.Cause = a.Cause
	if a.Since != nil {
		out.Since = &a.Since.Time
	}
	return out
}

// speaks tells whether an object of this kind has conditions once somebody has looked at it.
func speaks(it *item) bool {
	switch it.Kind {
	case kindHostedCluster, kindHostedControlPlane, kindComponent, kindNodePool, kindMachine, kindPackage, kindObjectDeployment, kindObjectSet, kindHostedClusterPackage:
		return true
	}
	return false
}
