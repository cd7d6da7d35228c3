package why

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/engine/status"
)

// packageRules are about Packages and what is made of them.
var packageRules = []Rule{
	{ID: "package-image-unreadable", On: kindPackage, Condition: packagesv1.ConditionUnpacked, Is: no, Reasons: []string{packagesv1.ReasonImagePullBackOff}, State: Broken, Health: Blocked, Knows: true,
		Do: "correct spec.image or the pull secret; check that the registry answers"},
	{ID: "package-invalid", On: kindPackage, Condition: packagesv1.ConditionInvalid, Is: yes, State: Broken, Health: Blocked, Do: "correct the package, or spec.config, as the message says"},
	{ID: "package-invalid", On: kindPackage, Condition: packagesv1.ConditionUnpacked, Is: no, State: Broken, Health: Blocked, Do: "correct the package, or spec.config, as the message says"},
	{ID: "package-unseen", On: kindPackage, See: unseen, Sees: "its conditions are missing or older than the newest generation", Ask: []edge{packageOperators}, State: Broken, Do: "check the package operator: kubectl logs -n package-operator-system deployment/package-operator-manager"},
	{ID: "package-operator-down", On: kindPackage, See: keptByPackageOperator, Sees: "it is not available or progresses, to check the package operator", Ask: []edge{packageOperators}, Leads: true},
	{ID: "package-unavailable", On: kindPackage, Condition: packagesv1.ConditionAvailable, Is: no, Ask: []edge{deploymentOfPackage}, State: Broken, Young: beingRolledOut, Do: "repair the object that the message names"},
	{ID: "package-progressing", On: kindPackage, Condition: packagesv1.ConditionProgressing, Is: yes, Ask: []edge{deploymentOfPackage}, State: Waiting, Do: "wait: a revision is being rolled out"},
	{ID: "package-paused", On: kindPackage, Condition: packagesv1.ConditionPaused, Is: yes, State: Held, While: always, Do: "kubectl package unpause it: until then, nothing is written"},
	{ID: "package-outdated", On: kindPackage, Condition: packagesv1.ConditionEnvironmentOutdated, Is: yes, State: Waiting, Do: "wait: the rollout renders it again in its turn"},

	{ID: "object-deployment-unavailable", On: kindObjectDeployment, Condition: packagesv1.ConditionAvailable, Is: no, Ask: []edge{setsOf}, State: Broken, Young: beingRolledOut, Do: "repair the object that the newest revision names"},
	{ID: "object-deployment-progressing", On: kindObjectDeployment, Condition: packagesv1.ConditionProgressing, Is: yes, Ask: []edge{setsOf}, State: Waiting, Do: "wait: a revision is being rolled out"},
	{ID: "object-deployment-paused", On: kindObjectDeployment, Condition: packagesv1.ConditionPaused, Is: yes, State: Held, While: always, Do: "unpause it: until then, nothing is written"},

	{ID: "object-collision", On: kindObjectSet, Condition: packagesv1.ConditionAvailable, Is: no, Reasons: []string{packagesv1.ReasonCollisionDetected}, State: Broken,
		Do: "remove the existing object, or allow its adoption with collisionProtection"},
	{ID: "object-refused", On: kindObjectSet, Condition: packagesv1.ConditionAvailable, Is: no, Reasons: []string{packagesv1.ReasonPreflightError}, State: Broken,
		Do: "correct the object in the package: the API server would refuse it; nothing was written"},
	{ID: "target-unauthorized", On: kindObjectSet, Condition: packagesv1.ConditionAvailable, Is: no, Reasons: []string{packagesv1.ReasonTargetUnauthorized}, State: Broken, Do: "put another kubeconfig into the Secret: the target refuses this one"},
	{ID: "target-unreachable", On: kindObjectSet, Condition: packagesv1.ConditionAvailable, Is: no, Reasons: []string{packagesv1.ReasonTargetUnreachable}, Ask: []edge{connector, phasesOf, clusterOfNamespace}, State: Waiting,
		Do: "find out why the API server of the hosted cluster doesn't answer; it continues when it does"},
	{ID: "target-misbehaves", On: kindObjectSet, Condition: packagesv1.ConditionAvailable, Is: no, Reasons: []string{packagesv1.ReasonTargetMisbehaves}, State: Broken, Do: "check the API server of the hosted cluster: it sends answers that no API server should"},
	{ID: "probe-failed", On: kindObjectSet, Condition: packagesv1.ConditionAvailable, Is: no, Ask: []edge{phasesOf, objectsOf, connector}, State: Broken, Young: beingRolledOut, Do: "repair the object that the message names; the probe then passes by itself"},
	{ID: "objects-in-transition", On: kindObjectSet, Condition: packagesv1.ConditionInTransition, Is: yes, State: Waiting, Do: "wait: objects are being handed over from the previous revision"},

	{ID: "object-collision", On: kindObjectSetPhase, Condition: packagesv1.ConditionAvailable, Is: no, Reasons: []string{packagesv1.ReasonCollisionDetected}, State: Broken,
		Do: "remove the existing object, or allow its adoption with collisionProtection"},
	{ID: "object-refused", On: kindObjectSetPhase, Condition: packagesv1.ConditionAvailable, Is: no, Reasons: []string{packagesv1.ReasonPreflightError}, State: Broken,
		Do: "correct the object in the package: the API server would refuse it; nothing was written"},
	{ID: "target-unauthorized", On: kindObjectSetPhase, Condition: packagesv1.ConditionAvailable, Is: no, Reasons: []string{packagesv1.ReasonTargetUnauthorized}, State: Broken, Do: "put another kubeconfig into the Secret: the target refuses this one"},
	{ID: "target-unreachable", On: kindObjectSetPhase, Condition: packagesv1.ConditionAvailable, Is: no, Reasons: []string{packagesv1.ReasonTargetUnreachable}, Ask: []edge{clusterOfNamespace, connector}, State: Waiting,
		Do: "find out why the API server of the hosted cluster doesn't answer; it continues when it does"},
	{ID: "target-misbehaves", On: kindObjectSetPhase, Condition: packagesv1.ConditionAvailable, Is: no, Reasons: []string{packagesv1.ReasonTargetMisbehaves}, State: Broken, Do: "check the API server of the hosted cluster: it sends answers that no API server should"},
	{ID: "probe-failed", On: kindObjectSetPhase, Condition: packagesv1.ConditionAvailable, Is: no, Ask: []edge{connector}, State: Broken, Young: beingRolledOut, Do: "repair the object that the message names; the probe then passes by itself"},
	{ID: "connector-silent", On: kindObjectSetPhase, See: saysNothing, Sees: "its newest generation has no status", Ask: []edge{connector}, State: Waiting, Do: "wait; if it continues, check that the connector of the hosted cluster runs"},
}

// fleetRules are about HostedClusterPackages.
var fleetRules = []Rule{
	{ID: "selector-invalid", On: kindHostedClusterPackage, See: invalidSelector, Sees: "`spec.hostedClusterSelector` is invalid", State: Broken, Do: "correct spec.hostedClusterSelector: until then, nothing is selected"},
	{ID: "fleet-unseen", On: kindHostedClusterPackage, See: unseenFleet, Sees: "`status.observedGeneration` is not the newest", Ask: []edge{packageOperators}, State: Broken, Do: "read the package operator's log; `kubectl events --for` the object shows what it could not apply"},
	{ID: "rollout-waits-for-package", On: kindHostedClusterPackage, See: fleetUnavailable, Sees: "`Progressing` says that unavailable Packages or clusters use up maxUnavailable", Ask: []edge{processed}, State: Broken,
		Do: "repair what is unavailable, because it uses up maxUnavailable; or run `hypershift rollout undo`"},
	{ID: "package-not-writable", On: kindHostedClusterPackage, Condition: packagesv1.ConditionProgressing, Is: yes, Says: regexp.MustCompile(`Can't be written`), Ask: []edge{processed}, State: Broken,
		Do: "follow the message about the Packages that can't be written: another owner, a quota or a webhook"},
	{ID: "rollout-paused", On: kindHostedClusterPackage, See: fleetPaused, Sees: "annotation `package-operator.run/rollout-paused` is true", State: Held, While: always, Do: "hypershift rollout resume hostedclusterpackage/NAME"},
	{ID: "removal-held", On: kindHostedClusterPackage, Condition: packagesv1.ConditionRemovalHeld, Is: yes, State: Held, Do: "correct the selector, or confirm with the annotation that the message names"},
	{ID: "package-of-fleet-paused", On: kindHostedClusterPackage, Condition: packagesv1.ConditionHasPausedPackage, Is: yes, Ask: []edge{pausedPackages}, State: Held, Do: "kubectl package unpause the paused Package: its group waits for it"},
	{ID: "rollout-soaks", On: kindHostedClusterPackage, Condition: packagesv1.ConditionProgressing, Is: yes, Says: regexp.MustCompile(`It soaks`), State: Held, Health: Progressing, Do: "wait: annotation package-operator.run/rollout-soak says how long a group has to stay healthy"},
	{ID: "rollout-returned", On: kindHostedClusterPackage, Condition: packagesv1.ConditionProgressing, Is: yes, Says: regexp.MustCompile(status.Returned), State: Broken, Do: "correct the template: it failed where the message says, and was rolled back there"},
	{ID: "rollout-waits-for-cluster", On: kindHostedClusterPackage, Condition: packagesv1.ConditionProgressing, Is: yes, Says: regexp.MustCompile(`not Available, and come last|can't take a package now`), Ask: []edge{processed}, State: Held,
		Do: "repair the hosted clusters in the message: see hypershift why hostedcluster/NAME"},
	{ID: "rollout-under-way", On: kindHostedClusterPackage, Condition: packagesv1.ConditionProgressing, Is: yes, Ask: []edge{processed}, State: Waiting, Do: "wait: Packages are changed one after another, within maxUnavailable"},
}

func keptByPackageOperator(s *scene, it *item) *seen {
	if len(packageOperators(s, it)) == 0 || conditions.IsTrue(it.conditions, packagesv1.ConditionAvailable) && !conditions.IsTrue(it.conditions, packagesv1.ConditionProgressing) {
		return nil
	}
	return &seen{field: "status", text: "kept by the package operator"}
}

// rollsOutIn is how long the objects of a new revision may take to be ready before that is told as trouble.
const rollsOutIn = 2 * time.Minute

// beingRolledOut: a package, or a part of one, whose newest revision is new.
func beingRolledOut(s *scene, it *item) bool {
	since := it.created // an ObjectSet and its phases are of one revision
	if it.Kind == kindPackage || it.Kind == kindObjectDeployment {
		c := conditions.Get(it.conditions, packagesv1.ConditionProgressing)
		if c == nil || c.Status != yes {
			return false
		}
		since = c.LastTransitionTime.Time
	}
	return s.Now.Sub(since) < rollsOutIn
}

func saysNothing(s *scene, it *item) *seen {
	if c := conditions.Get(it.conditions, packagesv1.ConditionAvailable); c != nil && c.ObservedGeneration >= it.meta.Generation {
		return nil
	}
	return &seen{field: "status.conditions[Available]", text: "no status for its newest generation yet", since: it.created,
		cause: fmt.Sprintf("phase %s has not been processed yet", it.Name)}
}

func invalidSelector(s *scene, it *item) *seen {
	p := it.typed.(*packagesv1.HostedClusterPackage)
	if _, err := metav1.LabelSelectorAsSelector(p.Spec.HostedClusterSelector); err != nil {
		return &seen{field: "spec.hostedClusterSelector", text: Clean(err.Error()), cause: "the selector is invalid: " + Clean(err.Error())}
	}
	return nil
}

func unseenFleet(s *scene, it *item) *seen {
	p := it.typed.(*packagesv1.HostedClusterPackage)
	if int64(p.Status.ObservedGeneration) >= p.Generation {
		return nil
	}
	since := specChanged(it.meta)
	saw := &seen{field: "status.observedGeneration", text: fmt.Sprintf("%d of %d", p.Status.ObservedGeneration, p.Generation), since: since,
		cause: "the controller has not processed the newest template yet"}
	if w := s.warnings[it.Object]; w != nil {
		saw.cause += ": " + Clean(w.Message)
	} else if s.Now.Sub(since) < unseenAfter {
		saw.state, saw.do = Waiting, "wait: it is taken up in a moment"
	}
	return saw
}

// fleetUnavailable: Packages are down and use the budget up.
func fleetUnavailable(_ *scene, it *item) *seen {
	c := conditions.Get(it.conditions, packagesv1.ConditionProgressing)
	if c == nil || c.Status != yes {
		return nil
	}
	// The controller's sentence that matters, not those about groups.
	for _, sentence := range strings.SplitAfter(c.Message, ". ") {
		if strings.HasPrefix(sentence, "Unavailable, which uses up") || strings.HasPrefix(sentence, "What is being updated uses up") {
			saw := ofCondition(*c)
			saw.cause = Clean(sentence)
			return saw
		}
	}
	return nil
}

func fleetPaused(_ *scene, it *item) *seen {
	if it.meta.Annotations[packagesv1.RolloutPausedAnnotation] != "true" {
		return nil
	}
	return &seen{field: "metadata.annotations[" + packagesv1.RolloutPausedAnnotation + "]", text: "true", cause: "the rollout is paused"}
}

// Edges between packages and what they consist of.

func packageOperators(s *scene, _ *item) []*item {
	if s.PackageOperatorNamespace == "" {
		return nil
	}
	in := func(o *item) bool { return o.Namespace == s.PackageOperatorNamespace }
	return append(s.filter(kindDeployment, in), s.filter(kindLease, in)...)
}

func deploymentOfPackage(s *scene, it *item) []*item {
	return s.named(kindObjectDeployment, it.Namespace, it.Name)
}

// setsOf are the revisions of an ObjectDeployment, the newest alone: those before are on their way out.
func setsOf(s *scene, it *item) []*item {
	sets := s.filter(kindObjectSet, func(o *item) bool {
		return o.Namespace == it.Namespace && slices.ContainsFunc(o.meta.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == it.Kind && r.Name == it.Name })
	})
	if len(sets) < 2 {
		return sets
	}
	return []*item{slices.MaxFunc(sets, func(a, b *item) int {
		return int(a.typed.(*packagesv1.ObjectSet).Spec.Revision - b.typed.(*packagesv1.ObjectSet).Spec.Revision)
	})}
}

func phasesOf(s *scene, it *item) []*item {
	return s.filter(kindObjectSetPhase, func(o *item) bool {
		return o.Namespace == it.Namespace && slices.ContainsFunc(o.meta.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == it.Kind && r.Name == it.Name })
	})
}

// objectsOf are the workloads that a revision controls.
func objectsOf(s *scene, it *item) []*item {
	var out []*item
	for _, ref := range it.typed.(*packagesv1.ObjectSet).Status.ControllerOf {
		if ref.Kind == kindDeployment || ref.Kind == kindStatefulSet {
			out = append(out, s.named(ref.Kind, ref.Namespace, ref.Name)...)
		}
	}
	return out
}

// connector is the program that brings phases into the hosted cluster of this namespace.
func connector(s *scene, it *item) []*item {
	return s.filter(kindDeployment, func(d *item) bool { return d.Namespace == it.Namespace && strings.Contains(d.Name, connectorName) })
}

// connectorName is a part of the names of connectors' Deployments.
const connectorName = "remote-phase-manager"

// clusterOfNamespace is the control plane whose namespace this is.
func clusterOfNamespace(s *scene, it *item) []*item {
	return s.filter(kindHostedControlPlane, func(h *item) bool { return h.Namespace == it.Namespace })
}

// processed are the Packages that a rollout is changing.
func processed(s *scene, it *item) []*item {
	var out []*item
	for _, ref := range it.typed.(*packagesv1.HostedClusterPackage).Status.Processing {
		out = append(out, s.named(kindPackage, ref.Namespace, ref.Name)...)
	}
	if len(out) > 0 {
		return out
	}
	return append(s.filter(kindPackage, func(p *item) bool { return ownedBy(p, it) }), s.filter(kindHostedCluster, func(c *item) bool {
		return strings.Contains(message(it, packagesv1.ConditionProgressing), names.BackReference(c.meta))
	})...)
}

func pausedPackages(s *scene, it *item) []*item {
	return s.filter(kindPackage, func(p *item) bool {
		return ownedBy(p, it) && conditions.IsTrue(p.conditions, packagesv1.ConditionPaused)
	})
}

func ownedBy(it, owner *item) bool {
	return slices.ContainsFunc(it.meta.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == owner.Kind && r.Name == owner.Name })
}

func message(it *item, condition string) string {
	if c := conditions.Get(it.conditions, condition); c != nil {
		return c.Message
	}
	return ""
}
