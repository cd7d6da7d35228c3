package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/operator"
)

const (
	// managerLease is that of Cluster API's manager, which doesn't give it back.
	managerLease = "controller-leader-election-capi"
	// beforeAnnotation is how many replicas a Deployment had before a move. It is written in the patch that changes them, and stays whoever
	// writes it a second time.
	beforeAnnotation = "hypershift.openshift.io/pre-migration-replicas"
	// page is how many objects are read at once, maxObjects how many of one kind there may be in a namespace.
	page       = 500
	maxObjects = 50000
)

// Kind is a kind that the management cluster serves.
type Kind struct {
	schema.GroupVersionKind
	Resource string
	// Group of Cluster API's, standard or private.
	Ours bool
}

func (k Kind) resource() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.Resource)
}

// kinds are those whose objects are in namespaces and can be listed and patched. What is not served for now (a broken aggregated API) is left out,
// but no group of Cluster API's may be.
func kinds(d discovery.DiscoveryInterface) ([]Kind, error) {
	lists, err := discovery.ServerPreferredNamespacedResources(d)
	var partial *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &partial) {
		for gv := range partial.Groups {
			if translate.InDomain(gv.Group) {
				return nil, fmt.Errorf("asking for kinds: %w", err)
			}
		}
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking for kinds: %w", err)
	}
	var out []Kind
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("asking for kinds: %w", err)
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "patch") || r.Kind == "Event" {
				continue
			}
			out = append(out, Kind{gv.WithKind(r.Kind), r.Name, translate.InDomain(gv.Group)})
		}
	}
	slices.SortFunc(out, func(a, b Kind) int { return strings.Compare(a.String(), b.String()) })
	return out, nil
}

// reader reads the management cluster under the names that are stored there.
type reader struct {
	client.Client
	kinds []Kind
}

// readers is how many kinds are listed at once: there are some eighty, and nothing scales while they are.
const readers = 8

// all lists kinds side by side, and gives what was found of them in their order.
func all[T any](ctx context.Context, kinds []Kind, list func(context.Context, Kind) ([]T, error)) ([]T, error) {
	found := make([][]T, len(kinds))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, k := range kinds {
		group.Go(func() (err error) {
			found[i], err = list(ctx, k)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(found...), nil
}

// objects of Cluster API in a namespace, in HyperShift's own groups or the standard ones.
func (r reader) objects(ctx context.Context, ns string, private bool) ([]Object, error) {
	return all(ctx, r.kinds, func(ctx context.Context, k Kind) (out []Object, err error) {
		if !k.Ours || translate.IsPrivate(k.Group) != private {
			return nil, nil
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		err = r.pages(ctx, list, ns, func() {
			for i := range list.Items {
				out = append(out, Object{&list.Items[i], k.resource()})
			}
		})
		return out, err
	})
}

// dependents of uids in a namespace, of other groups than Cluster API's.
func (r reader) dependents(ctx context.Context, ns string, uids map[types.UID]bool) ([]Dependent, error) {
	return all(ctx, r.kinds, func(ctx context.Context, k Kind) (out []Dependent, err error) {
		if k.Ours {
			return nil, nil
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		err = r.pages(ctx, list, ns, func() {
			for _, item := range list.Items {
				if slices.ContainsFunc(item.OwnerReferences, func(o metav1.OwnerReference) bool { return uids[o.UID] }) {
					out = append(out, Dependent{Resource: k.resource(), Name: item.Name, UID: item.UID, ResourceVersion: item.ResourceVersion, Owners: item.OwnerReferences})
				}
			}
		})
		return out, err
	})
}

func (r reader) pages(ctx context.Context, list client.ObjectList, ns string, each func()) error {
	seen := 0
	for err := range read.Pages(ctx, r.Client, list, page, client.InNamespace(ns)) {
		if seen > maxObjects {
			return fmt.Errorf("namespace %s has more than %d objects of %s", ns, maxObjects, list.GetObjectKind().GroupVersionKind())
		}
		if err != nil {
			return fmt.Errorf("listing %s in %s: %w", list.GetObjectKind().GroupVersionKind(), ns, err)
		}
		each()
		seen += page
	}
	return nil
}

// programs are the Deployments of programNames that there are. Their pods are read after them, and the control-plane-operator, which could start
// others, first of all.
func (r reader) programs(ctx context.Context, ns string) ([]Program, error) {
	return r.deployments(ctx, ns, func(d *appsv1.Deployment) (int, error) {
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err != nil {
			return 0, fmt.Errorf("reading the selector of Deployment %s/%s: %w", ns, d.Name, err)
		}
		pods := &metav1.PartialObjectMetadataList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		if err := r.List(ctx, pods, client.InNamespace(ns), client.MatchingLabelsSelector{Selector: selector}, unended); err != nil {
			return 0, fmt.Errorf("listing the pods of Deployment %s/%s: %w", ns, d.Name, err)
		}
		return len(pods.Items), nil
	})
}

// unended are pods with processes. One that was evicted, for example, has none, and stays there: its ReplicaSet does not count it.
var unended = client.MatchingFieldsSelector{Selector: fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)), fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)))}

// deployments are the programs, with as many pods as pods says of each.
func (r reader) deployments(ctx context.Context, ns string, pods func(*appsv1.Deployment) (int, error)) ([]Program, error) {
	var out []Program
	for _, name := range programNames {
		d, err := read.Optional(ctx, r.Client, client.ObjectKey{Namespace: ns, Name: name}, &appsv1.Deployment{})
		if err != nil {
			return nil, err
		}
		if d == nil {
			continue
		}
		var rights []string
		if name == karpenter {
			if rights, err = r.rights(ctx, ns, name); err != nil {
				return nil, err
			}
			if len(rights) == 0 {
				continue // a payload's
			}
		}
		n, err := pods(d)
		if err != nil {
			return nil, err
		}
		p := programOf(d, n)
		p.Rights = rights
		out = append(out, p)
	}
	return out, nil
}

func programOf(d *appsv1.Deployment, pods int) Program {
	p := Program{Name: d.Name, UID: d.UID, Replicas: 1, Pods: pods, Runs: d.Status.AvailableReplicas > 0}
	if d.Spec.Replicas != nil {
		p.Replicas = *d.Spec.Replicas
	}
	seen := d.Status.ObservedGeneration >= d.Generation
	p.Settled = seen && d.Status.Replicas == 0
	older := d.Status.Replicas - d.Status.UpdatedReplicas
	p.Available = seen && p.Replicas > 0 && d.Status.AvailableReplicas > older // were all older ones available, one more would be
	if n, err := strconv.ParseInt(d.Annotations[beforeAnnotation], 10, 32); err == nil && n >= 0 {
		before := int32(n)
		p.Before = &before
	}
	return p
}

// rights are the groups of Cluster API in the Roles of programs.
func (r reader) rights(ctx context.Context, ns string, programs ...string) ([]string, error) {
	var out []string
	for _, name := range programs {
		role, err := read.Optional(ctx, r.Client, client.ObjectKey{Namespace: ns, Name: name}, &rbacv1.Role{})
		if err != nil {
			return nil, err
		}
		if role == nil {
			continue
		}
		for _, rule := range role.Rules {
			for _, g := range rule.APIGroups {
				if translate.InDomain(g) {
					out = append(out, g)
				}
			}
		}
	}
	return out, nil
}

// journal reads the journal of a hosted cluster's move, nil when there is none, with the ConfigMap.
func readJournal(ctx context.Context, c client.Reader, ns string) (*Journal, *corev1.ConfigMap, error) {
	cm, err := read.Optional(ctx, c, client.ObjectKey{Namespace: ns, Name: JournalName}, &corev1.ConfigMap{})
	if err != nil || cm == nil {
		return nil, nil, err
	}
	j := &Journal{}
	if err := json.Unmarshal([]byte(cm.Data[journalKey]), j); err != nil {
		return nil, nil, fmt.Errorf("reading the journal in ConfigMap %s/%s: %w", ns, JournalName, err)
	}
	return j, cm, nil
}

// needs tells which objects the plan of a phase looks at.
func needs(p Phase) (objects, dependents bool) {
	switch p {
	case Quiesce, Switch, ScaleUp, Available, Completed, RolledBack:
		return false, false
	case Repoint, Verify, Commit, Release, RollBack:
		return true, true
	}
	return true, false
}

// observe reads what the next plan looks at.
func (c *Controller) observe(ctx context.Context, hc *hyperv1.HostedCluster, j *Journal) (Observed, error) {
	all, err := c.kinds()
	if err != nil {
		return Observed{}, err
	}
	o, err := reader{c.Direct, all}.observe(ctx, hc, j)
	c.start.mu.Lock()
	defer c.start.mu.Unlock()
	o.Now, o.Deployed = c.Clock.Now(), c.start.deployed[client.ObjectKeyFromObject(hc)]
	return o, err
}

// observe reads what the next plan looks at.
func (r reader) observe(ctx context.Context, hc *hyperv1.HostedCluster, j *Journal) (o Observed, err error) {
	ns := names.NamespaceOf(hc)
	o.HC, o.Journal = hc, j
	if o.Pools, err = operator.NodePoolsOf(ctx, r.Client, hc); err != nil {
		return o, err
	}
	if o.private() != j.Direction.Private() && !o.acknowledged() && j.Phase != RollBack {
		return o, nil // nothing is done before that, so nothing has to be seen
	}
	if o.Programs, err = r.programs(ctx, ns); err != nil {
		return o, err
	}
	lease, err := read.Optional(ctx, r.Client, client.ObjectKey{Namespace: ns, Name: managerLease}, &coordinationv1.Lease{})
	if err != nil {
		return o, err
	}
	if lease != nil {
		o.Lease = &lease.ObjectMeta
	}
	if o.HCP, err = read.Optional(ctx, r.Client, client.ObjectKey{Namespace: ns, Name: hc.Name}, &hyperv1.HostedControlPlane{}); err != nil {
		return o, err
	}
	if o.Rights, err = r.rights(ctx, ns, names.ClusterAPI, names.CAPIProvider); err != nil {
		return o, err
	}
	if o.private() != j.Direction.Private() && !o.acknowledged() && o.begun() {
		return o, nil // it was not left untouched, which programs show alone
	}
	objects, dependents := needs(j.Phase)
	if !objects {
		return o, nil
	}
	if o.From, err = r.objects(ctx, ns, !j.Direction.Private()); err != nil {
		return o, err
	}
	if o.To, err = r.objects(ctx, ns, j.Direction.Private()); err != nil || !dependents {
		return o, err
	}
	if j.Phase == RollBack && !slices.ContainsFunc(o.To, Object.isCopy) {
		return o, nil // nothing is owned by copies, and a kind that can't be listed keeps nothing paused
	}
	uids := map[types.UID]bool{}
	for _, obj := range slices.Concat(o.From, o.To) {
		uids[obj.GetUID()] = true
	}
	o.Dependents, err = r.dependents(ctx, ns, uids)
	return o, err
}

// begun looks for traces of a move of a hosted cluster that has no journal.
func (r reader) begun(ctx context.Context, ns string) (_ bool, err error) {
	o := Observed{}
	if o.Programs, err = r.deployments(ctx, ns, func(*appsv1.Deployment) (int, error) { return 0, nil }); err != nil {
		return false, err
	}
	if o.From, err = r.objects(ctx, ns, false); err != nil {
		return false, err
	}
	o.To, err = r.objects(ctx, ns, true)
	return o.begun(), err
}

// isGone tells that somebody else was faster, or that it was done before a crash.
func isGone(err error) bool { return client.IgnoreNotFound(err) == nil || meta.IsNoMatchError(err) }
