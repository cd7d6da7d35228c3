package teardown

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
)

// podGrace is how long a pod of a destroyed control plane may take to end, in seconds. Its own grace period, 135 s for kube-apiserver, is there
// for clients, and there are none any more.
const podGrace = 1

// deletionPoll is how often the remaining objects are looked at when no event comes.
const deletionPoll = 5 * time.Second

// Plan is the next move of a deletion. The zero value means that nothing is left.
type Plan struct {
	delete []client.Object
	// hurry are pods to end within podGrace.
	hurry []client.Object
	// empty: delete workloads and what they use, so that pods end and none comes again.
	empty bool
	// annotateCleanup passes the wish to clean up cloud resources on to the HostedControlPlane.
	annotateCleanup bool
	// stripFinalizers of the HostedControlPlane: nobody else will.
	stripFinalizers bool
	// poke calls the controller of namespaces, which would look at this one later.
	poke bool
	// orphans: nobody removes the finalizers of machines that are being deleted.
	orphans bool
	// unpauseCluster lets Cluster API remove what belongs to the Cluster.
	unpauseCluster bool
	// strip are finalizers of what the platform has besides machines.
	strip []finalizerOf
	// stripCluster: nobody else will remove the finalizer of the Cluster.
	stripCluster bool
	Waiting      []string // what is waited for, for people
	RecheckAfter time.Duration
}

// Done tells that nothing is left.
func (t Plan) Done() bool { return len(t.Waiting) == 0 }

// PlanFor decides the next move. The order is such that what cleans up outlives what it cleans up: NodePools, HostedControlPlane, and the
// namespace, in which the operators run, last.
func PlanFor(r Observed, now time.Time) Plan {
	t := Plan{RecheckAfter: deletionPoll}
	// Also while NodePools are waited for: their machines are of the paused cluster.
	t.unpauseCluster = r.cluster != nil && ptr.Deref(r.cluster.Spec.Paused, false)
	for i := range r.pools {
		np := &r.pools[i]
		if np.DeletionTimestamp.IsZero() {
			t.delete = append(t.delete, np)
		}
		t.Waiting = append(t.Waiting, waitingFor("NodePool", np, "its controller removes the machines first"))
	}
	if len(r.pools) > 0 {
		// Machines of a cluster that is being deleted are not drained: there is nowhere for their pods to go, and a disruption budget
		// would hold the last one for ever. Cluster API deletes the HostedControlPlane after the last machine.
		if r.cluster != nil && r.cluster.DeletionTimestamp.IsZero() {
			t.delete = append(t.delete, r.cluster)
		}
		t.orphans = orphaned(r, now)
		return t
	}
	if r.cluster != nil {
		planCluster(r, now, &t)
	}
	if len(r.beside) > 0 { // the HostedControlPlane's operator has a part in removing it
		planBeside(r, now, &t)
		return t
	}
	if r.hcp != nil {
		planControlPlane(r, now, &t)
	}
	if len(t.Waiting) > 0 {
		return t
	}
	if r.namespace == nil || r.hc.Annotations[hyperv1.SkipControlPlaneNamespaceDeletionAnnotation] == "true" {
		return Plan{}
	}
	if r.namespace.Annotations[hyperv1.HostedClusterAnnotation] != names.BackReference(r.hc) {
		return Plan{} // it was never ours
	}
	if r.namespace.DeletionTimestamp.IsZero() {
		// A namespace controller that finds a pod waits for half of the time that the pod may take to end, 68 s for kube-apiserver, before
		// it looks again. It shall find none. On the way there, everything that would make new ones goes.
		t.empty = true
		t.RecheckAfter = emptyPoll
		// The pods of a contained cluster end while the controller waits for namespaceDelay. Should one not, the controller is poked
		// when it has.
		if !r.contained && endingFor(r.pods, now) < emptyLongest {
			t.hurry = inHurry(r)
			t.Waiting = []string{waitingForPods(r.pods)}
			return t
		}
		t.delete = []client.Object{r.namespace}
	}
	if deleted := r.namespace.DeletionTimestamp; deleted.IsZero() || now.Sub(deleted.Time) < emptyLongest {
		t.RecheckAfter = emptyPoll // later, something holds it, and nobody is in a hurry
	}
	t.poke = pokes(r, now)
	// Whoever would have removed finalizers in it ends with it.
	t.orphans = r.contained && !r.namespace.DeletionTimestamp.IsZero()
	t.hurry = inHurry(r)
	t.Waiting = []string{waitingFor("Namespace", r.namespace, namespaceHint(r.namespace))}
	return t
}

// pokedAnnotation says that the pods of a namespace that is being deleted have ended. It is there to be an event for the controller of namespaces.
const pokedAnnotation = "hypershift.openshift.io/pods-have-ended"

// pokes says that the controller of namespaces has probably found pods, and waits for longer than they took. Once is enough: it finds none then.
func pokes(r Observed, now time.Time) bool {
	deleted := r.namespace.DeletionTimestamp
	return r.contained && !deleted.IsZero() && len(r.pods) == 0 && now.Sub(deleted.Time) >= pokeAfter && r.namespace.Annotations[pokedAnnotation] == ""
}

const (
	// namespaceDelay is for how long a controller of namespaces leaves one alone that is deleted (namespaceDeletionGracePeriod).
	namespaceDelay = 5 * time.Second
	// pokeAfter leaves it the time to remove what is in a namespace without pods.
	pokeAfter = namespaceDelay + 3*time.Second
	// emptyPoll is how often the pods of a namespace are looked at that is about to be deleted.
	emptyPoll = time.Second
	// emptyLongest is how long pods that were told to end are waited for, where a cluster is not contained, before the namespace is deleted
	// all the same: their node may be gone. It is many times what they take on a busy one.
	emptyLongest = 20 * time.Second
)

// endingFor is how long every pod there is has been told to end, or longer; emptyLongest without pods, and 0 when one has not been told.
func endingFor(pods []metav1.PartialObjectMetadata, now time.Time) time.Duration {
	least := emptyLongest
	for i := range pods {
		deleted := pods[i].DeletionTimestamp
		if deleted.IsZero() {
			return 0
		}
		// The timestamp is when the grace period ends.
		told := deleted.Add(-time.Duration(ptr.Deref(pods[i].DeletionGracePeriodSeconds, 0)) * time.Second)
		least = min(least, now.Sub(told))
	}
	return least
}

// inHurry are the pods that are to end within podGrace. A namespace that is being deleted takes no new pods, and one that is emptied has
// nobody who makes them.
func inHurry(r Observed) []client.Object {
	var pods []client.Object
	for i := range r.pods {
		if pod := &r.pods[i]; r.contained && (pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds > podGrace) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// maxNamed bounds how many pods a message names.
const maxNamed = 8

func waitingForPods(pods []metav1.PartialObjectMetadata) string {
	var names []string
	for i := range pods {
		names = append(names, pods[i].Name)
	}
	slices.Sort(names)
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("pods %s to end", text)
}

func planControlPlane(r Observed, now time.Time, t *Plan) {
	t.annotateCleanup = r.hc.Annotations[hyperv1.CleanupCloudResourcesAnnotation] == "true" && r.hcp.Annotations[hyperv1.CleanupCloudResourcesAnnotation] != "true"
	if r.hcp.DeletionTimestamp.IsZero() {
		t.delete = append(t.delete, r.hcp)
		t.Waiting = append(t.Waiting, waitingFor("HostedControlPlane", r.hcp, "the control-plane-operator cleans up first"))
		return
	}
	hint := "the control-plane-operator removes its finalizer when it has cleaned up"
	if r.contained {
		operator := remover{name: "the control-plane-operator", deployment: r.operator, stuck: operatorStuck}
		t.stripFinalizers, hint = t.await(operator, r.hcp.DeletionTimestamp.Time, now, hint)
	} else if c := conditions.Get(r.hcp.Status.Conditions, hyperv1.CloudResourcesDestroyed); c != nil && c.Status != metav1.ConditionTrue {
		hint = c.Message
	}
	t.Waiting = append(t.Waiting, waitingFor("HostedControlPlane", r.hcp, hint))
}

// planBeside removes what the platform has besides machines.
func planBeside(r Observed, now time.Time, t *Plan) {
	for _, obj := range r.beside {
		kind := obj.GetObjectKind().GroupVersionKind().Kind
		t.Waiting = append(t.Waiting, waitingFor(kind, obj, besideHint(obj)))
		if obj.GetDeletionTimestamp().IsZero() {
			t.delete = append(t.delete, obj)
			continue
		}
		for _, f := range r.dismantler.Abandoned(r.hc, obj, now) {
			t.strip = append(t.strip, finalizerOf{obj, f})
		}
	}
}

// besideHint is why an object is still there: what its controllers say is wrong, if they do.
func besideHint(obj client.Object) string {
	var said []metav1.Condition
	switch link := obj.(type) {
	case *hyperv1.AWSEndpointService:
		said = link.Status.Conditions
	case *hyperv1.AzurePrivateLinkService:
		said = link.Status.Conditions
	}
	for _, c := range said {
		if c.Status == metav1.ConditionFalse {
			return c.Message
		}
	}
	return "the operators remove what it stands for first"
}

// finalizerOf is a finalizer that nobody else removes.
type finalizerOf struct {
	obj       client.Object
	finalizer string
}

// waitingFor says which object is still there, since when, and why.
func waitingFor(kind string, obj client.Object, hint string) string {
	name := client.ObjectKeyFromObject(obj).String()
	if obj.GetNamespace() == "" {
		name = obj.GetName()
	}
	if deleted := obj.GetDeletionTimestamp(); !deleted.IsZero() {
		return fmt.Sprintf("%s %s, being deleted since %s (%s)", kind, name, deleted.UTC().Format(time.RFC3339), hint)
	}
	return fmt.Sprintf("%s %s (%s)", kind, name, hint)
}

// namespaceHint repeats what the namespace controller says is left.
func namespaceHint(ns *corev1.Namespace) string {
	var left []string
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Message != "" {
			left = append(left, c.Message)
		}
	}
	if len(left) == 0 {
		return "its pods and other objects go first"
	}
	return strings.Join(left, "; ")
}
