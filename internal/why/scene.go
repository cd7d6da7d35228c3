package why

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/trouble"
)

// Kinds that rules are about.
const (
	kindHostedCluster        = "HostedCluster"
	kindHostedControlPlane   = "HostedControlPlane"
	kindNodePool             = "NodePool"
	kindComponent            = "ControlPlaneComponent"
	kindMachineDeployment    = "MachineDeployment"
	kindMachineSet           = "MachineSet"
	kindMachine              = "Machine"
	kindNamespace            = "Namespace"
	kindDeployment           = "Deployment"
	kindStatefulSet          = "StatefulSet"
	kindPod                  = "Pod"
	kindClaim                = "PersistentVolumeClaim"
	kindLease                = "Lease"
	kindNode                 = "Node"
	kindHostedNode           = "HostedNode" // shown as Node
	kindRequest              = "CertificateSigningRequest"
	kindPackage              = "Package"
	kindObjectDeployment     = "ObjectDeployment"
	kindObjectSet            = "ObjectSet"
	kindObjectSetPhase       = "ObjectSetPhase"
	kindHostedClusterPackage = "HostedClusterPackage"
)

// item is an object of the snapshot with what most rules look at.
type item struct {
	Object
	conditions []metav1.Condition
	deleted    *time.Time
	created    time.Time
	meta       *metav1.ObjectMeta
	typed      any
	// hosted is the HostedCluster, as "namespace/name", that something inside of a hosted cluster belongs to.
	hosted string
}

// scene is a snapshot made ready to be walked.
type scene struct {
	*Snapshot
	items  []*item
	byName map[Object]*item
	byKind map[string][]*item
	// troubles are those of pods, claims and workloads, by the object that each is about.
	troubles map[Object]trouble.Trouble
	warnings map[Object]*corev1.Event
	asked    map[*item][]step
	stack    []*item
	// major: rules that keep nobody from being well are left out.
	major bool
}

func newScene(s *Snapshot) *scene {
	out := &scene{Snapshot: s, byName: map[Object]*item{}, byKind: map[string][]*item{}, troubles: map[Object]trouble.Trouble{},
		warnings: map[Object]*corev1.Event{}, asked: map[*item][]step{}}
	out.addClusters()
	out.addWorkloads()
	out.addPackages()
	out.addHosted()
	for _, list := range out.byKind {
		slices.SortFunc(list, func(a, b *item) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.hosted, b.hosted))
		})
	}
	out.addWarnings()
	out.findTroubles()
	return out
}

func (s *scene) add(kind string, typed any, meta *metav1.ObjectMeta, conditions []metav1.Condition) *item {
	it := &item{Object: Object{kind, meta.Namespace, meta.Name}, conditions: conditions, meta: meta, typed: typed, created: meta.CreationTimestamp.Time}
	if meta.DeletionTimestamp != nil {
		it.deleted = &meta.DeletionTimestamp.Time
	}
	s.items = append(s.items, it)
	s.byName[it.Object] = it
	s.byKind[kind] = append(s.byKind[kind], it)
	return it
}

func (s *scene) addClusters() {
	for i := range s.HostedClusters {
		o := &s.HostedClusters[i]
		s.add(kindHostedCluster, o, &o.ObjectMeta, o.Status.Conditions)
	}
	for i := range s.HostedControlPlanes {
		o := &s.HostedControlPlanes[i]
		s.add(kindHostedControlPlane, o, &o.ObjectMeta, o.Status.Conditions)
	}
	for i := range s.NodePools {
		o := &s.NodePools[i]
		s.add(kindNodePool, o, &o.ObjectMeta, each(o.Status.Conditions, ofPool))
	}
	for i := range s.Components {
		o := &s.Components[i]
		s.add(kindComponent, o, &o.ObjectMeta, o.Status.Conditions)
	}
	for i := range s.MachineDeployments {
		o := &s.MachineDeployments[i]
		s.add(kindMachineDeployment, o, &o.ObjectMeta, o.Status.Conditions)
	}
	for i := range s.MachineSets {
		o := &s.MachineSets[i]
		s.add(kindMachineSet, o, &o.ObjectMeta, o.Status.Conditions)
	}
	for i := range s.Machines {
		o := &s.Machines[i]
		s.add(kindMachine, o, &o.ObjectMeta, o.Status.Conditions)
	}
}

func (s *scene) addWorkloads() {
	for i := range s.Namespaces {
		o := &s.Namespaces[i]
		s.add(kindNamespace, o, &o.ObjectMeta, each(o.Status.Conditions, ofNamespace))
	}
	for i := range s.Deployments {
		o := &s.Deployments[i]
		s.add(kindDeployment, o, &o.ObjectMeta, each(o.Status.Conditions, ofDeployment))
	}
	for i := range s.StatefulSets {
		s.add(kindStatefulSet, &s.StatefulSets[i], &s.StatefulSets[i].ObjectMeta, nil)
	}
	for i := range s.Pods {
		o := &s.Pods[i]
		s.add(kindPod, o, &o.ObjectMeta, each(o.Status.Conditions, ofPod))
	}
	for i := range s.Claims {
		s.add(kindClaim, &s.Claims[i], &s.Claims[i].ObjectMeta, nil)
	}
	for i := range s.Leases {
		s.add(kindLease, &s.Leases[i], &s.Leases[i].ObjectMeta, nil)
	}
	for i := range s.ManagementNodes {
		o := &s.ManagementNodes[i]
		s.add(kindNode, o, &o.ObjectMeta, each(o.Status.Conditions, ofNode))
	}
}

func (s *scene) addPackages() {
	for i := range s.Packages {
		o := &s.Packages[i]
		s.add(kindPackage, o, &o.ObjectMeta, o.Status.Conditions)
	}
	for i := range s.ObjectDeployments {
		o := &s.ObjectDeployments[i]
		s.add(kindObjectDeployment, o, &o.ObjectMeta, o.Status.Conditions)
	}
	for i := range s.ObjectSets {
		o := &s.ObjectSets[i]
		s.add(kindObjectSet, o, &o.ObjectMeta, o.Status.Conditions)
	}
	for i := range s.ObjectSetPhases {
		o := &s.ObjectSetPhases[i]
		s.add(kindObjectSetPhase, o, &o.ObjectMeta, o.Status.Conditions)
	}
	for i := range s.HostedClusterPackages {
		o := &s.HostedClusterPackages[i]
		s.add(kindHostedClusterPackage, o, &o.ObjectMeta, o.Status.Conditions)
	}
}

func (s *scene) addHosted() {
	for key, side := range s.Hosted {
		for i := range side.Nodes {
			o := &side.Nodes[i]
			it := s.add(kindHostedNode, o, &o.ObjectMeta, each(o.Status.Conditions, ofNode))
			it.hosted = key
		}
		for i := range side.Requests {
			o := &side.Requests[i]
			it := s.add(kindRequest, o, &o.ObjectMeta, nil)
			it.hosted = key
		}
	}
}

// addWarnings keeps the last warning about each object.
func (s *scene) addWarnings() {
	for i := range s.Warnings {
		e := &s.Warnings[i]
		if e.Type == corev1.EventTypeNormal {
			continue
		}
		key := Object{e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name}
		if last := s.warnings[key]; last == nil || !lastSeen(e).Before(lastSeen(last)) {
			s.warnings[key] = e
		}
	}
}

func lastSeen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}

// findTroubles asks package trouble, namespace by namespace, why pods do not run.
func (s *scene) findTroubles() {
	in := map[string]*trouble.Input{}
	of := func(namespace string) *trouble.Input {
		if in[namespace] == nil {
			in[namespace] = &trouble.Input{Now: s.Now, Warnings: map[string]string{}}
		}
		return in[namespace]
	}
	for _, p := range s.Pods {
		of(p.Namespace).Pods = append(of(p.Namespace).Pods, p)
	}
	for _, d := range s.Deployments {
		of(d.Namespace).Deployments = append(of(d.Namespace).Deployments, d)
	}
	for _, d := range s.StatefulSets {
		of(d.Namespace).StatefulSets = append(of(d.Namespace).StatefulSets, d)
	}
	for key, e := range s.warnings {
		of(key.Namespace).Warnings[key.Kind+"/"+key.Name] = e.Message
	}
	for _, c := range s.Claims {
		if c.Status.Phase != corev1.ClaimBound {
			of(c.Namespace).Claims = append(of(c.Namespace).Claims, trouble.Claim{Name: c.Name, Component: c.Labels["app"], Warning: of(c.Namespace).Warnings[kindClaim+"/"+c.Name]})
		}
	}
	for namespace, input := range in {
		for _, t := range trouble.Find(*input) {
			for _, kind := range []string{kindPod, kindClaim, kindDeployment, kindStatefulSet} {
				key := Object{kind, namespace, t.Name()}
				if _, known := s.troubles[key]; !known && s.byName[key] != nil && fits(t, kind) {
					s.troubles[key] = t
				}
			}
		}
	}
}

// fits tells whether a trouble is one of such an object: names alone don't tell.
func fits(t trouble.Trouble, kind string) bool {
	switch t.Reason {
	case trouble.Refused:
		return kind == kindStatefulSet && strings.Contains(t.Message, kindStatefulSet) || kind == kindDeployment && strings.Contains(t.Message, kindDeployment)
	case trouble.VolumePending:
		return kind == kindClaim
	}
	return kind == kindPod
}

// find is the object that was asked about.
func (s *scene) find(of Object) *item {
	if kind, ok := strings.CutPrefix(of.Kind, clusterScoped); ok && of.Namespace == "" && slices.Contains(packageKinds, kind) {
		of.Kind = kind
	}
	return s.byName[of]
}

// clusterScoped is before the names of kinds of packages that have no namespace. They are as those that have one, and in a snapshot among these.
const clusterScoped = "Cluster"

var packageKinds = []string{kindPackage, kindObjectDeployment, kindObjectSet, kindObjectSetPhase}

// shown is the object under the name of its kind that people know.
func (it *item) shown() Object {
	of := it.Object
	switch {
	case it.Kind == kindHostedNode:
		of.Kind = kindNode
	case it.Namespace == "" && slices.Contains(packageKinds, it.Kind):
		of.Kind = clusterScoped + it.Kind
	}
	return of
}

// held are what the object's own pauses say, for an answer that is about something else.
func (s *scene) held(it *item) []string {
	var out []string
	for i := range rules {
		if r := &rules[i]; r.State == Held && r.On == it.Kind && len(r.Ask) == 0 {
			if saw := r.match(s, it); saw != nil {
				out = append(out, "besides, nothing is changed: "+cmp.Or(saw.cause, saw.text))
			}
		}
	}
	return out
}

// notes say what was not read, as it may have known more, and what is known of the past.
func (s *scene) notes(it *item) []string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(s.Unread)) {
		out = append(out, kind+" could not be read: "+Clean(s.Unread[kind]))
	}
	for _, key := range slices.Sorted(maps.Keys(s.Hosted)) {
		if reason := s.Hosted[key].Unreachable; reason != "" {
			out = append(out, "hosted cluster "+key+" could not be asked: "+Clean(reason))
		}
	}
	return append(out, history(s, it)...)
}

// each are conditions of any type as those of package meta/v1.
func each[T any](list []T, of func(T) metav1.Condition) []metav1.Condition {
	out := make([]metav1.Condition, 0, len(list))
	for _, c := range list {
		out = append(out, of(c))
	}
	return out
}

func ofPool(c hyperv1.NodePoolCondition) metav1.Condition {
	out := conditionOf(c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
	out.ObservedGeneration = c.ObservedGeneration
	return out
}

func ofNamespace(c corev1.NamespaceCondition) metav1.Condition {
	return conditionOf(c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
}

func ofDeployment(c appsv1.DeploymentCondition) metav1.Condition {
	return conditionOf(c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
}

func ofPod(c corev1.PodCondition) metav1.Condition {
	return conditionOf(c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
}

func ofNode(c corev1.NodeCondition) metav1.Condition {
	return conditionOf(c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
}

func conditionOf[T ~string](kind T, status corev1.ConditionStatus, reason, message string, since metav1.Time) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: metav1.ConditionStatus(status), Reason: reason, Message: message, LastTransitionTime: since}
}
