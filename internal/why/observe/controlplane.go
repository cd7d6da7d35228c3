package observe

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/why"
)

// controlPlane reads the namespace of a control plane.
func (r *run) controlPlane(ctx context.Context, ns, name string) {
	r.go1(func() {
		space := &corev1.Namespace{}
		if err := r.get(ctx, client.ObjectKey{Name: ns}, space); err != nil {
			r.unread("Namespace", err)
			return
		}
		r.add(func(s *why.Snapshot) { s.Namespaces = append(s.Namespaces, *space) })
	})
	r.go1(func() {
		hcp := &hyperv1.HostedControlPlane{}
		if err := r.get(ctx, client.ObjectKey{Namespace: ns, Name: name}, hcp); err != nil {
			r.unread("HostedControlPlane", err)
			return
		}
		r.add(func(s *why.Snapshot) { s.HostedControlPlanes = append(s.HostedControlPlanes, *hcp) })
	})
	list(r, ctx, "ControlPlaneComponent", &hyperv1.ControlPlaneComponentList{}, func(s *why.Snapshot, l *hyperv1.ControlPlaneComponentList) {
		s.Components = append(s.Components, l.Items...)
	}, client.InNamespace(ns))
	list(r, ctx, "StatefulSet", &appsv1.StatefulSetList{}, func(s *why.Snapshot, l *appsv1.StatefulSetList) { s.StatefulSets = append(s.StatefulSets, l.Items...) }, client.InNamespace(ns))
	list(r, ctx, "PersistentVolumeClaim", &corev1.PersistentVolumeClaimList{}, func(s *why.Snapshot, l *corev1.PersistentVolumeClaimList) { s.Claims = append(s.Claims, l.Items...) }, client.InNamespace(ns))
	list(r, ctx, "Node", &corev1.NodeList{}, func(s *why.Snapshot, l *corev1.NodeList) { s.ManagementNodes = append(s.ManagementNodes, l.Items...) })
	r.workloads(ctx, ns)
	r.warnings(ctx, ns, "", "")
}

// workloads reads Deployments and pods of a namespace.
func (r *run) workloads(ctx context.Context, ns string) {
	list(r, ctx, "Deployment", &appsv1.DeploymentList{}, func(s *why.Snapshot, l *appsv1.DeploymentList) { s.Deployments = append(s.Deployments, l.Items...) }, client.InNamespace(ns))
	list(r, ctx, "Pod", &corev1.PodList{}, func(s *why.Snapshot, l *corev1.PodList) { s.Pods = append(s.Pods, l.Items...) }, client.InNamespace(ns))
}

// warnings reads the events of type Warning of a namespace, or all of one object if one is named.
func (r *run) warnings(ctx context.Context, ns, kind, name string) {
	fields := client.MatchingFields{"type": corev1.EventTypeWarning}
	if name != "" { // the end of some trouble is no warning
		fields = client.MatchingFields{"involvedObject.kind": kind, "involvedObject.name": name}
	}
	list(r, ctx, "Event", &corev1.EventList{}, func(s *why.Snapshot, l *corev1.EventList) { s.Warnings = append(s.Warnings, l.Items...) }, client.InNamespace(ns), fields)
}

// operators reads an operator's namespace.
func (r *run) operators(ctx context.Context, ns string) {
	r.add(func(s *why.Snapshot) {
		if ns == r.PackageOperatorNamespace {
			s.PackageOperatorNamespace = ns
		} else {
			s.OperatorNamespace = ns
		}
	})
	r.workloads(ctx, ns)
	list(r, ctx, "Lease", &coordinationv1.LeaseList{}, func(s *why.Snapshot, l *coordinationv1.LeaseList) { s.Leases = append(s.Leases, l.Items...) }, client.InNamespace(ns))
}

// list reads a kind beside the rest.
func list[L client.ObjectList](r *run, ctx context.Context, kind string, into L, add func(*why.Snapshot, L), opts ...client.ListOption) { // a method can't have a type parameter
	r.go1(func() {
		if err := r.page(ctx, into, opts...); err != nil {
			r.unread(kind, err)
			return
		}
		r.add(func(s *why.Snapshot) { add(s, into) })
	})
}

// machines reads Cluster API's objects from the group in which they are stored.
func (r *run) machines(ctx context.Context, ns string, private bool) {
	group := translate.Standard
	if private {
		group = translate.Private
	}
	stored(r, ctx, group, "Machine", ns, func(s *why.Snapshot, m clusterv1.Machine) { s.Machines = append(s.Machines, m) })
	stored(r, ctx, group, "MachineSet", ns, func(s *why.Snapshot, m clusterv1.MachineSet) { s.MachineSets = append(s.MachineSets, m) })
	stored(r, ctx, group, "MachineDeployment", ns, func(s *why.Snapshot, m clusterv1.MachineDeployment) {
		s.MachineDeployments = append(s.MachineDeployments, m)
	})
}

// stored reads objects of one kind of Cluster API as the standard type, which has the same fields.
func stored[T any](r *run, ctx context.Context, group, kind, ns string, add func(*why.Snapshot, T)) { // as above
	r.go1(func() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: clusterv1.GroupVersion.Version, Kind: kind + "List"})
		if err := r.page(ctx, list, client.InNamespace(ns)); err != nil {
			r.unread(kind, err)
			return
		}
		for i := range list.Items {
			var out T
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &out); err != nil {
				r.unread(kind, fmt.Errorf("reading %s %s: %w", kind, list.Items[i].GetName(), err))
				continue
			}
			r.add(func(s *why.Snapshot) { add(s, out) })
		}
	})
}

// hosted reads inside of a hosted cluster, when it can be reached at all.
func (r *run) hosted(ctx context.Context, hc *hyperv1.HostedCluster) {
	if r.Hosted == nil || hc.Status.KubeConfig == nil || !hc.DeletionTimestamp.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, hostedTime)
	defer cancel()
	var side why.HostedSide
	if err := r.readHosted(ctx, hc, &side); err != nil {
		side = why.HostedSide{Unreachable: err.Error()}
	}
	r.add(func(s *why.Snapshot) {
		if s.Hosted == nil {
			s.Hosted = map[string]why.HostedSide{}
		}
		s.Hosted[names.BackReference(hc)] = side
	})
}

func (r *run) readHosted(ctx context.Context, hc *hyperv1.HostedCluster, side *why.HostedSide) error {
	c, err := r.Hosted(ctx, hc)
	if err != nil {
		return err
	}
	nodes, requests, budgets := &corev1.NodeList{}, &certificatesv1.CertificateSigningRequestList{}, &policyv1.PodDisruptionBudgetList{}
	for _, l := range []client.ObjectList{nodes, requests, budgets} {
		if err := r.pagesOf(ctx, c, l); err != nil {
			return err
		}
	}
	side.Nodes, side.Requests, side.Budgets = nodes.Items, requests.Items, budgets.Items
	return nil
}
