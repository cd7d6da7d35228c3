package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"hcp.internal/platform/internal/controlplane/trouble"
)

// leaseOverdue is how long after its end a lease tells that its holder stands still rather than that another is about to take it.
const leaseOverdue = 30 * time.Second

// notReadyAfter is how long a pod that runs may fail its readiness probe before that is more than starting.
const notReadyAfter = 2 * time.Minute

// startsIn is how long a pod may take to start: images of some GiB over a slow line.
const startsIn = 10 * time.Minute

// workloadRules are about what runs on the management cluster.
var workloadRules = slices.Concat([]Rule{
	{ID: "pods-refused", On: kindDeployment, See: ofTrouble(trouble.Refused), Sees: "the API server refuses its pods", State: Broken, Do: "change the quota, the Pod Security level, or the webhook that the message names"},
	{ID: "pods-refused", On: kindStatefulSet, See: ofTrouble(trouble.Refused), Sees: "the API server refuses its pods", State: Broken, Do: "change the quota, the Pod Security level, or the webhook that the message names"},
	{ID: "workload-off", On: kindDeployment, See: switchedOff, Sees: "an operator has spec.replicas 0", State: Broken, Do: "scale it up again, or remove the pause that prevents the operators from doing so"},
	{ID: "workload-lacks-replicas", On: kindDeployment, See: lacksReplicas, Sees: "fewer replicas than wanted are available or up to date, or old ones are left", Ask: []edge{podsOf}, State: Waiting, Do: "wait: pods are starting; if it continues, kubectl describe the workload"},
	{ID: "workload-lacks-replicas", On: kindStatefulSet, See: lacksReplicas, Sees: "fewer replicas than wanted are available or up to date, or old ones are left", Ask: []edge{podsOf, claimsOf}, State: Waiting, Do: "wait: pods are starting; if it continues, kubectl describe the workload"},
	{ID: "leader-stands-still", On: kindLease, See: overdue, Sees: "a lease was not renewed for longer than it lasts", State: Broken,
		Do: "delete the pod that holds the lease (kubectl delete pod), or repair its node; another one takes over"},
	{ID: "volume-pending", On: kindClaim, See: ofTrouble(trouble.VolumePending), Sees: "it is not bound, and an event says why", State: Broken, Do: "set an existing StorageClass that can provision the volume, in spec.etcd.managed.storage or as the cluster's default"},
}, podRules(), []Rule{
	{ID: "pod-terminating", On: kindPod, See: terminating, Sees: "it should have terminated more than a minute ago", Ask: []edge{nodeOf}, While: dying, State: Broken,
		Do: "check that the kubelet of its node answers; if the node is gone for good, delete the Node or force the pod's deletion"},
	{ID: "pod-on-sick-node", On: kindPod, See: notReady, Sees: "it runs and is not ready, to check its node", Ask: []edge{nodeOf}, Leads: true},
	{ID: "pod-not-ready", On: kindPod, See: notReady, Sees: "it runs and is not ready", State: Waiting, Do: "read its log (kubectl logs): it runs but fails its readiness probe"},
	{ID: "pod-starting", On: kindPod, See: podStarting, Sees: "its containers have not started yet", State: Waiting, Late: startsIn, Do: "wait: it is starting; if it continues, kubectl describe pod"},
	{ID: "node-not-ready", On: kindNode, Condition: string(corev1.NodeReady), Is: no, State: Broken, Do: "repair the management cluster's node, or delete it so that its pods move elsewhere"},
	{ID: "node-not-ready", On: kindNode, Condition: string(corev1.NodeReady), Is: unknown, State: Broken, Do: "repair the management cluster's node, or delete it so that its pods move elsewhere"},
	{ID: "node-under-pressure", On: kindNode, See: pressure, Sees: "it has DiskPressure, MemoryPressure or PIDPressure", State: Broken, Do: "make room on the node: until then, its kubelet evicts pods"},
})

// podRules has a rule for each way in which a pod does not run.
func podRules() []Rule {
	do := map[string]string{
		trouble.Unschedulable:              "add nodes to the management cluster, or make room on the existing ones; it then starts by itself",
		trouble.InvalidImageName:           "correct the image: it comes from the release, or from an annotation of the HostedCluster",
		trouble.ImagePullBackOff:           "check that the image is in the registry, that nodes reach the registry, and that the pull secret is right",
		trouble.CreateContainerConfigError: "create the Secret or ConfigMap that the message names; the control-plane-operator creates its own",
		trouble.CreateContainerError:       "check the node's container runtime: the message is from it",
		trouble.RunContainerError:          "check the node's container runtime: the message is from it",
		trouble.NotStarted:                 "find out why the volume can't be mounted: the message is the kubelet's",
		trouble.OOMKilled:                  "give it more memory (see docs/capacity.md), or reduce its load",
		trouble.CrashLoopBackOff:           "read its log: kubectl logs --previous",
		trouble.Evicted:                    "make room on the node that the message names",
	}
	sees := map[string]string{
		trouble.Unschedulable:              "the scheduler finds no node for it",
		trouble.InvalidImageName:           "an image name is invalid",
		trouble.ImagePullBackOff:           "an image can't be pulled",
		trouble.CreateContainerConfigError: "a Secret or ConfigMap that a container needs is missing",
		trouble.CreateContainerError:       "a container can't be created",
		trouble.RunContainerError:          "a container can't be started",
		trouble.NotStarted:                 "containers have not been created for a minute, and an event says why",
		trouble.OOMKilled:                  "a container was killed because its memory was used up",
		trouble.CrashLoopBackOff:           "a container exits again and again",
		trouble.Evicted:                    "its node had too little of something",
	}
	var out []Rule
	for _, reason := range trouble.Reasons() {
		if text, ok := do[reason]; ok {
			out = append(out, Rule{ID: "pod-" + kebab(reason), On: kindPod, See: ofTrouble(reason), Sees: sees[reason], State: Broken, Do: text})
		}
	}
	return out
}

// kebab makes "image-pull-back-off" of "ImagePullBackOff".
func kebab(s string) string {
	var b strings.Builder
	for i, r := range s {
		if r >= 'A' && r <= 'Z' {
			if i > 0 && !(s[i-1] >= 'A' && s[i-1] <= 'Z') {
				b.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// ofTrouble sees what package trouble found.
func ofTrouble(reason string) func(*scene, *item) *seen {
	return func(s *scene, it *item) *seen {
		t, ok := s.troubles[it.Object]
		if !ok || t.Reason != reason {
			return nil
		}
		saw := &seen{field: "status", text: t.Reason + ": " + Clean(t.Message), cause: Clean(t.Message)}
		if it.Kind == kindPod {
			saw.since = it.created
		}
		if w := s.warnings[it.Object]; w != nil && reason == trouble.VolumePending {
			saw.field = "event"
		}
		for _, c := range it.conditions {
			if c.Type == string(appsv1.DeploymentReplicaFailure) && c.Status == yes {
				saw.field, saw.since = "status.conditions["+c.Type+"]", c.LastTransitionTime.Time
			}
			if c.Status != yes && (c.Type == string(corev1.PodScheduled) && reason == trouble.Unschedulable || c.Type == string(corev1.PodReady) && reason != trouble.Unschedulable) {
				saw.field, saw.since = "status.conditions["+c.Type+"]", c.LastTransitionTime.Time
			}
		}
		return saw
	}
}

func switchedOff(s *scene, it *item) *seen {
	d := it.typed.(*appsv1.Deployment)
	if d.Spec.Replicas == nil || *d.Spec.Replicas != 0 || d.Namespace != s.OperatorNamespace && d.Namespace != s.PackageOperatorNamespace {
		return nil // components of control planes are at 0 for good reasons
	}
	return &seen{field: "spec.replicas", text: "0", cause: fmt.Sprintf("Deployment %s is scaled to 0", it.Name), since: specChanged(it.meta)}
}

func lacksReplicas(_ *scene, it *item) *seen {
	var want, all, available, updated int32
	var observed bool
	switch w := it.typed.(type) {
	case *appsv1.Deployment:
		want, all, available, updated, observed = ptr.Deref(w.Spec.Replicas, 1), w.Status.Replicas, w.Status.AvailableReplicas, w.Status.UpdatedReplicas, w.Status.ObservedGeneration >= w.Generation
	case *appsv1.StatefulSet:
		want, all, available, updated, observed = ptr.Deref(w.Spec.Replicas, 1), w.Status.Replicas, w.Status.AvailableReplicas, w.Status.UpdatedReplicas, w.Status.ObservedGeneration >= w.Generation
	}
	if observed && available >= want && updated >= want && all <= updated { // what serves may be an old replica that waits for a new one
		return nil
	}
	saw := &seen{field: "status.availableReplicas", text: fmt.Sprintf("%d of %d replicas are available, %d up to date", available, want, updated)}
	for _, c := range it.conditions {
		if c.Type == string(appsv1.DeploymentAvailable) && c.Status != yes {
			saw.since = c.LastTransitionTime.Time
		}
	}
	return saw
}

func overdue(s *scene, it *item) *seen {
	for i := range s.Leases {
		l := &s.Leases[i]
		if l.Namespace != it.Namespace || l.Name != it.Name || l.Spec.RenewTime == nil || ptr.Deref(l.Spec.HolderIdentity, "") == "" {
			continue
		}
		end := l.Spec.RenewTime.Add(time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second)
		if s.Now.Sub(end) < leaseOverdue {
			return nil
		}
		holder := Clean(*l.Spec.HolderIdentity)
		return &seen{field: "spec.renewTime", text: l.Spec.RenewTime.UTC().Format(time.RFC3339), since: l.Spec.RenewTime.Time,
			cause: fmt.Sprintf("operator %s, which holds lease %s, has stalled or is gone, and no other has taken over", holder, it.Name)}
	}
	return nil
}

// terminating: a pod that should have ended.
func terminating(s *scene, it *item) *seen {
	p := it.typed.(*corev1.Pod)
	if s.Now.Sub(*it.deleted) < time.Minute { // the timestamp has the grace period in it
		return nil
	}
	return &seen{field: "metadata.deletionTimestamp", text: it.deleted.UTC().Format(time.RFC3339), since: *it.deleted,
		cause: fmt.Sprintf("pod %s should have terminated, but node %s has not reported that", it.Name, p.Spec.NodeName)}
}

func notReady(s *scene, it *item) *seen {
	p := it.typed.(*corev1.Pod)
	if p.Status.Phase != corev1.PodRunning {
		return nil
	}
	for _, c := range it.conditions {
		if c.Type != string(corev1.PodReady) || c.Status == yes {
			continue
		}
		saw := ofCondition(c)
		saw.cause = fmt.Sprintf("pod %s runs and is not ready", it.Name)
		if w := s.warnings[it.Object]; w != nil {
			saw.cause += ": " + Clean(w.Message)
		}
		if s.Now.Sub(c.LastTransitionTime.Time) > notReadyAfter {
			saw.state = Broken
		}
		return saw
	}
	return nil
}

// podStarting: nothing is known to be wrong with it, and it does not run.
func podStarting(s *scene, it *item) *seen {
	if _, known := s.troubles[it.Object]; known || it.typed.(*corev1.Pod).Status.Phase != corev1.PodPending {
		return nil
	}
	return &seen{field: "status.phase", text: string(corev1.PodPending), since: it.created, cause: fmt.Sprintf("pod %s is starting", it.Name)}
}

func pressure(_ *scene, it *item) *seen {
	for _, c := range it.conditions {
		if c.Status == yes && slices.Contains([]string{string(corev1.NodeDiskPressure), string(corev1.NodeMemoryPressure), string(corev1.NodePIDPressure)}, c.Type) {
			saw := ofCondition(c)
			saw.cause = fmt.Sprintf("node %s has %s: %s", it.Name, c.Type, Clean(c.Message))
			return saw
		}
	}
	return nil
}

// podsOf are the pods that a workload selects.
func podsOf(s *scene, it *item) []*item {
	var selector *metav1.LabelSelector
	switch w := it.typed.(type) {
	case *appsv1.Deployment:
		selector = w.Spec.Selector
	case *appsv1.StatefulSet:
		selector = w.Spec.Selector
	}
	match, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || selector == nil {
		return nil
	}
	return s.filter(kindPod, func(p *item) bool { return p.Namespace == it.Namespace && match.Matches(labels.Set(p.meta.Labels)) })
}

// claimsOf are the volume claims made from a StatefulSet's templates: "{template}-{set}-{number}".
func claimsOf(s *scene, it *item) []*item {
	set := it.typed.(*appsv1.StatefulSet)
	return s.filter(kindClaim, func(c *item) bool {
		return c.Namespace == it.Namespace && slices.ContainsFunc(set.Spec.VolumeClaimTemplates, func(t corev1.PersistentVolumeClaim) bool {
			return strings.HasPrefix(c.Name, t.Name+"-"+set.Name+"-")
		})
	})
}

func nodeOf(s *scene, it *item) []*item {
	return s.named(kindNode, "", it.typed.(*corev1.Pod).Spec.NodeName)
}
