package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// deletionSlow is how long an object may keep its finalizers before that is more than usual.
const deletionSlow = 2 * time.Minute

// Finalizers of others.
const (
	// destroyFinalizer is that of `hypershift destroy cluster`, which imports this package. It goes last, after what only that command removes.
	destroyFinalizer = "openshift.io/destroy-cluster"
	claimFinalizer   = "kubernetes.io/pvc-protection"
)

// removers say who takes a finalizer off, and how to see whether that one works.
var removers = map[string]string{
	hyperv1.HostedClusterFinalizer:         "the operator of HyperShift for this object: hypershift-operator, or the control-plane-operator for a HostedControlPlane",
	hyperv1.KarpenterFinalizer:             "the Karpenter operator",
	hyperv1.AWSOIDCDiscoveryFinalizer:      "the hypershift-operator, once the OIDC documents are removed from the bucket",
	hyperv1.ControlPlaneComponentFinalizer: "the control-plane-operator",
	clusterv1.MachineFinalizer:             "Cluster API's controllers: Deployment cluster-api of the control plane",
	clusterv1.MachineSetFinalizer:          "Cluster API's controllers: Deployment cluster-api of the control plane",
	clusterv1.MachineDeploymentFinalizer:   "Cluster API's controllers: Deployment cluster-api of the control plane",
	packagesv1.CachedFinalizer:             "the package operator, once the objects of the revision are gone",
	packagesv1.MetricsFinalizer:            "the package operator",
	destroyFinalizer:                       "`hypershift destroy cluster`, once nobody else holds the object",
	claimFinalizer:                         "kube-controller-manager, once no pod uses the claim",
	"foregroundDeletion":                   "the garbage collector of kube-controller-manager, once what the object owns is gone",
	"orphan":                               "the garbage collector of kube-controller-manager",
	"kubernetes":                           "the namespace controller of kube-controller-manager, once the namespace is empty",
}

// deletionRules are about what still holds an object that is being deleted.
var deletionRules = []Rule{
	{ID: "deletion-cluster", On: kindHostedCluster, While: dying, See: deleting(hyperv1.HostedClusterDestroyed), Sees: "it is being deleted",
		Ask: []edge{nodePools, controlPlane, controlPlaneNamespace, operators}, State: Waiting, Do: "wait: the message says what has to be deleted first"},
	{ID: "deletion-unfinished-destroy", On: kindHostedCluster, While: dying, See: destroyUnfinished, Sees: "it has had finalizer `" + destroyFinalizer + "` for two minutes, and no other", State: Broken,
		Do: "unless `hypershift destroy cluster` still runs, run it again, with the flags that it had: it removes what the cluster has outside, and then its finalizer. " + keepDestroyFinalizer},
	{ID: "deletion-pool", On: kindNodePool, While: dying, See: deleting(hyperv1.NodePoolReadyConditionType), Sees: "it is being deleted", Ask: []edge{machinesOf, machinePrograms, operators}, State: Waiting, Do: "wait: machines are being removed"},
	{ID: "deletion-drain-blocked", On: kindMachine, While: dying, See: drainBlocked, Sees: "`Deleting` says that a PodDisruptionBudget blocks it", State: Broken,
		Do: "make the pods in the message satisfy their PodDisruptionBudget (more replicas, or another budget), or limit the wait with spec.nodeDrainTimeout of the NodePool"},
	{ID: "deletion-volumes", On: kindMachine, While: dying, Condition: clusterv1.MachineDeletingCondition, Is: yes, Reasons: []string{clusterv1.MachineDeletingWaitingForVolumeDetachReason}, State: Broken,
		Do: "find out why volumes are not detached, or limit the wait with spec.nodeVolumeDetachTimeout of the NodePool"},
	{ID: "deletion-hook", On: kindMachine, While: dying, Condition: clusterv1.MachineDeletingCondition, Is: yes,
		Reasons: []string{clusterv1.MachineDeletingWaitingForPreDrainHookReason, clusterv1.MachineDeletingWaitingForPreTerminateHookReason}, State: Broken,
		Do: "find out who sets the hook in the message: it is an annotation that someone else has to remove"},
	{ID: "deletion-infrastructure", On: kindMachine, While: dying, Condition: clusterv1.MachineDeletingCondition, Is: yes, Reasons: []string{clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason},
		Ask: []edge{machinePrograms}, State: Broken, Do: "check the provider: credentials of the cloud, Deployment capi-provider of the control plane"},
	{ID: "deletion-draining", On: kindMachine, While: dying, Condition: clusterv1.MachineDeletingCondition, Is: yes, Ask: []edge{machinePrograms}, State: Waiting, Do: "wait: pods are moving to other nodes"},
	{ID: "deletion-control-plane", On: kindHostedControlPlane, While: dying, See: dyingSince, Sees: "it is being deleted", Ask: []edge{ownOperator}, State: Waiting, Do: "wait: the control-plane-operator is cleaning up"},
	{ID: "deletion-namespace", On: kindNamespace, While: dying, See: namespaceHeld, Sees: "the namespace controller says what is left", Ask: []edge{inNamespace}, State: Broken, Do: "remove what the message names, or find out who should remove its finalizers"},
	{ID: "deletion-package", On: kindPackage, While: dying, See: dyingSince, Sees: "it is being deleted", Ask: []edge{deploymentOfPackage, packageOperators}, State: Waiting, Do: "wait: what it installed is deleted first"},
	{ID: "deletion-package", On: kindObjectDeployment, While: dying, See: dyingSince, Sees: "it is being deleted", Ask: []edge{allSetsOf}, State: Waiting, Do: "wait: its revisions are deleted first"},
	{ID: "deletion-revision", On: kindObjectSet, While: dying, See: deleting(packagesv1.ConditionDeleting), Sees: "it is being deleted", Ask: []edge{phasesOf, packageOperators}, State: Broken,
		Do: "check the finalizers of the objects in the message, and who should remove them"},
	{ID: "deletion-phase", On: kindObjectSetPhase, While: dying, See: deleting(packagesv1.ConditionDeleting), Sees: "it is being deleted", Ask: []edge{connector, clusterOfNamespace}, State: Broken,
		Do: "check that the program of the phase's class runs: for hosted clusters, the connector"},
}

// heldKinds are the kinds whose finalizers are looked at.
var heldKinds = []string{kindHostedCluster, kindNodePool, kindMachine, kindMachineSet, kindMachineDeployment, kindHostedControlPlane, kindComponent, kindDeployment,
	kindStatefulSet, kindClaim, kindPackage, kindObjectDeployment, kindObjectSet, kindObjectSetPhase, kindHostedClusterPackage}

// finalizerRules tell of a finalizer, whatever the kind.
func finalizerRules() []Rule {
	var out []Rule
	for _, kind := range heldKinds {
		r := Rule{ID: "deletion-finalizer", On: kind, While: dying, See: finalizers, Sees: "it has finalizers that none of our programs removes, or has kept one for two minutes", State: Waiting, Do: "wait: the answer names who has to remove the finalizer"}
		if kind == kindClaim {
			r.Ask = []edge{endingUsersOf}
		}
		out = append(out, r)
	}
	return out
}

// keepDestroyFinalizer warns of the hand that helps: nobody knows afterwards what is left in the cloud.
const keepDestroyFinalizer = "Don't take the finalizer off yourself: what the cluster has in a cloud would be left there"

// destroyUnfinished: only the command that destroys clusters holds it, and it isn't known to run.
func destroyUnfinished(s *scene, it *item) *seen {
	if s.Now.Sub(*it.deleted) < deletionSlow || !slices.Equal(it.meta.Finalizers, []string{destroyFinalizer}) {
		return nil
	}
	platform := strings.ToLower(Clean(string(it.typed.(*hyperv1.HostedCluster).Spec.Platform.Type)))
	return &seen{field: "metadata.finalizers", text: destroyFinalizer, since: *it.deleted,
		cause: fmt.Sprintf("`hypershift destroy cluster` has not cleaned up after HostedCluster %s, which its finalizer %s holds", it.Name, destroyFinalizer),
		do: fmt.Sprintf("unless the command still runs, run it again, with the flags that it had: `hypershift destroy cluster %s --name %s --namespace %s`. %s",
			platform, it.Name, it.Namespace, keepDestroyFinalizer)}
}

// deleting sees a condition that says what a deletion waits for, or else that it is one.
func deleting(condition string) func(*scene, *item) *seen {
	return func(s *scene, it *item) *seen {
		if len(it.meta.Finalizers) > 0 && len(ownFinalizers(it)) == 0 {
			return nil // nobody of ours has anything left to do
		}
		for _, c := range it.conditions {
			if c.Type == condition && c.Message != "" {
				saw := ofCondition(c)
				saw.since = *it.deleted
				if s.Now.Sub(*it.deleted) < deletionSlow {
					saw.state, saw.do = Waiting, "wait: it is under way"
				}
				return saw
			}
		}
		return dyingSince(s, it)
	}
}

func dyingSince(_ *scene, it *item) *seen {
	return &seen{field: "metadata.deletionTimestamp", text: it.deleted.UTC().Format(time.RFC3339), since: *it.deleted, cause: "it is being deleted"}
}

// drainBlocked: Cluster API says that pods can't be evicted.
func drainBlocked(s *scene, it *item) *seen {
	for _, c := range it.conditions {
		if c.Type != clusterv1.MachineDeletingCondition || c.Reason != clusterv1.MachineDeletingDrainingNodeReason {
			continue
		}
		if !strings.Contains(c.Message, "disruption budget") && !strings.Contains(c.Message, "PodDisruptionBudget") {
			return nil
		}
		saw := ofCondition(c)
		saw.since = *it.deleted
		saw.cause = fmt.Sprintf("machine %s can't be drained: %s", it.Name, Clean(blockedBy(c.Message)))
		return saw
	}
	return nil
}

// blockedBy is what Cluster API says from the first pod that can't be evicted on.
func blockedBy(message string) string {
	for line := range strings.SplitSeq(message, "\n") {
		if strings.Contains(line, "disruption budget") || strings.Contains(line, "PodDisruptionBudget") {
			return strings.TrimLeft(strings.TrimSpace(line), "* ")
		}
	}
	return message
}

// namespaceHeld: the namespace controller says what is left, or why it can't tell.
func namespaceHeld(s *scene, it *item) *seen {
	order := []corev1.NamespaceConditionType{corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionGVParsingFailure, corev1.NamespaceDeletionContentFailure,
		corev1.NamespaceFinalizersRemaining, corev1.NamespaceContentRemaining}
	for _, t := range order {
		for _, c := range it.conditions {
			if c.Type != string(t) || c.Status != yes {
				continue
			}
			saw := ofCondition(c)
			saw.since = *it.deleted
			saw.cause = fmt.Sprintf("namespace %s: %s", it.Name, Clean(c.Message))
			if t == corev1.NamespaceDeletionDiscoveryFailure {
				saw.do = "repair or delete the APIService in the message: while it does not answer, nobody knows what is in the namespace"
			} else if t == corev1.NamespaceContentRemaining && s.Now.Sub(*it.deleted) < deletionSlow {
				saw.state, saw.do = Waiting, "wait: its objects are being removed"
			}
			return saw
		}
	}
	return nil
}

// finalizers tells who holds the object.
func finalizers(s *scene, it *item) *seen {
	foreign, own := foreignFinalizers(it), ownFinalizers(it)
	if len(foreign) > 0 && len(own) == 0 { // else ours have work to do, which other rules tell of
		list := Clean(strings.Join(foreign, ", "))
		return &seen{field: "metadata.finalizers", text: list, since: *it.deleted, state: Broken,
			cause: fmt.Sprintf("finalizer %s holds %s %s, and none of our programs removes it", list, it.Kind, it.Name),
			do:    "find whose finalizer it is, and see why that program does not take it off; if it is gone for good, take the finalizer off yourself: kubectl patch"}
	}
	if s.Now.Sub(*it.deleted) < deletionSlow || len(own) == 0 {
		return nil
	}
	saw := &seen{field: "metadata.finalizers", text: Clean(own[0]), since: *it.deleted, state: Broken,
		cause: fmt.Sprintf("finalizer %s still holds %s %s", Clean(own[0]), it.Kind, it.Name),
		do:    "it is taken off by " + removers[own[0]] + ": see that this runs, and what its log says"}
	if users := usersOf(s, it); own[0] == claimFinalizer && len(users) > 0 {
		user := users[max(0, slices.IndexFunc(users, func(p *item) bool { return p.deleted == nil }))] // one that is to stay holds it for as long as it does
		saw.cause += fmt.Sprintf(": pod %s uses it", user.Name)
		saw.do = "it is taken off by " + removers[claimFinalizer] + ": find out why that pod still runs, or delete it"
		if user.deleted != nil {
			saw.state, saw.do = Waiting, "wait: the pod is terminating"
		}
	}
	return saw
}

// usersOf are the pods that use a volume claim. One that has no node yet gets no volume of a claim that is being deleted.
func usersOf(s *scene, it *item) []*item {
	return s.filter(kindPod, func(p *item) bool {
		pod := p.typed.(*corev1.Pod)
		return it.Kind == kindClaim && p.Namespace == it.Namespace && pod.Spec.NodeName != "" && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == it.Name
		})
	})
}

// endingUsersOf are those that are being deleted: of others it is no matter how they are.
func endingUsersOf(s *scene, it *item) []*item {
	return slices.DeleteFunc(usersOf(s, it), func(p *item) bool { return p.deleted == nil })
}

func foreignFinalizers(it *item) []string {
	var out []string
	for _, f := range it.meta.Finalizers {
		if _, known := removers[f]; !known {
			out = append(out, f)
		}
	}
	return out
}

// ownFinalizers are those that a running program takes off. That of the command that destroys clusters waits for all others, and a rule of its own tells of it.
func ownFinalizers(it *item) []string {
	return slices.DeleteFunc(slices.Clone(it.meta.Finalizers), func(f string) bool {
		_, known := removers[f]
		return !known || f == destroyFinalizer
	})
}

// inNamespace are objects that were read of a namespace and are being deleted.
func inNamespace(s *scene, it *item) []*item {
	var out []*item
	for _, o := range s.items {
		if o.Namespace == it.Name && o.deleted != nil {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *item) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// allSetsOf are the revisions of an ObjectDeployment that are still there.
func allSetsOf(s *scene, it *item) []*item {
	return s.filter(kindObjectSet, func(o *item) bool { return o.Namespace == it.Namespace && ownedBy(o, it) })
}
