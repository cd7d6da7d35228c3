package why_test

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/why"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
	ns      = "clusters-demo"
)

var (
	demo    = why.Object{Kind: "HostedCluster", Namespace: "clusters", Name: "demo"}
	workers = why.Object{Kind: "NodePool", Namespace: "clusters", Name: "workers"}
	addon   = why.Object{Kind: "Package", Namespace: ns, Name: "addon"}
	fleet   = why.Object{Kind: "HostedClusterPackage", Name: "addon"}
	machine = why.Object{Kind: "Machine", Namespace: ns, Name: "workers-a"}
)

// world is a snapshot in which all is well: a hosted cluster with three components, a pool with a machine, a package of a rollout.
type world struct {
	why.Snapshot
}

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

func object(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1, CreationTimestamp: ago(24 * time.Hour), Labels: map[string]string{}, Annotations: map[string]string{}}
}

func newWorld() *world {
	w := &world{}
	w.Now, w.OperatorNamespace, w.PackageOperatorNamespace = noon, "hypershift", "package-operator-system"
	hc := hyperv1.HostedCluster{ObjectMeta: object("clusters", "demo")}
	for _, t := range []string{hyperv1.HostedClusterAvailable, hyperv1.ReconciliationActive, hyperv1.ReconciliationSucceeded, hyperv1.ValidReleaseImage, hyperv1.EtcdAvailable} {
		set(&hc.Status.Conditions, t, yes, hyperv1.AsExpectedReason, "")
	}
	w.HostedClusters = []hyperv1.HostedCluster{hc}
	hcp := hyperv1.HostedControlPlane{ObjectMeta: object(ns, "demo")}
	hcp.Annotations[hyperv1.HostedClusterAnnotation] = "clusters/demo"
	set(&hcp.Status.Conditions, hyperv1.HostedControlPlaneAvailable, yes, hyperv1.AsExpectedReason, "")
	w.HostedControlPlanes = []hyperv1.HostedControlPlane{hcp}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		c := hyperv1.ControlPlaneComponent{ObjectMeta: object(ns, name)}
		set(&c.Status.Conditions, hyperv1.ControlPlaneComponentAvailable, yes, hyperv1.AsExpectedReason, "")
		set(&c.Status.Conditions, hyperv1.ControlPlaneComponentRolloutComplete, yes, hyperv1.AsExpectedReason, "")
		w.Components = append(w.Components, c)
	}
	w.Namespaces = []corev1.Namespace{{ObjectMeta: object("", ns)}}
	w.StatefulSets = []appsv1.StatefulSet{{ObjectMeta: object(ns, "etcd"), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(3)), Selector: selector("etcd"),
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}},
		Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: 3, AvailableReplicas: 3, UpdatedReplicas: 3}}}
	for _, name := range []string{"etcd-0", "etcd-1", "etcd-2"} {
		w.pod(ns, name, "etcd")
		w.Claims = append(w.Claims, corev1.PersistentVolumeClaim{ObjectMeta: object(ns, "data-"+name), Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}})
	}
	for _, d := range []string{"kube-apiserver", "control-plane-operator", "cluster-api", "capi-provider", "ignition-server", "konnectivity-server", "package-operator-remote-phase-manager"} {
		w.deployment(ns, d)
	}
	w.deployment("hypershift", "operator")
	w.deployment("package-operator-system", "package-operator-manager")
	w.Leases = []coordinationv1.Lease{{ObjectMeta: object("hypershift", "hypershift-operator-leader-elect"), Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("operator-abc"), LeaseDurationSeconds: ptr.To(int32(137)), RenewTime: &metav1.MicroTime{Time: noon.Add(-5 * time.Second)}}}}
	w.ManagementNodes = []corev1.Node{{ObjectMeta: object("", "node-1"), Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}}
	w.workers()
	w.packages()
	return w
}

func (w *world) workers() {
	pool := hyperv1.NodePool{ObjectMeta: object("clusters", "workers"), Spec: hyperv1.NodePoolSpec{ClusterName: "demo", Replicas: ptr.To(int32(1))}}
	w.NodePools = []hyperv1.NodePool{pool}
	w.poolSays(hyperv1.NodePoolReadyConditionType, yes, hyperv1.AsExpectedReason, "")
	m := clusterv1.Machine{ObjectMeta: object(ns, "workers-a")}
	m.Annotations[hyperv1.NodePoolAnnotation] = "clusters/workers"
	m.Status.NodeRef.Name = "workers-a"
	set(&m.Status.Conditions, clusterv1.MachineInfrastructureReadyCondition, yes, "Ready", "")
	w.Machines = []clusterv1.Machine{m}
	md := clusterv1.MachineDeployment{ObjectMeta: object(ns, "workers")}
	md.Annotations[hyperv1.NodePoolAnnotation] = "clusters/workers"
	w.MachineDeployments = []clusterv1.MachineDeployment{md}
	w.Hosted = map[string]why.HostedSide{"clusters/demo": {Nodes: []corev1.Node{{ObjectMeta: object("", "workers-a"),
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}}}}
}

func (w *world) packages() {
	owned := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name}}
	}
	p := packagesv1.Package{ObjectMeta: object(ns, "addon")}
	p.OwnerReferences = owned("HostedClusterPackage", "addon")
	set(&p.Status.Conditions, packagesv1.ConditionAvailable, yes, "Available", "")
	w.Packages = []packagesv1.Package{p}
	od := packagesv1.ObjectDeployment{ObjectMeta: object(ns, "addon")}
	set(&od.Status.Conditions, packagesv1.ConditionAvailable, yes, "Available", "")
	w.ObjectDeployments = []packagesv1.ObjectDeployment{od}
	os := packagesv1.ObjectSet{ObjectMeta: object(ns, "addon-1")}
	os.OwnerReferences = owned("ObjectDeployment", "addon")
	set(&os.Status.Conditions, packagesv1.ConditionAvailable, yes, "Available", "")
	w.ObjectSets = []packagesv1.ObjectSet{os}
	phase := packagesv1.ObjectSetPhase{ObjectMeta: object(ns, "addon-1-deploy")}
	phase.OwnerReferences = owned("ObjectSet", "addon-1")
	set(&phase.Status.Conditions, packagesv1.ConditionAvailable, yes, "Available", "")
	w.ObjectSetPhases = []packagesv1.ObjectSetPhase{phase}
	f := packagesv1.HostedClusterPackage{ObjectMeta: object("", "addon")}
	f.Status.ObservedGeneration = 1
	w.HostedClusterPackages = []packagesv1.HostedClusterPackage{f}
}

func selector(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func set(list *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason, message string) {
	c := conditions.New(kind, status, reason, message)
	c.ObservedGeneration = 1
	conditions.Set(list, noon.Add(-10*time.Minute), c)
}

func (w *world) pod(namespace, name, app string) {
	p := corev1.Pod{ObjectMeta: object(namespace, name), Spec: corev1.PodSpec{NodeName: "node-1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	p.Labels["app"], p.Labels[component.ControlPlaneComponentLabel] = app, app
	w.Pods = append(w.Pods, p)
}

// mount has a pod use a claim.
func (w *world) mount(pod, claim string, edit func(*corev1.Pod)) {
	for i := range w.Pods {
		p := &w.Pods[i]
		if p.Namespace != ns || p.Name != pod {
			continue
		}
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		edit(p)
	}
}

func (w *world) deployment(namespace, name string) {
	w.Deployments = append(w.Deployments, appsv1.Deployment{ObjectMeta: object(namespace, name), Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(1)), Selector: selector(name)},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, AvailableReplicas: 1, UpdatedReplicas: 1}})
	w.pod(namespace, name+"-x", name)
}

// What may be done to a world.

func (w *world) says(kind string, status metav1.ConditionStatus, reason, message string) {
	set(&w.HostedClusters[0].Status.Conditions, kind, status, reason, message)
}

func (w *world) controlPlaneSays(kind string, status metav1.ConditionStatus, reason, message string) {
	set(&w.HostedControlPlanes[0].Status.Conditions, kind, status, reason, message)
}

func (w *world) componentSays(name, kind string, status metav1.ConditionStatus, reason, message string) {
	for i := range w.Components {
		if w.Components[i].Name == name {
			set(&w.Components[i].Status.Conditions, kind, status, reason, message)
		}
	}
}

func (w *world) poolSays(kind string, status metav1.ConditionStatus, reason, message string) {
	list := &w.NodePools[0].Status.Conditions
	for i := range *list {
		if (*list)[i].Type == kind {
			*list = append((*list)[:i], (*list)[i+1:]...)
			break
		}
	}
	*list = append(*list, hyperv1.NodePoolCondition{Type: kind, Status: corev1.ConditionStatus(status), Reason: reason, Message: message, LastTransitionTime: ago(10 * time.Minute), ObservedGeneration: 1})
}

func (w *world) machineSays(kind string, status metav1.ConditionStatus, reason, message string) {
	set(&w.Machines[0].Status.Conditions, kind, status, reason, message)
}

func (w *world) packageSays(kind string, status metav1.ConditionStatus, reason, message string) {
	set(&w.Packages[0].Status.Conditions, kind, status, reason, message)
}

// revisionSays sets the conditions of a package down to its revision.
func (w *world) revisionSays(reason, message string) {
	w.packageSays(packagesv1.ConditionAvailable, no, packagesv1.ReasonObjectSetUnready, "No ObjectSet is available.")
	set(&w.ObjectDeployments[0].Status.Conditions, packagesv1.ConditionAvailable, no, packagesv1.ReasonObjectSetUnready, "No ObjectSet is available.")
	set(&w.ObjectSets[0].Status.Conditions, packagesv1.ConditionAvailable, no, reason, message)
}

func (w *world) phaseSays(reason, message string) {
	w.revisionSays(packagesv1.ReasonProbeFailure, `Phase "deploy" failed`)
	set(&w.ObjectSetPhases[0].Status.Conditions, packagesv1.ConditionAvailable, no, reason, message)
}

func (w *world) fleetSays(kind string, status metav1.ConditionStatus, message string) {
	set(&w.HostedClusterPackages[0].Status.Conditions, kind, status, "NotAllPackagesProgressed", message)
}

// down takes replicas of a workload away, and gives its first pod a state.
func (w *world) down(name string, edit func(*corev1.Pod)) {
	for i := range w.Deployments {
		if w.Deployments[i].Name == name {
			w.Deployments[i].Status.AvailableReplicas = 0
		}
	}
	for i := range w.StatefulSets {
		if w.StatefulSets[i].Name == name {
			w.StatefulSets[i].Status.AvailableReplicas = 1
		}
	}
	for i := range w.Pods {
		if w.Pods[i].Labels["app"] == name && edit != nil {
			w.Pods[i].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: ago(10 * time.Minute)}}
			edit(&w.Pods[i])
			return
		}
	}
}

func (w *world) warn(kind, namespace, name, reason, message string) {
	w.Warnings = append(w.Warnings, corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name}, Type: corev1.EventTypeWarning,
		Reason: reason, Message: message, LastTimestamp: ago(time.Minute)})
}

func (w *world) request(user string, edit func(*certificatesv1.CertificateSigningRequest)) {
	r := certificatesv1.CertificateSigningRequest{ObjectMeta: object("", "csr-1"), Spec: certificatesv1.CertificateSigningRequestSpec{Username: user}}
	if edit != nil {
		edit(&r)
	}
	side := w.Hosted["clusters/demo"]
	side.Requests = append(side.Requests, r)
	w.Hosted["clusters/demo"] = side
}

func deleted(m *metav1.ObjectMeta, since time.Duration, finalizers ...string) {
	at := ago(since)
	m.DeletionTimestamp, m.Finalizers = &at, finalizers
}

// States of pods.

func crash(code int32, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 7, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}}}
	}
}

func waits(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodPending
		p.Status.StartTime = ptr.To(ago(10 * time.Minute))
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "registry.example.com/x:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
}

func fitsNowhere(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.Spec.NodeName = corev1.PodPending, ""
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message, LastTransitionTime: ago(7 * time.Minute)}}
	}
}

func notReady(p *corev1.Pod) {}

func replicaFailure(message string) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message}
}
