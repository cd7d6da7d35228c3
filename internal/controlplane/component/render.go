package component

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
)

// Rendered is everything that a component consists of, in the order in which it is applied.
type Rendered struct {
	// Manifests are the objects beside the workload.
	Manifests []client.Object
	// Unwanted are manifests whose predicate does not hold: deleted when they are there and ours.
	Unwanted []client.Object
	// Workload comes last, when all that it mounts is there.
	Workload client.Object

	locked map[client.Object]bool // those of Manifests that are written with a lock
}

// Render returns the objects of the component for ctx. It writes nothing, and gives equal objects for an equal context and
// equal content behind its Reader.
func (c *WorkloadComponent) Render(ctx WorkloadContext) (*Rendered, error) {
	ctx = ctx.complete()
	out := &Rendered{}
	for _, m := range c.manifests {
		if err := c.renderManifest(ctx, m, out); err != nil {
			return nil, fmt.Errorf("rendering %s: %w", m.file, err)
		}
	}
	if c.kubeconfig.wanted(ctx) {
		secret, err := c.kubeconfig.render(ctx, c.name)
		if err != nil {
			return nil, fmt.Errorf("rendering the ServiceAccount kubeconfig: %w", err)
		}
		c.own(ctx, secret)
		out.Manifests = append(out.Manifests, secret)
	}

	workload := c.workload.copyOf()
	workload.SetName(c.name)
	c.own(ctx, workload)
	if c.adapt != nil {
		if err := c.adapt(ctx, workload); err != nil {
			return nil, fmt.Errorf("adapting the workload: %w", err)
		}
	}
	live, err := c.live(ctx)
	if err != nil {
		return nil, err
	}
	s := &scope{ctx: ctx, c: c, workload: workload, template: podTemplate(workload), live: live, rendered: out.Manifests}
	for _, apply := range defaultsOf(ctx) {
		if err := apply(s); err != nil {
			return nil, err
		}
	}
	if live != nil {
		keepImmutable(workload, live)
	}
	out.Workload = workload
	return out, nil
}

func (c *WorkloadComponent) renderManifest(ctx WorkloadContext, m asset, out *Rendered) error {
	adapter := c.adapters[m.file]
	if skip, err := adapter.skipped(ctx); skip || err != nil {
		return err
	}
	usable, err := accessible(ctx, m.object.GetObjectKind().GroupVersionKind())
	if err != nil || !usable {
		return err
	}
	obj := m.copyOf()
	obj.SetNamespace(ctx.HCP.Namespace)
	obj.SetName(adapter.nameOf(ctx.HCP, m))
	wanted, err := adapter.wanted(ctx)
	if err != nil {
		return err
	}
	if !wanted {
		out.Unwanted = append(out.Unwanted, obj)
		return nil
	}
	if isMonitor(obj) && !monitored(ctx) {
		out.Unwanted = append(out.Unwanted, obj)
		return nil
	}
	if isMonitor(obj) && !monitoringReady(ctx) {
		return nil
	}
	if adapter != nil && adapter.reconcileExisting {
		live := m.copyOf()
		err := ctx.Reader.Get(ctx.Context, client.ObjectKeyFromObject(obj), live)
		switch {
		case err == nil:
			obj = adopt(live, obj)
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("reading the live object: %w", err)
		}
	}
	c.own(ctx, obj)
	if isMonitor(obj) {
		if err := adaptMonitor(ctx, c.name, obj); err != nil {
			return fmt.Errorf("adapting the monitor: %w", err)
		}
	}
	if account, ok := obj.(*corev1.ServiceAccount); ok {
		if err := keepPullSecrets(ctx, account); err != nil {
			return err
		}
	}
	if adapter != nil {
		for _, adapt := range adapter.adapts {
			if err := adapt(ctx, obj); err != nil {
				return err
			}
		}
	}
	storedGroups(ctx, obj)
	liveRights(ctx, obj)
	out.Manifests = append(out.Manifests, obj)
	if adapter != nil && adapter.locked {
		if out.locked == nil {
			out.locked = map[client.Object]bool{}
		}
		out.locked[obj] = true
	}
	return nil
}

// keepPullSecrets adds to a ServiceAccount the pull secrets that it has in the cluster: the list has one owner as a whole, and
// controllers of the management cluster add theirs.
func keepPullSecrets(ctx WorkloadContext, account *corev1.ServiceAccount) error {
	live := &corev1.ServiceAccount{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKeyFromObject(account), live)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the live ServiceAccount: %w", err)
	}
	all := slices.Clone(live.ImagePullSecrets)
	for _, ref := range account.ImagePullSecrets {
		if !slices.Contains(all, ref) {
			all = append(all, ref)
		}
	}
	account.ImagePullSecrets = all
	return nil
}

// adopt makes a live object something that can be applied: without what the server and others put there.
func adopt(live, desired client.Object) client.Object {
	live.GetObjectKind().SetGroupVersionKind(desired.GetObjectKind().GroupVersionKind())
	live.SetManagedFields(nil)
	live.SetResourceVersion("")
	live.SetUID("")
	live.SetGeneration(0)
	live.SetCreationTimestamp(metav1.Time{})
	live.SetLabels(desired.GetLabels())
	live.SetAnnotations(desired.GetAnnotations())
	live.SetOwnerReferences(nil)
	return live
}

// own puts an object into the namespace of the control plane, with the HostedControlPlane as its owner.
func (c *WorkloadComponent) own(ctx WorkloadContext, obj client.Object) {
	obj.SetNamespace(ctx.HCP.Namespace)
	if !ctx.OmitOwnerReference {
		obj.SetOwnerReferences([]metav1.OwnerReference{ownerReference(ctx.HCP)})
	}
	switch o := obj.(type) {
	case *corev1.ServiceAccount:
		for _, ref := range o.ImagePullSecrets {
			if ref.Name == names.PullSecret {
				return
			}
		}
		o.ImagePullSecrets = append(o.ImagePullSecrets, corev1.LocalObjectReference{Name: names.PullSecret})
	case *rbacv1.RoleBinding:
		for i := range o.Subjects {
			if o.Subjects[i].Kind == rbacv1.ServiceAccountKind {
				o.Subjects[i].Namespace = ctx.HCP.Namespace
			}
		}
	}
}

func ownerReference(hcp *hyperv1.HostedControlPlane) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedControlPlane", Name: hcp.Name, UID: hcp.UID,
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
}

// live reads the workload as it is, nil when there is none.
func (c *WorkloadComponent) live(ctx WorkloadContext) (client.Object, error) {
	live := c.workload.copyOf()
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: c.name}, live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the live workload: %w", err)
	}
	return live, nil
}

// accessible says whether objects of a kind can be used: kinds of Kubernetes itself always, others when the management
// cluster has them and lets us.
func accessible(ctx WorkloadContext, gvk schema.GroupVersionKind) (bool, error) {
	if !strings.Contains(gvk.Group, ".") || strings.HasSuffix(gvk.Group, ".k8s.io") {
		return true, nil
	}
	if ctx.Capabilities == nil {
		return false, nil
	}
	return ctx.Capabilities.Accessible(ctx.Context, gvk)
}

// isMonitor says whether an object makes a Prometheus scrape something.
func isMonitor(obj client.Object) bool {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	return kind == "ServiceMonitor" || kind == "PodMonitor"
}

// monitoringReady says whether monitors are written: not before the hosted cluster has come up once, so that its start
// raises no alerts.
func monitoringReady(ctx WorkloadContext) bool {
	return ctx.EarlyMonitors || conditions.IsTrue(ctx.HCP.Status.Conditions, clusterVersionAvailable)
}

// clusterVersionAvailable is the condition of a HostedControlPlane that says that its hosted cluster has been complete.
const clusterVersionAvailable = "ClusterVersionAvailable"

// ImageTags are the tags of the release that the component's containers name, without those that are only added for some
// control planes. Tags of containers that an adapt function drops are among them.
func (c *WorkloadComponent) ImageTags() []string {
	var tags []string
	forEachContainer(&podTemplate(c.workload.object).Spec, func(container *corev1.Container) {
		if container.Image != "" {
			tags = append(tags, container.Image)
		}
	})
	return tags
}
