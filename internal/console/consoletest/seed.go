// Package consoletest makes a fleet for tests of the console, on a real API server: clusters in every state, one whose etcd has lost a member's place, a
// rollout that is under way, packages with revisions, and texts of people who mean harm.
package consoletest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/testenv"
)

// Scheme has all kinds of the world.
func Scheme() *runtime.Scheme {
	s := connect.Scheme()
	utilruntime.Must(clusterv1.AddToScheme(s))
	return s
}

// Namespaces of hosted clusters of the world.
const (
	Production = "production"
	Staging    = "staging"
)

// Hostile is a text of somebody who means harm: markup, an address that runs a program, marks that turn the direction of writing, steering of terminals.
const Hostile = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script> javascript:alert(1) \u202edesrever\u202c \x1b[31m"

// World is what was made.
type World struct {
	Client client.Client
	t      testing.TB
	now    time.Time
	// bare leaves out the namespaces of control planes.
	bare bool
}

// cluster is one of the fleet.
type cluster struct {
	ns, name, tier, version, target string
	pools                           [][2]int32 // ready, wanted
	bad                             *metav1.Condition
	old                             bool // was up before
}

func no(kind, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

var fleet = []cluster{
	{ns: Production, name: "payments-eu", tier: "gold", version: "1.36.2", pools: [][2]int32{{5, 6}, {3, 3}}, old: true, bad: no(hyperv1.EtcdAvailable, hyperv1.EtcdWaitingForQuorumReason, "1 of 3 etcd members are ready")},
	{ns: Production, name: "checkout", tier: "gold", version: "1.36.3", pools: [][2]int32{{8, 8}, {4, 4}}},
	{ns: Production, name: "search", tier: "gold", version: "1.35.4", target: "1.36.3", pools: [][2]int32{{12, 12}}, bad: &metav1.Condition{Type: hyperv1.HostedClusterProgressing, Status: metav1.ConditionTrue, Reason: "RolloutPartiallyComplete", Message: "control plane is at 1.36.3 but for 3 of 14 components"}},
	{ns: Production, name: "orders", tier: "silver", version: "1.36.3", pools: [][2]int32{{6, 6}}},
	{ns: Production, name: "identity", tier: "gold", version: "1.36.3", pools: [][2]int32{{3, 3}}},
	{ns: Production, name: "ledger", tier: "gold", version: "1.36.2", pools: [][2]int32{{4, 4}}},
	{ns: Production, name: "mail", tier: "silver", version: "1.36.3", pools: [][2]int32{{2, 2}}},
	{ns: Production, name: "media", tier: "silver", version: "1.36.2", pools: [][2]int32{{10, 10}, {2, 2}}},
	{ns: Production, name: "pricing", tier: "silver", version: "1.35.4", pools: [][2]int32{{3, 3}}, bad: no(hyperv1.ReconciliationActive, hyperv1.ReconciliationPausedReason, "paused until someone removes spec.pausedUntil")},
	{ns: Production, name: "recommendations", tier: "bronze", version: "1.36.3", pools: [][2]int32{{5, 5}}},
	{ns: Production, name: "reports", tier: "bronze", version: "1.36.3", pools: [][2]int32{{2, 2}}},
	{ns: Production, name: "routing", tier: "bronze", version: "1.36.3", pools: [][2]int32{{3, 3}}},
	{ns: Production, name: "sessions", tier: "bronze", version: "1.36.2", pools: [][2]int32{{3, 3}}},
	{ns: Production, name: "shipping", tier: "bronze", version: "1.36.3", pools: [][2]int32{{4, 4}}},
	{ns: Production, name: "stock", tier: "bronze", version: "1.36.3", pools: [][2]int32{{2, 2}}},
	{ns: Staging, name: "checkout", tier: "canary", version: "1.36.3", pools: [][2]int32{{1, 1}}},
	{ns: Staging, name: "edge", tier: "canary", pools: [][2]int32{{0, 2}}, target: "1.36.3", bad: no(hyperv1.KubeAPIServerAvailable, "WaitingForAvailable", "0 of 1 replicas of kube-apiserver are ready")},
	{ns: Staging, name: "loadtest", tier: "canary", target: "1.36.3", pools: [][2]int32{{0, 20}}, bad: no(hyperv1.ValidReleaseImage, hyperv1.InvalidImageReason, "registry.example.com/release:1.36.9 can't be read: manifest unknown")},
	{ns: Staging, name: "orders", tier: "canary", version: "1.36.3", pools: [][2]int32{{1, 1}}},
	{ns: Staging, name: "playground", tier: "canary", version: "1.36.3"},
}

// Fleet makes the world, in namespaces production and staging and in those of the control planes.
func Fleet(t testing.TB, env *testenv.Env, c client.Client) *World {
	t.Helper()
	crds, err := config.PackageOperatorCRDs()
	if err != nil {
		t.Fatal(err)
	}
	env.Install(t, crds...)
	w := &World{Client: c, t: t, now: time.Now()}
	for _, ns := range []string{Production, Staging, "hypershift", "package-operator-system"} {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	}
	for i := range fleet {
		w.cluster(&fleet[i])
	}
	w.hostile()
	w.broken()
	w.upgrading()
	w.rollout()
	w.revisions()
	w.collision()
	w.certificates()
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", Name: "supported-versions"}, Data: map[string]string{"server-version": "0123456789ab", "server-semantic-version": "0.1.0"}})
	return w
}

// create stores an object, and then what its status is to be.
func (w *World) create(objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		want := obj.DeepCopyObject().(client.Object)
		if err := w.Client.Create(context.Background(), obj); err != nil {
			w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
		}
		switch obj.(type) {
		case *corev1.Namespace, *corev1.ConfigMap, *corev1.Event, *corev1.Secret, *corev1.Service, *corev1.ServiceAccount:
			continue
		}
		want.SetResourceVersion(obj.GetResourceVersion())
		want.SetUID(obj.GetUID())
		if err := w.Client.Status().Update(context.Background(), want); err != nil && !apierrors.IsNotFound(err) {
			w.t.Fatalf("writing the status of %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

func (w *World) ago(d time.Duration) time.Time { return w.now.Add(-d) }

func (w *World) set(list *[]metav1.Condition, since time.Duration, kind string, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(list, w.ago(since), conditions.New(kind, status, reason, message))
}

// always are all conditions of a hosted cluster that is well.
var always = []string{
	hyperv1.ReconciliationActive, hyperv1.ValidHostedClusterConfiguration, hyperv1.SupportedHostedCluster, hyperv1.ValidReleaseImage, hyperv1.ReconciliationSucceeded,
	hyperv1.ValidHostedControlPlaneConfiguration, hyperv1.ValidReleaseInfo, hyperv1.InfrastructureReady, hyperv1.EtcdAvailable, hyperv1.KubeAPIServerAvailable, hyperv1.HostedClusterAvailable,
}

func (w *World) cluster(f *cluster) {
	hc := testenv.HostedCluster(f.ns, f.name)
	hc.Labels = map[string]string{"tier": f.tier}
	hc.Spec.Release.Image = "registry.example.com/hypershift/release:" + max(f.target, f.version)
	up := f.version != ""
	if up {
		hc.Annotations = map[string]string{hyperv1.HasBeenAvailableAnnotation: "true"}
	}
	for i, kind := range always {
		status := metav1.ConditionTrue
		if !up && i >= 9 {
			status = metav1.ConditionFalse
		}
		w.set(&hc.Status.Conditions, 3*time.Hour-time.Duration(i)*40*time.Second, kind, status, hyperv1.AsExpectedReason, "")
	}
	w.set(&hc.Status.Conditions, 3*time.Hour, hyperv1.HostedClusterProgressing, metav1.ConditionFalse, hyperv1.AsExpectedReason, "")
	w.set(&hc.Status.Conditions, 3*time.Hour, hyperv1.HostedClusterDegraded, metav1.ConditionFalse, hyperv1.AsExpectedReason, "")
	if b := f.bad; b != nil {
		w.set(&hc.Status.Conditions, 4*time.Minute, b.Type, b.Status, b.Reason, b.Message)
		if b.Type == hyperv1.EtcdAvailable {
			w.set(&hc.Status.Conditions, 3*time.Minute, hyperv1.KubeAPIServerAvailable, metav1.ConditionFalse, "WaitingForAvailable", "0 of 3 replicas of kube-apiserver are ready")
			w.set(&hc.Status.Conditions, 3*time.Minute, hyperv1.HostedClusterAvailable, metav1.ConditionFalse, hyperv1.EtcdWaitingForQuorumReason, "1 of 3 etcd members are ready")
		}
	}
	v := &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Version: max(f.target, f.version), Image: hc.Spec.Release.Image}, AvailableUpdates: []configv1.Release{}}
	if f.target != "" {
		v.History = append(v.History, configv1.UpdateHistory{State: configv1.PartialUpdate, StartedTime: metav1.NewTime(w.ago(12 * time.Minute)), Version: f.target, Image: hc.Spec.Release.Image})
	}
	if up {
		v.History = append(v.History, configv1.UpdateHistory{State: configv1.CompletedUpdate, StartedTime: metav1.NewTime(w.ago(72 * time.Hour)), CompletionTime: ptr.To(metav1.NewTime(w.ago(72*time.Hour - 11*time.Minute))), Version: f.version, Image: "registry.example.com/hypershift/release:" + f.version})
	}
	hc.Status.Version = v
	hc.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "api." + f.name + ".example.com", Port: 6443}
	w.create(hc)
	if w.bare {
		return
	}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.ns + "-" + f.name, Annotations: map[string]string{hyperv1.HostedClusterAnnotation: f.ns + "/" + f.name}}})
	for i, p := range f.pools {
		w.pool(f, fmt.Sprintf("%s-%s", f.name, []string{"workers", "gpu"}[i]), p[0], p[1])
	}
}

// pool is a NodePool of a hosted cluster.
func (w *World) pool(f *cluster, name string, ready, wanted int32) {
	np := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name}, Spec: hyperv1.NodePoolSpec{ClusterName: f.name, Replicas: ptr.To(wanted), Release: hyperv1.Release{Image: "registry.example.com/hypershift/release:" + max(f.version, "1.36.3")},
		Platform: hyperv1.NodePoolPlatform{Type: hyperv1.NonePlatform}, Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace}}}
	np.Status.Replicas, np.Status.Version = ready, f.version
	say := func(kind string, status corev1.ConditionStatus, reason, message string) {
		np.Status.Conditions = append(np.Status.Conditions, hyperv1.NodePoolCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(w.ago(9 * time.Minute))})
	}
	say(hyperv1.NodePoolValidReleaseImageConditionType, corev1.ConditionTrue, "AsExpected", "")
	say(hyperv1.NodePoolReconciliationActiveConditionType, corev1.ConditionTrue, "ReconciliationActive", "")
	if ready < wanted {
		say(hyperv1.NodePoolReadyConditionType, corev1.ConditionFalse, "WaitingForAvailableMachines", fmt.Sprintf("%d of %d machines are ready", ready, wanted))
	} else {
		say(hyperv1.NodePoolReadyConditionType, corev1.ConditionTrue, "AsExpected", "")
	}
	w.create(np)
}

// hostile is a cluster, with a package, whose every text is one of somebody who means harm.
func (w *World) hostile() {
	f := cluster{ns: Staging, name: "hostile", tier: "canary", version: "1.36.3", pools: [][2]int32{{1, 1}}, bad: no(hyperv1.InfrastructureReady, "Hostile", Hostile+long())}
	w.cluster(&f)
	p := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: Staging + "-hostile", Name: "hostile"}, Spec: packagesv1.PackageSpec{Image: "registry.example.com/hostile:" + "1"}}
	w.set(&p.Status.Conditions, time.Minute, packagesv1.ConditionAvailable, metav1.ConditionFalse, "ProbeFailure", Hostile+long())
	w.create(p)
	w.event(Staging, "HostedCluster", "hostile", "Warning", "Hostile", Hostile, 3)
	// An event may say as much as it likes.
	w.create(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: Staging, GenerateName: "e-"}, InvolvedObject: corev1.ObjectReference{Kind: "HostedCluster", Namespace: Staging, Name: "hostile", APIVersion: "v1"},
		Type: "Warning", Reason: "Hostile", Message: Hostile + strings.Repeat("abcdefghij", 64<<10/10), Count: 1, FirstTimestamp: metav1.NewTime(w.ago(time.Minute)), LastTimestamp: metav1.NewTime(w.ago(time.Minute)), Source: corev1.EventSource{Component: "test"}})
}

// long is what of a message follows Hostile when it is as long as the API takes in a condition.
func long() string {
	const most = 32 << 10
	return strings.Repeat("abcdefghij", most/10)[:most-utf8.RuneCountInString(Hostile)]
}

func (w *World) event(ns, kind, name, level, reason, message string, count int32) {
	at := metav1.NewTime(w.ago(time.Duration(count) * 20 * time.Second))
	w.create(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "e-"}, InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: ns, Name: name, APIVersion: "v1"}, Type: level, Reason: reason, Message: message[:min(len(message), 1000)],
		Count: count, FirstTimestamp: metav1.NewTime(w.ago(30 * time.Minute)), LastTimestamp: at, Source: corev1.EventSource{Component: "test"}})
}

// component of a control plane. A bad one is not available, or waits.
func (w *World) component(ns, name, version string, since time.Duration, available bool, waits string) {
	c := &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	c.Status.Version = version
	if available {
		w.set(&c.Status.Conditions, since, hyperv1.ControlPlaneComponentAvailable, metav1.ConditionTrue, hyperv1.AsExpectedReason, "")
	} else {
		w.set(&c.Status.Conditions, since, hyperv1.ControlPlaneComponentAvailable, metav1.ConditionFalse, "WaitingForAvailable", name+" has too few ready replicas")
	}
	if waits == "" {
		w.set(&c.Status.Conditions, 3*time.Hour, hyperv1.ControlPlaneComponentRolloutComplete, metav1.ConditionTrue, hyperv1.AsExpectedReason, "")
	} else {
		w.set(&c.Status.Conditions, since, hyperv1.ControlPlaneComponentRolloutComplete, metav1.ConditionFalse, "WaitingForDependencies", "Waiting for Dependencies: "+waits)
	}
	w.create(c)
}

var componentNames = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "konnectivity-agent", "cluster-policy-controller", "hosted-cluster-config-operator", "ignition-server", "capi-provider", "cluster-api",
	"cluster-autoscaler", "machine-approver", "control-plane-pki-operator", "cluster-network-operator",
}

// controlPlane is the HostedControlPlane of a hosted cluster.
func (w *World) controlPlane(ns, name string, change func(*hyperv1.HostedControlPlane)) {
	hc := testenv.HostedCluster(ns, name)
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: ns + "-" + name, Name: name, Annotations: map[string]string{hyperv1.HostedClusterAnnotation: ns + "/" + name}},
		Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: hc.Spec.Release.Image, PullSecret: hc.Spec.PullSecret, Platform: hc.Spec.Platform, Networking: hc.Spec.Networking, Services: hc.Spec.Services,
			Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}}}
	change(hcp)
	w.create(hcp)
}

// broken is production/payments-eu: two members of etcd fit on no node.
func (w *World) broken() {
	const ns, name = Production + "-payments-eu", "payments-eu"
	w.controlPlane(Production, name, func(hcp *hyperv1.HostedControlPlane) {
		w.set(&hcp.Status.Conditions, 4*time.Minute, hyperv1.EtcdAvailable, metav1.ConditionFalse, hyperv1.EtcdWaitingForQuorumReason, "1 of 3 etcd members are ready")
		w.set(&hcp.Status.Conditions, 3*time.Minute, hyperv1.HostedControlPlaneAvailable, metav1.ConditionFalse, hyperv1.EtcdWaitingForQuorumReason, "1 of 3 etcd members are ready")
	})
	for _, c := range componentNames {
		switch c {
		case "etcd":
			w.component(ns, c, "1.36.2", 4*time.Minute, false, "")
		case "kube-apiserver":
			w.component(ns, c, "1.36.2", 3*time.Minute, false, "etcd")
		case "kube-controller-manager", "kube-scheduler", "hosted-cluster-config-operator", "cluster-network-operator":
			w.component(ns, c, "1.36.2", 3*time.Minute, false, "kube-apiserver")
		default:
			w.component(ns, c, "1.36.2", 2*time.Hour, true, "")
		}
	}
	labels := map[string]string{"app": "etcd", "hypershift.openshift.io/control-plane-component": "etcd"}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: "registry.example.com/etcd:1"}}}
	w.create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "etcd", Labels: labels}, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(3)), ServiceName: "etcd", Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}, Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: 3, ReadyReplicas: 1, AvailableReplicas: 1}})
	for i := range 3 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("etcd-%d", i), Labels: labels}, Spec: *spec.DeepCopy()}
		if i == 0 {
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}}
		} else {
			p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				Message: "0/6 nodes are available: 6 Insufficient memory.", LastTransitionTime: metav1.NewTime(w.ago(4 * time.Minute))}}}
		}
		w.create(p)
	}
	w.event(ns, "Pod", "etcd-1", "Warning", "FailedScheduling", "0/6 nodes are available: 6 Insufficient memory.", 9)
	w.event(ns, "Pod", "etcd-2", "Warning", "FailedScheduling", "0/6 nodes are available: 6 Insufficient memory.", 8)
	w.event(Production, "HostedCluster", name, "Warning", "EtcdWaitingForQuorum", "1 of 3 etcd members are ready", 1)
	w.event(ns, "Pod", "etcd-0", "Normal", "Started", "Started container etcd", 2)
	w.journal("HostedCluster", Production, name, [][5]string{
		{"3h", "EtcdAvailable", "", "False", "EtcdWaitingForQuorum"}, {"2h57m", "EtcdAvailable", "False", "True", "QuorumAvailable"},
		{"3h", "KubeAPIServerAvailable", "", "False", "WaitingForAvailable"}, {"2h55m", "KubeAPIServerAvailable", "False", "True", "AsExpected"},
		{"3h", "Available", "", "False", "WaitingForAvailable"}, {"2h54m", "Available", "False", "True", "AsExpected"},
		{"3h", "Progressing", "", "True", "RolloutPartiallyComplete"}, {"2h50m", "Progressing", "True", "False", "AsExpected"},
		{"95m", "Progressing", "False", "True", "RolloutPartiallyComplete"}, {"81m", "Progressing", "True", "False", "AsExpected"},
		{"90m", "KubeAPIServerAvailable", "True", "False", "WaitingForAvailable"}, {"88m", "KubeAPIServerAvailable", "False", "True", "AsExpected"},
		{"3h", "ReconciliationSucceeded", "", "True", "ReconciliationSucceeded"}, {"3h", "ValidConfiguration", "", "True", "AsExpected"}, {"3h", "Degraded", "", "False", "AsExpected"},
		{"4m", "EtcdAvailable", "True", "False", "EtcdWaitingForQuorum"}, {"3m", "KubeAPIServerAvailable", "True", "False", "WaitingForAvailable"}, {"3m", "Available", "True", "False", "EtcdWaitingForQuorum"},
	})
	w.machines(ns, "payments-eu-workers", 6)
}

// journal is what became of conditions: time ago, type, from, to, reason.
func (w *World) journal(kind, ns, name string, list [][5]string) {
	var entries []journal.Entry
	for _, l := range list {
		d, err := time.ParseDuration(l[0])
		if err != nil {
			w.t.Fatal(err)
		}
		entries = append(entries, journal.Entry{At: w.ago(d).UTC().Truncate(time.Second), Type: l[1], From: metav1.ConditionStatus(l[2]), To: metav1.ConditionStatus(l[3]), Reason: l[4]})
	}
	lower := map[string]string{"HostedCluster": "hostedcluster", "HostedClusterPackage": "hostedclusterpackage", "Package": "package"}[kind]
	at := ns
	if at == "" {
		at = "package-operator-system"
	}
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: at, Name: journal.Name(lower, name), Labels: map[string]string{journal.Label: lower}}, Data: map[string]string{"journal": journal.Text(entries)}})
}

// machines of a NodePool of production/payments-eu: an old generation that is drained, and a new one.
func (w *World) machines(ns, pool string, n int) {
	of := map[string]string{hyperv1.NodePoolAnnotation: Production + "/" + pool}
	template := func(version string) clusterv1.MachineTemplateSpec {
		return clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{ClusterName: "payments-eu", Version: version, Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("x")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "LocalMachineTemplate", Name: "x"}}}
	}
	for i, set := range []string{pool + "-6f7d8", pool + "-9c4b2"} {
		ms := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: set, Annotations: of}, Spec: clusterv1.MachineSetSpec{ClusterName: "payments-eu", Replicas: ptr.To(int32([]int{2, 4}[i])), Selector: metav1.LabelSelector{MatchLabels: map[string]string{"set": set}}, Template: template([]string{"1.36.1", "1.36.2"}[i])}}
		ms.Spec.Template.Labels = map[string]string{"set": set}
		ms.Status.ReadyReplicas = ptr.To(int32([]int{2, 3}[i]))
		w.create(ms)
	}
	for i := range n {
		set, version := pool+"-9c4b2", "1.36.2"
		if i < 2 {
			set, version = pool+"-6f7d8", "1.36.1"
		}
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("%s-%c%c", set, 'k'+i, 'q'+i), Annotations: of, Labels: map[string]string{"set": set, clusterv1.MachineSetNameLabel: set}}, Spec: template(version).Spec}
		m.Status.Phase = string(clusterv1.MachinePhaseRunning)
		m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: fmt.Sprintf("10.0.4.%d", 20+i)}}
		w.set(&m.Status.Conditions, 2*time.Hour, clusterv1.BootstrapConfigReadyCondition, metav1.ConditionTrue, "Ready", "")
		w.set(&m.Status.Conditions, 2*time.Hour, clusterv1.InfrastructureReadyCondition, metav1.ConditionTrue, "Ready", "")
		if i == n-1 {
			m.Status.Phase = string(clusterv1.MachinePhaseProvisioned)
			w.set(&m.Status.Conditions, 6*time.Minute, clusterv1.MachineReadyCondition, metav1.ConditionFalse, "NotReady", "the node has not joined yet: its configuration was fetched 5 minutes ago")
			w.set(&m.Status.Conditions, 6*time.Minute, clusterv1.MachineNodeHealthyCondition, metav1.ConditionFalse, "NodeDoesNotExist", "the node has not joined yet: its configuration was fetched 5 minutes ago")
		} else {
			if i == n-2 {
				w.set(&m.Status.Conditions, 9*time.Minute, clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionFalse, clusterv1.MachineHealthCheckUnhealthyNodeReason, "Condition Ready on Node is reporting status Unknown for more than 8m")
				w.set(&m.Status.Conditions, 9*time.Minute, clusterv1.MachineOwnerRemediatedCondition, metav1.ConditionFalse, clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, "")
			}
			m.Status.NodeRef = clusterv1.MachineNodeReference{Name: m.Name}
			w.set(&m.Status.Conditions, 2*time.Hour, clusterv1.MachineReadyCondition, metav1.ConditionTrue, "Ready", "")
		}
		w.create(m)
	}
}

// upgrading is production/search: the API server is there, three components are not.
func (w *World) upgrading() {
	const ns = Production + "-search"
	w.controlPlane(Production, "search", func(hcp *hyperv1.HostedControlPlane) {
		w.set(&hcp.Status.Conditions, 3*time.Hour, hyperv1.HostedControlPlaneAvailable, metav1.ConditionTrue, hyperv1.AsExpectedReason, "")
	})
	for i, c := range componentNames {
		if i < 11 {
			w.component(ns, c, "1.36.3", 5*time.Minute, true, "")
		} else {
			w.component(ns, c, "1.35.4", time.Minute, true, "kube-controller-manager")
		}
	}
}
