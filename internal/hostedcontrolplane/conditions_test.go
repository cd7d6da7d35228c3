package hostedcontrolplane

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/etcd/defrag"
	"hcp.internal/platform/internal/controlplane/trouble"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/release"
)

func demoHCP(mutate ...func(*hyperv1.HostedControlPlane)) *hyperv1.HostedControlPlane {
	h := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo", Generation: 7, UID: "1"}}
	h.Spec = hyperv1.HostedControlPlaneSpec{
		ReleaseImage: "10.244.0.1:5000/hypershift/release:1.36.3",
		PullSecret:   corev1.LocalObjectReference{Name: "pull-secret"},
		IssuerURL:    "https://kubernetes.default.svc",
		InfraID:      "demo-abcde",
		Platform:     hyperv1.PlatformSpec{Type: hyperv1.NonePlatform},
		Networking: hyperv1.ClusterNetworking{
			ClusterNetwork: []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}},
			ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}},
		},
		Etcd:                         hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}},
		ControllerAvailabilityPolicy: hyperv1.SingleReplica,
		Services: []hyperv1.ServicePublishingStrategyMapping{
			{Service: hyperv1.APIServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}},
			{Service: hyperv1.OAuthServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.None}},
			{Service: hyperv1.Konnectivity, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.None}},
			{Service: hyperv1.Ignition, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.None}},
		},
	}
	for _, m := range mutate {
		m(h)
	}
	return h
}

func componentReport(name string, available, complete metav1.ConditionStatus, version string) hyperv1.ControlPlaneComponent {
	return hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: hyperv1.ControlPlaneComponentStatus{
		Version: version,
		Conditions: []metav1.Condition{
			{Type: hyperv1.ControlPlaneComponentAvailable, Status: available}, {Type: hyperv1.ControlPlaneComponentRolloutComplete, Status: complete},
		},
	}}
}

// wellObserved is a control plane with nothing wrong; a test changes what it is about.
func wellObserved(mutate ...func(*Observed)) Observed {
	rel := &release.Release{Version: "1.36.3", Image: "10.244.0.1:5000/hypershift/release:1.36.3", Digest: "sha256:abc", Kubernetes: true}
	obs := Observed{
		HCP: demoHCP(), Release: rel, UserRelease: rel,
		Infra:     endpoints.Status{APIHost: "10.97.0.1", APIPort: 6443, AdvertiseAddress: "10.97.0.1", AdvertisePort: 6443},
		Etcd:      &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)}, Status: appsv1.StatefulSetStatus{ReadyReplicas: 3}},
		APIServer: deployment("kube-apiserver", 0),
		Components: []hyperv1.ControlPlaneComponent{
			componentReport("etcd", "True", "True", "1.36.3"), componentReport("kube-apiserver", "True", "True", "1.36.3"),
			componentReport("control-plane-operator", "False", "False", ""),
		},
		ComponentsCurrent: true,
		AdminKubeconfig:   &hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"},
		Health:            &health{host: "10.97.0.1"},
	}
	obs.Deployments = []appsv1.Deployment{*obs.APIServer}
	for _, m := range mutate {
		m(&obs)
	}
	return obs
}

func deployment(name string, unavailable int32) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)}}
	status := corev1.ConditionTrue
	if unavailable > 0 {
		status = corev1.ConditionFalse
	}
	d.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1 - unavailable, UnavailableReplicas: unavailable,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: status}}}
	return d
}

func wasAvailable(obs *Observed) {
	conditions.Set(&obs.HCP.Status.Conditions, noon, metav1.Condition{Type: "Available", Status: "True", Reason: "AsExpected"})
}

func named(host string) func(*Observed) {
	return func(obs *Observed) {
		obs.HCP.Spec.Services[0].ServicePublishingStrategy.LoadBalancer = &hyperv1.LoadBalancerPublishingStrategy{Hostname: hyperv1.PublishedHostname(host)}
	}
}

func TestConditions(t *testing.T) {
	const well = "True AsExpected All is well"
	for name, tc := range map[string]struct {
		obs  Observed
		want map[string]string
	}{
		"When all is well it should say so": {
			obs: wellObserved(),
			want: map[string]string{
				"ValidHostedControlPlaneConfiguration": well, "KubeAPIServerAvailable": well, "InfrastructureReady": well, "ValidReleaseInfo": well,
				"ReconciliationActive": well, "Available": well, "Degraded": "False AsExpected ", "EtcdAvailable": "True QuorumAvailable All is well",
				"ExternalDNSReachable": "Unknown StatusUnknown External DNS is not configured",
			},
		},
		"When the configuration cannot be carried out it should not be available": {
			obs: wellObserved(func(o *Observed) { o.Invalid = errors.New("no routes; use LoadBalancer") }),
			want: map[string]string{
				"ValidHostedControlPlaneConfiguration": "False InsufficientClusterCapabilities no routes; use LoadBalancer",
				"Available":                            "False InsufficientClusterCapabilities no routes; use LoadBalancer",
			},
		},
		"When one of three etcd members is lost it should have a quorum": {
			obs:  wellObserved(func(o *Observed) { o.Etcd.Status.ReadyReplicas = 2 }),
			want: map[string]string{"EtcdAvailable": "True QuorumAvailable All is well", "Available": well},
		},
		"When two of three etcd members are lost it should not be available": {
			obs: wellObserved(func(o *Observed) {
				o.Etcd.Status.ReadyReplicas = 1
				o.EtcdClaims = []string{"volume claim data-etcd-1 is not bound: no storage"}
			}),
			want: map[string]string{
				"EtcdAvailable": "False EtcdWaitingForQuorum 1 of 3 etcd members are ready, 2 are needed: volume claim data-etcd-1 is not bound: no storage",
				"Available":     "False EtcdWaitingForQuorum 1 of 3 etcd members are ready, 2 are needed: volume claim data-etcd-1 is not bound: no storage",
			},
		},
		"When a member of etcd fits on no node that should be the reason, and what it causes come after it": {
			obs: wellObserved(func(o *Observed) {
				o.Etcd.Status.ReadyReplicas = 1
				o.Deployments = []appsv1.Deployment{*deployment("kube-apiserver", 1)}
				o.Troubles = []trouble.Trouble{{Component: "etcd", Reason: trouble.Unschedulable, Message: "pod etcd-1 fits on no node: 1 Insufficient cpu."},
					{Component: "kube-apiserver", Reason: trouble.CrashLoopBackOff, Message: "later"}}
			}),
			want: map[string]string{
				"Available": "False Unschedulable pod etcd-1 fits on no node: 1 Insufficient cpu. (1 of 3 etcd members are ready, 2 are needed)",
				"Degraded":  "True UnavailableReplicas kube-apiserver has 1 unavailable replicas: pod etcd-1 fits on no node: 1 Insufficient cpu.",
			},
		},
		"When a pod does not run and the API serves all the same it should stay available": {
			obs: wellObserved(func(o *Observed) {
				o.Troubles = []trouble.Trouble{{Component: "cluster-autoscaler", Reason: trouble.ImagePullBackOff, Message: "no image"}}
			}),
			want: map[string]string{"Available": well},
		},
		"When etcd does not exist it should say so": {
			obs:  wellObserved(func(o *Observed) { o.Etcd = nil }),
			want: map[string]string{"EtcdAvailable": "False StatefulSetNotFound StatefulSet etcd does not exist yet"},
		},
		"When a shard of etcd has no quorum the control plane should not be available": {
			obs: wellObserved(func(o *Observed) {
				o.EtcdShards = []etcdShard{
					{name: "etcd-pods", workload: &appsv1.StatefulSet{Status: appsv1.StatefulSetStatus{ReadyReplicas: 1}}},
					{name: "etcd-events", workload: &appsv1.StatefulSet{}, obstacles: []string{"pod etcd-events-0 fits no node: 0/1 nodes"}},
				}
			}),
			want: map[string]string{
				"EtcdAvailable": "False EtcdWaitingForQuorum 0 of 1 etcd-events members are ready, 1 are needed: pod etcd-events-0 fits no node: 0/1 nodes",
				"Available":     "False EtcdWaitingForQuorum 0 of 1 etcd-events members are ready, 1 are needed: pod etcd-events-0 fits no node: 0/1 nodes",
			},
		},
		"When a shard of etcd does not exist it should say so": {
			obs:  wellObserved(func(o *Observed) { o.EtcdShards = []etcdShard{{name: "etcd-pods"}} }),
			want: map[string]string{"EtcdAvailable": "False StatefulSetNotFound StatefulSet etcd-pods does not exist yet"},
		},
		"When the database of an etcd is full the control plane should not be available": {
			obs: wellObserved(func(o *Observed) {
				o.EtcdSpaces = []defrag.Space{{Etcd: "etcd", Quota: 8 << 30}, {Etcd: "etcd-events", Quota: 8 << 30, Full: true}}
			}),
			want: map[string]string{
				"EtcdAvailable": "False EtcdDatabaseFull etcd-events refuses writes: its database has grown to its quota of 8Gi. " +
					"History is dropped and members are defragmented; if that gives no room, delete objects in the hosted cluster",
			},
		},
		"When etcd is the user's it should be believed": {
			obs:  wellObserved(func(o *Observed) { o.Etcd, o.HCP.Spec.Etcd.ManagementType = nil, hyperv1.Unmanaged }),
			want: map[string]string{"EtcdAvailable": "True EtcdRunning etcd is managed by the user and not watched", "Available": well},
		},
		"When kube-apiserver does not exist it should say so": {
			obs:  wellObserved(func(o *Observed) { o.APIServer = nil }),
			want: map[string]string{"KubeAPIServerAvailable": "False NotFound Deployment kube-apiserver does not exist yet"},
		},
		"When kube-apiserver is down it should be unavailable and degraded": {
			obs: wellObserved(func(o *Observed) {
				o.APIServer = deployment("kube-apiserver", 1)
				o.Deployments = []appsv1.Deployment{*o.APIServer, *deployment("etcd-proxy", 1)}
			}),
			want: map[string]string{
				"KubeAPIServerAvailable": "False WaitingForAvailable 0 of 1 replicas of Deployment kube-apiserver are available",
				"Available":              "False WaitingForAvailable 0 of 1 replicas of Deployment kube-apiserver are available",
				"Degraded":               "True UnavailableReplicas etcd-proxy has 1 unavailable replicas, kube-apiserver has 1 unavailable replicas",
			},
		},
		"When a certificate authority needs a person it should be degraded and stay available": {
			obs:  wellObserved(func(o *Observed) { o.PKIProblems = []error{errors.New("reading root-ca: restore it")} }),
			want: map[string]string{"Degraded": "True CertificatesNotReconciled reading root-ca: restore it", "Available": well},
		},
		"When the endpoints cannot be read it should not pretend": {
			obs:  wellObserved(func(o *Observed) { o.InfraErr, o.Infra = errors.New("reading service: forbidden"), endpoints.Status{} }),
			want: map[string]string{"InfrastructureReady": "False InfraStatusFailure reading service: forbidden", "Available": "False InfraStatusFailure reading service: forbidden"},
		},
		"When an endpoint has no address it should name it": {
			obs: wellObserved(func(o *Observed) {
				o.Infra = endpoints.Status{Missing: []string{"load balancer of service a/b has no address yet"}}
			}),
			want: map[string]string{
				"InfrastructureReady": "False WaitingOnInfrastructureReady load balancer of service a/b has no address yet",
				"Available":           "False WaitingOnInfrastructureReady load balancer of service a/b has no address yet",
			},
		},
		"When the kubeconfig does not exist it should wait for it": {
			obs:  wellObserved(func(o *Observed) { o.AdminKubeconfig = nil }),
			want: map[string]string{"Available": "False KubeconfigWaitingForCreate the kubeconfig of the administrator does not exist yet"},
		},
		"When the endpoint was not checked yet it should wait for that": {
			obs:  wellObserved(func(o *Observed) { o.Health = nil }),
			want: map[string]string{"Available": "False KASLoadBalancerNotReachable the first health check of the API at 10.97.0.1:6443 has not ended yet"},
		},
		"When the endpoint is not healthy it should say what it answered": {
			obs: wellObserved(wasAvailable, func(o *Observed) {
				o.Health.err = errors.New("https://10.97.0.1:6443/healthz answered 500: failing checks: etcd")
			}),
			want: map[string]string{"Available": "False KASLoadBalancerNotReachable https://10.97.0.1:6443/healthz answered 500: failing checks: etcd"},
		},
		"When a component is not there yet at first it should wait for it": {
			obs: wellObserved(func(o *Observed) {
				o.Components = append(o.Components, componentReport("kube-scheduler", "False", "False", ""), componentReport("a", "False", "False", ""))
			}),
			want: map[string]string{"Available": "False ControlPlaneComponentsNotAvailable components not available yet: a, kube-scheduler"},
		},
		"When a component can't be written it should say why": {
			obs: wellObserved(func(o *Observed) {
				refused := componentReport("kube-scheduler", "False", "False", "")
				conditions.Set(&refused.Status.Conditions, noon, conditions.False(hyperv1.ControlPlaneComponentRolloutComplete, "ReconciliationError", `failed calling webhook "x"`))
				o.Components = append(o.Components, refused, componentReport("a", "False", "False", ""))
			}),
			want: map[string]string{"Available": `False ControlPlaneComponentsNotAvailable components not available yet: a, kube-scheduler; kube-scheduler can't be written: failed calling webhook "x"`},
		},
		"When a component is lost later it should stay available": {
			obs: wellObserved(wasAvailable, func(o *Observed) {
				o.Components = append(o.Components, componentReport("kube-scheduler", "False", "False", "1.36.3"))
			}),
			want: map[string]string{"Available": well},
		},
		"When the release lacks images it should list them": {
			obs:  wellObserved(func(o *Observed) { o.MissingImages = []string{"etcd", "kube-scheduler"} }),
			want: map[string]string{"ValidReleaseInfo": "False MissingReleaseImages release 1.36.3 lacks images: etcd, kube-scheduler"},
		},
		"When the OAuth server leaves a provider out it should say which": {
			obs: wellObserved(func(o *Observed) {
				o.OAuth, o.IDPProblem = true, errors.New("failed to initialize identity providers: x")
			}),
			want: map[string]string{"ValidIDPConfiguration": "False IDPConfigurationError failed to initialize identity providers: x"},
		},
		"When the OAuth server asks all providers it should say so": {
			obs:  wellObserved(func(o *Observed) { o.OAuth = true }),
			want: map[string]string{"ValidIDPConfiguration": "True IDPConfigurationValid All is well"},
		},
		"When the release cannot be read it should be unknown and say why": {
			obs: wellObserved(func(o *Observed) {
				o.Release, o.UserRelease, o.ReleaseErr = nil, nil, errors.New("registry unreachable")
			}),
			want: map[string]string{"ValidReleaseInfo": "Unknown StatusUnknown registry unreachable", "Available": well},
		},
		"When it is paused it should say until when": {
			obs:  wellObserved(func(o *Observed) { o.Pause = pause.Pause{Active: true, Until: noon.Add(time.Hour)} }),
			want: map[string]string{"ReconciliationActive": "False ReconciliationPaused spec.pausedUntil pauses reconciliation until 2026-01-02T13:00:00Z"},
		},
		"When the pause cannot be read it should go on and say so": {
			obs:  wellObserved(func(o *Observed) { o.HCP.Spec.PausedUntil, o.Pause = ptr.To("tomorrow"), pause.Pause{Invalid: true} }),
			want: map[string]string{"ReconciliationActive": `True InvalidPausedUntilValue spec.pausedUntil "tomorrow" is ignored: it is neither a time like 2026-01-02T15:04:05Z nor true or false`},
		},
		"When the external name was not looked up yet it should be unknown": {
			obs:  wellObserved(named("api.example.com")),
			want: map[string]string{"ExternalDNSReachable": "Unknown StatusUnknown api.example.com has not been looked up yet"},
		},
		"When the external name does not resolve it should say so": {
			obs:  wellObserved(named("api.example.com"), func(o *Observed) { o.Health = &health{host: "api.example.com", dns: errors.New("cannot be resolved")} }),
			want: map[string]string{"ExternalDNSReachable": "False ExternalDNSHostNotReachable cannot be resolved"},
		},
		"When the external name resolves it should be fine": {
			obs:  wellObserved(named("api.example.com"), func(o *Observed) { o.Health = &health{host: "api.example.com"} }),
			want: map[string]string{"ExternalDNSReachable": well},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status := tc.obs.HCP.Status.DeepCopy()
			report(status, tc.obs, noon)
			for kind, want := range tc.want {
				c := conditions.Get(status.Conditions, kind)
				g.Expect(c).NotTo(BeNil(), kind)
				g.Expect(string(c.Status)+" "+c.Reason+" "+c.Message).To(Equal(want), kind)
				g.Expect(c.ObservedGeneration).To(Equal(int64(7)), kind)
			}
			for _, kind := range []string{"ValidHostedControlPlaneConfiguration", "EtcdAvailable", "KubeAPIServerAvailable", "Degraded", "InfrastructureReady",
				"ExternalDNSReachable", "ValidReleaseInfo", "ReconciliationActive", "Available"} {
				g.Expect(conditions.Get(status.Conditions, kind)).NotTo(BeNil(), "%s must be set on every pass", kind)
			}
			again := status.DeepCopy()
			report(again, tc.obs, noon.Add(time.Minute))
			g.Expect(again).To(Equal(status), "a second report of the same")
		})
	}
}

//nolint:staticcheck // because old readers read the fields that are deprecated
func TestReport(t *testing.T) {
	t.Run("When all is well it should be ready, with endpoint, kubeconfig and versions", func(t *testing.T) {
		g := NewWithT(t)
		var status hyperv1.HostedControlPlaneStatus
		report(&status, wellObserved(), noon)
		g.Expect(status.Ready).To(BeTrue())
		g.Expect(status.Initialized).To(BeTrue())
		g.Expect(status.ControlPlaneEndpoint).To(Equal(hyperv1.APIEndpoint{Host: "10.97.0.1", Port: 6443}))
		g.Expect(status.KubeConfig).To(Equal(&hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"}))
		g.Expect(status.ControlPlaneVersion.Desired).To(Equal(to136()))
		g.Expect(status.ControlPlaneVersion.History).To(HaveLen(1))
		g.Expect(string(status.ControlPlaneVersion.History[0].State)).To(Equal("Completed"))
		g.Expect(status.VersionStatus.History[0].Image).To(Equal("10.244.0.1:5000/hypershift/release@sha256:abc"))
		g.Expect(status.Version).To(Equal("1.36.3"))
		g.Expect(status.ReleaseImage).To(Equal("10.244.0.1:5000/hypershift/release:1.36.3"))
	})
	t.Run("When a pass did not get through all components it should not complete the version", func(t *testing.T) {
		g := NewWithT(t)
		var status hyperv1.HostedControlPlaneStatus
		report(&status, wellObserved(func(o *Observed) { o.ComponentsCurrent = false }), noon)
		g.Expect(string(status.ControlPlaneVersion.History[0].State)).To(Equal("Partial"))
		g.Expect(status.Version).To(BeEmpty())
	})
	t.Run("When the API was ready once and is lost it should stay initialized and keep its endpoint", func(t *testing.T) {
		g := NewWithT(t)
		var status hyperv1.HostedControlPlaneStatus
		report(&status, wellObserved(), noon)
		report(&status, wellObserved(func(o *Observed) { o.Infra, o.AdminKubeconfig, o.Health = endpoints.Status{}, nil, nil }), noon)
		g.Expect(status.Ready).To(BeFalse())
		g.Expect(status.Initialized).To(BeTrue())
		g.Expect(status.ControlPlaneEndpoint.Host).To(Equal("10.97.0.1"))
		g.Expect(status.KubeConfig).NotTo(BeNil())
	})
	t.Run("When somebody else has a condition there it should stay", func(t *testing.T) {
		g := NewWithT(t)
		theirs := metav1.Condition{Type: "ConfigOperatorReconciliationSucceeded", Status: "True", Reason: "AsExpected", LastTransitionTime: metav1.NewTime(noon)}
		status := hyperv1.HostedControlPlaneStatus{Conditions: []metav1.Condition{theirs}}
		report(&status, wellObserved(), noon)
		g.Expect(*conditions.Get(status.Conditions, theirs.Type)).To(Equal(theirs))
	})
	t.Run("When an OpenShift release is rolled out it should leave the cluster version to the hosted cluster", func(t *testing.T) {
		g := NewWithT(t)
		var status hyperv1.HostedControlPlaneStatus
		report(&status, wellObserved(func(o *Observed) { o.UserRelease = &release.Release{Version: "4.20.1", Image: "x:y"} }), noon)
		g.Expect(status.VersionStatus).To(BeNil())
		g.Expect(conditions.Get(status.Conditions, hyperv1.ClusterVersionAvailable)).To(BeNil())
	})
}
