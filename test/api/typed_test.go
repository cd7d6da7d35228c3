package api_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/testenv"
)

// Operators write through the Go types. A type whose zero value marshals to something that its own schema rejects, or that
// hides a default, would break them, so the least that each may say is written here and read again.

func typedClient(t *testing.T) (client.Client, string) {
	t.Helper()
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(autoscalingv1.AddToScheme(scheme)).To(Succeed())
	return env.Client(t, scheme), env.Namespace(t)
}

func fourServices() []hyperv1.ServicePublishingStrategyMapping {
	var out []hyperv1.ServicePublishingStrategyMapping
	for _, s := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		out = append(out, hyperv1.ServicePublishingStrategyMapping{
			Service: s, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.Route},
		})
	}
	return out
}

func TestTypedHostedCluster(t *testing.T) {
	g := NewWithT(t)
	c, ns := typedClient(t)
	hc := &hyperv1.HostedCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo"},
		Spec: hyperv1.HostedClusterSpec{
			Release:    hyperv1.Release{Image: "registry.example.com/release:1.36.3"},
			Platform:   hyperv1.PlatformSpec{Type: hyperv1.LocalPlatform},
			PullSecret: corev1.LocalObjectReference{Name: "pull-secret"},
			Services:   fourServices(),
		},
	}
	g.Expect(c.Create(t.Context(), hc)).To(Succeed())

	t.Log("When a typed object leaves fields out it should get their defaults")
	g.Expect(hc.Spec.Networking.ClusterNetwork).To(Equal([]hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}))
	g.Expect(hc.Spec.Networking.ServiceNetwork).To(Equal([]hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}}))
	g.Expect(hc.Spec.Networking.NetworkType).To(Equal(hyperv1.OVNKubernetes))
	g.Expect(hc.Spec.Etcd.ManagementType).To(Equal(hyperv1.Managed))
	g.Expect(hc.Spec.Etcd.Managed.Storage.PersistentVolume.Size.String()).To(Equal("8Gi"))
	g.Expect(hc.Spec.ControllerAvailabilityPolicy).To(Equal(hyperv1.HighlyAvailable))
	g.Expect(hc.Spec.InfrastructureAvailabilityPolicy).To(Equal(hyperv1.SingleReplica))
	g.Expect(hc.Spec.IssuerURL).To(Equal("https://kubernetes.default.svc"))
	g.Expect(hc.Spec.OLMCatalogPlacement).To(Equal(hyperv1.ManagementOLMCatalogPlacement))
	g.Expect(hc.Spec.Capabilities).To(Equal(&hyperv1.Capabilities{}))

	t.Log("When a typed object is written back unchanged it should be accepted and stay as it is")
	generation := hc.Generation
	g.Expect(c.Update(t.Context(), hc)).To(Succeed())
	g.Expect(hc.Generation).To(Equal(generation))

	t.Log("When the least of every status is written it should be accepted")
	now := metav1.NewTime(time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC))
	g.Expect(c.Status().Update(t.Context(), hc)).To(Succeed())
	release := configv1.Release{Version: "1.36.3", Image: hc.Spec.Release.Image}
	hc.Status = hyperv1.HostedClusterStatus{
		Version: &hyperv1.ClusterVersionStatus{
			Desired: release, ObservedGeneration: 1,
			History: []configv1.UpdateHistory{{State: configv1.PartialUpdate, StartedTime: now, Image: release.Image}},
		},
		ControlPlaneVersion: hyperv1.ControlPlaneVersionStatus{
			Desired: release,
			History: []hyperv1.ControlPlaneUpdateHistory{{State: configv1.PartialUpdate, StartedTime: now, Version: "1.36.3", Image: release.Image}},
		},
		KubeConfig:           &corev1.LocalObjectReference{Name: "demo-admin-kubeconfig"},
		ControlPlaneEndpoint: hyperv1.APIEndpoint{Host: "192.0.2.1", Port: 6443},
		PayloadArch:          hyperv1.AMD64,
		SecretEncryption: hyperv1.SecretEncryptionStatus{ActiveKey: hyperv1.SecretEncryptionKeyStatus{
			Provider: hyperv1.SecretEncryptionProviderAESCBC,
			AESCBC:   &hyperv1.AESCBCKeyStatus{Secret: hyperv1.EncryptionSecretReference{Name: "key"}, DataHash: "0"},
		}},
		Conditions: []metav1.Condition{{
			Type: hyperv1.HostedClusterAvailable, Status: metav1.ConditionFalse, Reason: hyperv1.WaitingForAvailableReason, LastTransitionTime: now,
		}},
	}
	g.Expect(c.Status().Update(t.Context(), hc)).To(Succeed())
	g.Expect(hc.Status.Version.History[0].CompletionTime).To(BeNil())
}

func TestTypedHostedControlPlane(t *testing.T) {
	g := NewWithT(t)
	c, ns := typedClient(t)
	hcp := &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo"},
		Spec: hyperv1.HostedControlPlaneSpec{
			ReleaseImage: "registry.example.com/release:1.36.3",
			Platform:     hyperv1.PlatformSpec{Type: hyperv1.NonePlatform},
			PullSecret:   corev1.LocalObjectReference{Name: "pull-secret"},
			Services:     fourServices(),
			IssuerURL:    "https://kubernetes.default.svc",
			InfraID:      "demo-abcde",
			Networking: hyperv1.ClusterNetworking{
				ClusterNetwork: []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}},
				ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}},
			},
			Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{
				Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage},
			}},
		},
	}
	g.Expect(c.Create(t.Context(), hcp)).To(Succeed())

	t.Log("When the least of the status is written it should get the defaults of the Cluster API contract")
	hcp.Status = hyperv1.HostedControlPlaneStatus{
		KubeConfig:    &hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"},
		VersionStatus: &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Version: "1.36.3", Image: hcp.Spec.ReleaseImage}},
	}
	g.Expect(c.Status().Update(t.Context(), hcp)).To(Succeed())
	g.Expect(hcp.Status.Ready).To(BeFalse())
	g.Expect(hcp.Status.ExternalManagedControlPlane).To(HaveValue(BeTrue()))
}

func TestTypedNodePool(t *testing.T) {
	g := NewWithT(t)
	c, ns := typedClient(t)
	np := &hyperv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo"},
		Spec: hyperv1.NodePoolSpec{
			ClusterName: "demo",
			Release:     hyperv1.Release{Image: "registry.example.com/release:1.36.3"},
			Platform:    hyperv1.NodePoolPlatform{Type: hyperv1.LocalPlatform},
			Management:  hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace},
		},
	}
	g.Expect(c.Create(t.Context(), np)).To(Succeed())
	g.Expect(np.Spec.Arch).To(Equal(hyperv1.ArchitectureAMD64))
	g.Expect(np.Spec.Management.Replace.Strategy).To(Equal(hyperv1.UpgradeStrategyRollingUpdate))
	g.Expect(np.Spec.Management.Replace.RollingUpdate.MaxSurge.IntValue()).To(Equal(1))

	t.Log("When the scale subresource asks for replicas it should set them")
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	g.Expect(c.SubResource("scale").Update(t.Context(), np, client.WithSubResourceBody(scale))).To(Succeed())
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(np), np)).To(Succeed())
	g.Expect(np.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))

	t.Log("When the least of the status is written it should be accepted")
	np.Status = hyperv1.NodePoolStatus{
		Replicas:   1,
		Conditions: []hyperv1.NodePoolCondition{{Type: hyperv1.NodePoolReadyConditionType, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}},
	}
	g.Expect(c.Status().Update(t.Context(), np)).To(Succeed())
}

func TestTypedControlPlaneComponent(t *testing.T) {
	g := NewWithT(t)
	c, ns := typedClient(t)
	cpc := &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "etcd"}}
	g.Expect(c.Create(t.Context(), cpc)).To(Succeed())
	cpc.Status = hyperv1.ControlPlaneComponentStatus{
		Version:   "1.36.3",
		Resources: []hyperv1.ComponentResource{{Kind: "Service", Name: "etcd-client"}},
		Conditions: []metav1.Condition{{
			Type: hyperv1.ControlPlaneComponentRolloutComplete, Status: metav1.ConditionTrue, Reason: hyperv1.AsExpectedReason, LastTransitionTime: metav1.Now(),
		}},
	}
	g.Expect(c.Status().Update(t.Context(), cpc)).To(Succeed())
}
