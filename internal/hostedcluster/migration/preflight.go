package migration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/pause"
)

// Refusal is why a hosted cluster can't be moved now, and what helps.
type Refusal struct {
	Reason  string `json:"reason"` // CamelCase
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
}

func (r Refusal) String() string { return r.Message + ": " + r.Remedy }

// Report is what a look at a hosted cluster before its move found.
type Report struct {
	HostedCluster string    `json:"hostedCluster"` // namespace/name
	Direction     Direction `json:"direction"`
	Objects       int       `json:"objects"`
	Machines      int       `json:"machines"`
	Dependents    int       `json:"dependents"` // objects of other kinds that get new owners
	Refusals      []Refusal `json:"refusals"`
}

// Inventory is what a Report is made from.
type Inventory struct {
	Now        time.Time
	HC         *hyperv1.HostedCluster
	Pools      []hyperv1.NodePool
	Direction  Direction
	Namespace  *corev1.Namespace // nil: there is none
	From, To   []Object
	Dependents []Dependent
	Programs   []Program // without their pods
	Kinds      []Kind
	// Operator says why the operator that looks after the hosted cluster now isn't there, Speaks why its control-plane-operator can't work with
	// private types.
	Operator, Speaks error
	// Denied are requests that the operator has no right to.
	Denied []string
	// Refused are what the API server says of copies, made as a dry run.
	Refused []error
	Quotas  []corev1.ResourceQuota
	// Full is what the API server says if it takes no new object at all.
	Full error
}

// judge finds what speaks against a move. Nothing is read or written.
func judge(in Inventory) Report {
	r := Report{HostedCluster: names.BackReference(in.HC), Direction: in.Direction, Objects: len(in.From), Machines: machinesOf(in.From), Dependents: len(in.Dependents)}
	for _, rule := range []func(Inventory) []Refusal{clusterSettled, poolsSettled, namespaceOpen, kindsServed, objectsMovable, ownersKnown, nothingThere, programsSpeak, programsRun, rightsGranted, copiesAccepted, roomForCopies} {
		r.Refusals = append(r.Refusals, rule(in)...)
	}
	return r
}

func refuse(reason, remedy, message string, args ...any) []Refusal {
	return []Refusal{{Reason: reason, Message: fmt.Sprintf(message, args...), Remedy: remedy}}
}

func clusterSettled(in Inventory) []Refusal {
	hc, a := in.HC, in.HC.Annotations
	scope, private := a[hyperv1.HostedClusterScopeAnnotation], a[hyperv1.PrivateCAPITypesAnnotation] == "true"
	switch {
	case hc.DeletionTimestamp != nil:
		return refuse("Deleting", "nothing has to be done", "the hosted cluster is being deleted")
	case scope != "" && scope != hyperv1.LegacyScope:
		return refuse("ForeignScope", "leave it where it is: operators of other scopes can't move objects yet", "an operator with scope %q manages the hosted cluster", scope)
	case private == in.Direction.Private():
		return refuse("AlreadyMoved", "nothing has to be done", "the objects of Cluster API are already in %s", groupsOf(in.Direction))
	case !private && scope != hyperv1.LegacyScope:
		return refuse("Unknown", "wait for condition "+hyperv1.PrivateCAPITypes, "it is not known yet in which API groups the objects of Cluster API are")
	case a[hyperv1.PrivateCAPIHoldAnnotation] == "true":
		return refuse("Held", "remove annotation "+hyperv1.PrivateCAPIHoldAnnotation, "the hosted cluster is held back")
	case a[hyperv1.PrivateCAPIMigrationFailedAnnotation] != "" && in.Direction == Forward:
		return refuse("FailedBefore", "remove annotation "+hyperv1.PrivateCAPIMigrationFailedAnnotation+" once the cause is gone", "an earlier move was rolled back (%s)", a[hyperv1.PrivateCAPIMigrationFailedAnnotation])
	}
	if pause.At(hc.Spec.PausedUntil, in.Now).Active {
		return refuse("Paused", "end the pause", "spec.pausedUntil pauses the hosted cluster")
	}
	if c := conditions.Get(hc.Status.Conditions, hyperv1.ClusterVersionProgressing); c != nil && c.Status == metav1.ConditionTrue {
		return refuse("RollingOut", "wait until the version is rolled out", "the control plane is being upgraded")
	}
	return nil
}

func poolsSettled(in Inventory) (out []Refusal) {
	for i := range in.Pools {
		np := &in.Pools[i]
		for _, c := range np.Status.Conditions {
			rolls := c.Type == hyperv1.NodePoolUpdatingConfigConditionType || c.Type == hyperv1.NodePoolUpdatingVersionConditionType
			if rolls && c.Status == corev1.ConditionTrue {
				out = append(out, refuse("RollingOut", "wait until its machines are replaced", "NodePool %s is being rolled out", np.Name)...)
				break
			}
		}
		if np.DeletionTimestamp != nil {
			out = append(out, refuse("RollingOut", "wait until it is gone", "NodePool %s is being deleted", np.Name)...)
		}
	}
	return out
}

func namespaceOpen(in Inventory) []Refusal {
	if in.Namespace == nil || in.Namespace.DeletionTimestamp != nil {
		return refuse("NoNamespace", "nothing can be done", "namespace %s does not exist or is being deleted", names.NamespaceOf(in.HC))
	}
	return nil
}

// kindsServed looks for kinds with objects and without a twin.
func kindsServed(in Inventory) (out []Refusal) {
	served := map[string]bool{}
	for _, k := range in.Kinds {
		served[k.Group+"/"+k.Version+"/"+k.Resource] = true
	}
	told := map[string]bool{}
	for _, o := range in.From {
		twin := translate.Group(o.Resource.Group) + "/" + o.Resource.Version + "/" + o.Resource.Resource
		if !served[twin] && !told[twin] {
			told[twin] = true
			out = append(out, refuse("NoTwin", "install with --private-capi-types, or remove objects of a kind that HyperShift does not use", "%s would be moved to %s, which the API server does not serve", o.ID(), twin)...)
		}
	}
	return out
}

// patienceWithDeletion is how long the deletion of an object is waited for; one that takes longer is stuck, and is moved as it is.
const patienceWithDeletion = 30 * time.Minute

// knownFinalizers end in what programs use whose objects are moved with them.
var knownFinalizers = []string{"." + translate.Standard, "/" + translate.Standard, "hypershift.openshift.io"}

func objectsMovable(in Inventory) (out []Refusal) {
	for _, o := range in.From {
		for _, f := range o.GetFinalizers() {
			domain, _, _ := strings.Cut(f, "/")
			switch {
			case f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents:
				out = append(out, refuse("Deleting", "wait until it is gone", "%s is being deleted with what it owns", o.ID())...)
			case domain != translate.Standard && !slices.ContainsFunc(knownFinalizers, func(k string) bool { return strings.HasSuffix(domain, k) }):
				out = append(out, refuse("ForeignFinalizer", "have that program remove the finalizer: it would not recognise the copy", "%s has finalizer %s of a program that HyperShift does not run", o.ID(), f)...)
			}
		}
		if t := o.GetDeletionTimestamp(); t != nil && in.Now.Sub(t.Time) < patienceWithDeletion {
			out = append(out, refuse("Deleting", "wait until it is gone; after 30 minutes it is moved as it is", "%s is being deleted", o.ID())...)
		}
		if _, blocked := o.GetAnnotations()["clusterctl.cluster.x-k8s.io/block-move"]; blocked {
			out = append(out, refuse("Blocked", "wait until its provider removes annotation clusterctl.cluster.x-k8s.io/block-move", "%s must not be moved now", o.ID())...)
		}
	}
	return out
}

func ownersKnown(in Inventory) (out []Refusal) {
	known := map[types.UID]bool{}
	for _, o := range in.From {
		known[o.GetUID()] = true
	}
	for _, o := range in.From {
		for _, r := range o.GetOwnerReferences() {
			group, _, _ := strings.Cut(r.APIVersion, "/")
			if known[r.UID] || group == hyperv1.GroupVersion.Group {
				continue
			}
			out = append(out, refuse("ForeignOwner", "remove the owner reference, or have the object made by HyperShift", "%s is owned by %s %s of %s, which is not moved with it", o.ID(), r.Kind, r.Name, r.APIVersion)...)
		}
	}
	return out
}

func nothingThere(in Inventory) (out []Refusal) {
	for _, o := range in.To {
		if !o.isCopy() {
			out = append(out, refuse("BothGroups", "find out who created it, and delete it there", "%s already exists in group %s", o.ID(), o.GroupVersionKind().Group)...)
		}
	}
	return out
}

func programsSpeak(in Inventory) (out []Refusal) {
	if in.Operator != nil {
		out = append(out, refuse("NoOperator", "run hypershift install --private-capi-types again", "%v", in.Operator)...)
	}
	if in.Speaks != nil && in.Direction == Forward {
		out = append(out, refuse("OldControlPlaneOperator", "upgrade the hosted cluster, or name a newer image by annotation "+hyperv1.ControlPlaneOperatorImageAnnotation, "%v", in.Speaks)...)
	}
	return out
}

// programsRun: after the commit everything stays paused until each program runs, and one that does not run now would not run then. On the way back
// that keeps nobody: it may be private types that keep a program from running.
func programsRun(in Inventory) (out []Refusal) {
	if in.Direction == Reverse {
		return nil
	}
	for _, p := range in.Programs {
		if p.Replicas > 0 && !p.Runs {
			out = append(out, refuse("ProgramNotRunning", "find out from its pods and events why it does not run, for example an image that can't be pulled or a node without room",
				"no replica of Deployment %s is available", p.Name)...)
		}
	}
	return out
}

func rightsGranted(in Inventory) []Refusal {
	if len(in.Denied) == 0 {
		return nil
	}
	return refuse("NoRights", "run hypershift install --private-capi-types again, which grants them", "the operator may not %s", some(in.Denied))
}

func copiesAccepted(in Inventory) (out []Refusal) {
	for _, err := range in.Refused {
		if apierrors.IsForbidden(err) && len(in.Denied) > 0 {
			continue // for want of rights, which is told
		}
		out = append(out, refuse("SchemaLoss", "run hypershift install, which makes the definitions of both groups the same, and check policies and quotas", "a copy would not be accepted: %v", err)...)
	}
	return out
}

// roomForCopies: for a while there are twice as many objects as there were.
func roomForCopies(in Inventory) (out []Refusal) {
	if in.Full != nil {
		out = append(out, refuse("StorageFull", "make room in the management cluster's etcd (compact and defragment it, or raise its quota), and disarm its alarm", "the management cluster takes no new object: %v", in.Full)...)
	}
	copies := map[corev1.ResourceName]int64{}
	for _, o := range in.From {
		copies[corev1.ResourceName("count/"+o.Resource.Resource+"."+translate.Group(o.Resource.Group))]++
	}
	for _, q := range in.Quotas {
		for _, name := range slices.Sorted(maps.Keys(copies)) {
			hard, limited := q.Status.Hard[name]
			used := q.Status.Used[name]
			if left := hard.Value() - used.Value(); limited && left < copies[name] {
				out = append(out, refuse("Quota", "raise the quota, or remove it until the move is over", "ResourceQuota %s leaves room for %d more of %s, and %d are needed", q.Name, left, name, copies[name])...)
			}
		}
	}
	return out
}

// mostRefused bounds how many copies are tried after the first that were refused.
const mostRefused = 3

// Preflight looks for what speaks against a move. Nothing is written: copies are made as a dry run. Without a Deployer it is not found out what only
// the operator can tell: its rights, and whether the control-plane-operator knows private types.
func (c *Controller) Preflight(ctx context.Context, hc *hyperv1.HostedCluster, d Direction) (Report, error) {
	all, err := c.kinds()
	if err != nil {
		return Report{}, err
	}
	r, ns := reader{c.Direct, all}, names.NamespaceOf(hc)
	in := Inventory{Now: c.Clock.Now(), HC: hc, Direction: d, Kinds: all}
	namespace := &corev1.Namespace{}
	switch err := c.Direct.Get(ctx, client.ObjectKey{Name: ns}, namespace); {
	case err == nil:
		in.Namespace = namespace
	case client.IgnoreNotFound(err) != nil:
		return Report{}, err
	}
	if in.Pools, err = operator.NodePoolsOf(ctx, c.Direct, hc); err != nil {
		return Report{}, err
	}
	if in.From, err = r.objects(ctx, ns, !d.Private()); err != nil {
		return Report{}, err
	}
	if in.To, err = r.objects(ctx, ns, d.Private()); err != nil {
		return Report{}, err
	}
	uids := map[types.UID]bool{}
	for _, o := range in.From {
		uids[o.GetUID()] = true
	}
	if in.Dependents, err = r.dependents(ctx, ns, uids); apierrors.IsForbidden(err) {
		in.Denied = append(in.Denied, "list every kind: "+err.Error())
	} else if err != nil {
		return Report{}, err
	}
	if in.Programs, err = r.deployments(ctx, ns, func(*appsv1.Deployment) (int, error) { return 0, nil }); err != nil {
		return Report{}, err
	}
	if c.Deployer != nil {
		in.Speaks = c.Deployer.Speaks(ctx, hc)
	}
	if in.Operator, err = c.operatorMissing(ctx); err != nil {
		return Report{}, err
	}
	if c.Deployer != nil { // a person's rights say nothing about the operator's
		denied, err := c.denied(ctx, ns, in)
		if err != nil {
			return Report{}, err
		}
		in.Denied = append(in.Denied, denied...)
	}
	quotas := &corev1.ResourceQuotaList{}
	if err := c.Direct.List(ctx, quotas, client.InNamespace(ns)); err != nil && !apierrors.IsForbidden(err) {
		return Report{}, fmt.Errorf("listing ResourceQuotas in %s: %w", ns, err)
	}
	in.Quotas, in.Full = quotas.Items, c.storageFull(ctx)
	in.Refused = c.tryCopies(ctx, in.From)
	return judge(in), nil
}

// storageFull says that the API server's storage takes no new object. It asks for one that is there: storage without room refuses that before it
// looks, and otherwise nothing is written. Dry runs never get so far.
func (c *Controller) storageFull(ctx context.Context) error {
	there := &corev1.ConfigMap{}
	if c.Direct.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: StateName}, there) != nil {
		return nil //nolint:nilerr // because there is nothing to ask for, or nobody who may
	}
	err := c.Direct.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: StateName}, Data: there.Data})
	if err != nil && strings.Contains(err.Error(), "database space exceeded") { // etcd's words; the API server has none of its own
		return err
	}
	return nil
}

// denied asks the API server which of the requests of a move it would not take from us.
func (c *Controller) denied(ctx context.Context, ns string, in Inventory) (out []string, err error) {
	verbs := map[schema.GroupResource][]string{
		{Group: "apps", Resource: "deployments"}: {"patch"}, {Resource: "configmaps"}: {"create", "update"}, {Group: "coordination.k8s.io", Resource: "leases"}: {"delete"},
		{Group: hyperv1.GroupVersion.Group, Resource: "hostedcontrolplanes"}: {"patch"},
	}
	for _, d := range in.Dependents {
		verbs[d.Resource.GroupResource()] = []string{"patch"}
	}
	for _, o := range in.From {
		verbs[o.Resource.GroupResource()] = []string{"patch", "delete"}
		twin := o.Resource.GroupResource()
		twin.Group = translate.Group(twin.Group)
		verbs[twin] = []string{"create", "patch", "delete"}
		twin.Resource += "/status"
		verbs[twin] = []string{"patch"}
	}
	for resource, list := range verbs {
		name, sub, _ := strings.Cut(resource.Resource, "/")
		for _, verb := range list {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: ns, Verb: verb, Group: resource.Group, Resource: name, Subresource: sub,
			}}}
			if err := c.Direct.Create(ctx, review); err != nil {
				return nil, fmt.Errorf("asking for rights: %w", err)
			}
			if !review.Status.Allowed {
				out = append(out, verb+" "+resource.String())
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// tryCopies asks the API server whether it would take copies.
func (c *Controller) tryCopies(ctx context.Context, objs []Object) (refused []error) {
	for _, o := range objs {
		made, err := copyOf(o, nil)
		if err == nil {
			unstructured.RemoveNestedField(made.Object, "metadata", "managedFields")
			unstructured.RemoveNestedField(made.Object, "metadata", "ownerReferences") // their UIDs are not there yet
			unstructured.RemoveNestedField(made.Object, "status")
			err = client.NewDryRunClient(c.Direct).Create(ctx, made, client.FieldOwner(fieldOwner), client.FieldValidation(metav1.FieldValidationStrict))
		}
		if err == nil || !permanent(err) {
			continue
		}
		if refused = append(refused, fmt.Errorf("%s: %w", o.ID(), err)); len(refused) >= mostRefused {
			break
		}
	}
	return refused
}

// operatorMissing says why nobody would acknowledge the lock, or look after the hosted cluster when it is moved back.
func (c *Controller) operatorMissing(ctx context.Context) (error, error) {
	deployment := &appsv1.Deployment{}
	err := c.Direct.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: LegacyDeployment}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil || deployment.Status.AvailableReplicas == 0 {
		return fmt.Errorf("the operator for standard types, Deployment %s/%s, is not there or not available", c.Namespace, LegacyDeployment), nil
	}
	return nil, nil
}

// LegacyDeployment runs the operator for hosted clusters whose objects are in the standard groups.
const LegacyDeployment = "operator-legacy"
