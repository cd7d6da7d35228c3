package autoscaler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/nodepool/machines"
)

// Bounds of what is read from a hosted cluster. With more of something, nothing is removed, because what was left out may need it.
const (
	maxNodes      = 5000
	maxRunning    = 50000
	maxUnplaced   = 5000
	maxDaemonSets = 1000
	maxBudgets    = 5000
)

// observe reads both clusters. The pods that run are read only when they could decide something.
func (l *Loop) observe(ctx context.Context) (*Observed, error) {
	obs := &Observed{}
	var err error
	if obs.Groups, err = l.observeGroups(ctx); err != nil || len(obs.Groups) == 0 {
		return obs, err
	}
	pods := &corev1.PodList{}
	err = pages(ctx, l.Hosted, pods, func() bool {
		for i := range pods.Items {
			if pod := &pods.Items[i]; unschedulable(pod) {
				obs.Pending = append(obs.Pending, pod.DeepCopy())
			}
		}
		return obs.fits("pods without a node", len(obs.Pending), maxUnplaced)
	}, client.MatchingFields{"spec.nodeName": "", "status.phase": string(corev1.PodPending)})
	if err != nil {
		return nil, err
	}
	nodes := &corev1.NodeList{}
	err = pages(ctx, l.Hosted, nodes, func() bool {
		for i := range nodes.Items {
			obs.Nodes = append(obs.Nodes, nodes.Items[i].DeepCopy())
		}
		return obs.fits("nodes", len(obs.Nodes), maxNodes)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(obs.Nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	if err := l.observeTemplates(ctx, obs); err != nil {
		return nil, err
	}
	shrinkable := l.Options.ScaleDown && slices.ContainsFunc(obs.Groups, func(g Group) bool { return g.Replicas > g.Min })
	if len(obs.Pending) == 0 && !shrinkable {
		return obs, nil
	}
	return obs, l.observeLoad(ctx, obs, shrinkable)
}

// fits notes when there is too much of something.
func (o *Observed) fits(what string, n, limit int) bool {
	if n <= limit {
		return true
	}
	o.Truncated = fmt.Sprintf("there are more than %d %s, of which only the first are looked at", limit, what)
	return false
}

// unschedulable pods are those that the scheduler has tried.
func unschedulable(pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 || pod.Status.NominatedNodeName != "" {
		return false
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// observeLoad reads what runs, and what restricts moving it.
func (l *Loop) observeLoad(ctx context.Context, obs *Observed, budgets bool) error {
	pods := &corev1.PodList{}
	err := pages(ctx, l.Hosted, pods, func() bool {
		for i := range pods.Items {
			obs.Running = append(obs.Running, trim(&pods.Items[i]))
		}
		return obs.fits("pods", len(obs.Running), maxRunning)
	}, fieldSelector("spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"))
	if err != nil {
		return err
	}
	daemons := &appsv1.DaemonSetList{}
	err = pages(ctx, l.Hosted, daemons, func() bool {
		obs.DaemonSets = append(obs.DaemonSets, daemons.DeepCopy().Items...)
		return obs.fits("DaemonSets", len(obs.DaemonSets), maxDaemonSets)
	})
	if err != nil || !budgets {
		return err
	}
	list := &policyv1.PodDisruptionBudgetList{}
	return pages(ctx, l.Hosted, list, func() bool {
		obs.Budgets = append(obs.Budgets, list.DeepCopy().Items...)
		return obs.fits("PodDisruptionBudgets", len(obs.Budgets), maxBudgets)
	})
}

// trim keeps of a pod what decides about its place: there may be many.
func trim(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, OwnerReferences: pod.OwnerReferences},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, NodeSelector: pod.Spec.NodeSelector, Affinity: pod.Spec.Affinity, Tolerations: pod.Spec.Tolerations, Priority: pod.Spec.Priority,
			TopologySpreadConstraints: pod.Spec.TopologySpreadConstraints, Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources,
		},
	}
	for _, key := range []string{safeToEvict, mirrorPod} {
		if v, ok := pod.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&out.ObjectMeta, key, v)
		}
	}
	slim := func(list []corev1.Container) (out []corev1.Container) {
		for _, c := range list {
			out = append(out, corev1.Container{Name: c.Name, Resources: c.Resources, Ports: c.Ports, RestartPolicy: c.RestartPolicy})
		}
		return out
	}
	out.Spec.Containers, out.Spec.InitContainers = slim(pod.Spec.Containers), slim(pod.Spec.InitContainers)
	return out.DeepCopy() // so that the page that it comes from can go
}

// observeGroups reads the MachineDeployments, and the MachineSets that belong to none, whose annotations give them bounds.
func (l *Loop) observeGroups(ctx context.Context) ([]Group, error) {
	in := client.InNamespace(l.Namespace)
	deployments, sets, all := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineList{}
	for _, list := range []client.ObjectList{deployments, sets} {
		if err := l.Management.List(ctx, list, in); err != nil {
			return nil, fmt.Errorf("listing %T in namespace %s: %w", list, l.Namespace, err)
		}
	}
	var groups []Group
	for i := range deployments.Items {
		if g, ok := groupOfDeployment(&deployments.Items[i]); ok {
			groups = append(groups, g)
		}
	}
	for i := range sets.Items {
		if metav1.GetControllerOf(&sets.Items[i]) == nil {
			if g, ok := groupOfSet(&sets.Items[i]); ok {
				groups = append(groups, g)
			}
		}
	}
	if len(groups) == 0 {
		return nil, nil
	}
	if err := l.Management.List(ctx, all, in); err != nil {
		return nil, fmt.Errorf("listing Machines in namespace %s: %w", l.Namespace, err)
	}
	paused, err := l.clusterPaused(ctx, groups[0].Object)
	if err != nil {
		return nil, err
	}
	for i := range groups {
		if paused && groups[i].Held == "" {
			groups[i].Held = "the cluster is paused"
		}
		selector, err := metav1.LabelSelectorAsSelector(selectorOf(groups[i].Object))
		if err != nil {
			groups[i].Held = "its selector is not valid: " + err.Error()
			continue
		}
		groups[i].Machines = machinesOf(all, selector)
	}
	slices.SortFunc(groups, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	return groups, nil
}

// clusterPaused tells whether Cluster API leaves everything of the hosted cluster alone.
func (l *Loop) clusterPaused(ctx context.Context, member client.Object) (bool, error) {
	cluster, key := &clusterv1.Cluster{}, client.ObjectKey{Namespace: l.Namespace, Name: templateOf(member).Spec.ClusterName}
	if err := l.Management.Get(ctx, key, cluster); err != nil {
		return false, fmt.Errorf("reading Cluster %s: %w", key, err)
	}
	return ptr.Deref(cluster.Spec.Paused, false), nil
}

func machinesOf(all *clusterv1.MachineList, selector labels.Selector) []Machine {
	var out []Machine
	for _, m := range all.Items {
		if !selector.Matches(labels.Set(m.Labels)) {
			continue
		}
		out = append(out, Machine{
			Name: m.Name, Node: m.Status.NodeRef.Name, Created: m.CreationTimestamp.Time, Deleting: !m.DeletionTimestamp.IsZero(), Mark: m.Annotations[DeleteAnnotation],
		})
	}
	slices.SortFunc(out, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func selectorOf(obj client.Object) *metav1.LabelSelector {
	switch o := obj.(type) {
	case *clusterv1.MachineDeployment:
		return &o.Spec.Selector
	case *clusterv1.MachineSet:
		return &o.Spec.Selector
	}
	return nil
}

func templateOf(obj client.Object) *clusterv1.MachineTemplateSpec {
	switch o := obj.(type) {
	case *clusterv1.MachineDeployment:
		return &o.Spec.Template
	case *clusterv1.MachineSet:
		return &o.Spec.Template
	}
	return nil
}

// bounded reads the bounds. A max of 0 says that the size is not ours to choose.
func bounded(obj client.Object, replicas *int32) (Group, bool) {
	least, err1 := strconv.Atoi(obj.GetAnnotations()[machines.MinSizeAnnotation])
	most, err2 := strconv.Atoi(obj.GetAnnotations()[machines.MaxSizeAnnotation])
	if err1 != nil || err2 != nil || most < 1 || least < 0 || least > most {
		return Group{}, false
	}
	g := Group{Name: obj.GetName(), Object: obj, Min: least, Max: most, Replicas: int(ptr.Deref(replicas, 0))}
	switch {
	case !obj.GetDeletionTimestamp().IsZero():
		g.Held = "it is being deleted"
	case replicas == nil:
		g.Held = "the number of its machines is not set yet"
	default:
		if _, paused := obj.GetAnnotations()[machines.PausedAnnotation]; paused {
			g.Held = "it is paused"
		}
	}
	return g, true
}

func groupOfDeployment(md *clusterv1.MachineDeployment) (Group, bool) {
	g, ok := bounded(md, md.Spec.Replicas)
	if ptr.Deref(md.Status.UpToDateReplicas, 0) != ptr.Deref(md.Status.Replicas, 0) || md.Status.ObservedGeneration < md.Generation {
		g.Settling = "its machines are being replaced"
	}
	return g, ok
}

func groupOfSet(ms *clusterv1.MachineSet) (Group, bool) {
	g, ok := bounded(ms, ms.Spec.Replicas)
	if target := ms.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation]; target != "" && target != ms.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation] {
		g.Settling = "its machines are being changed in place"
	}
	return g, ok
}

// passTimeout bounds a pass: two clusters are asked, and one of them may be slow on purpose.
const passTimeout = time.Minute
