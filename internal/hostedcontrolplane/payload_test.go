package hostedcontrolplane

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/releaseimage"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift"
	"hcp.internal/platform/internal/controlplane/openshift/controlplaneoperator"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/testenv"
)

// Payloads of the tests.
const (
	payload422 = "quay.example.com/ocp/release:4.22.0"
	payload423 = "quay.example.com/ocp/release:4.22.1"
)

// payloadOf is a payload with every image that components name.
func payloadOf(image, version string) *release.Release {
	r := &release.Release{Image: image, Digest: "sha256:abc" + version, Version: version, KubernetesVersion: "1.35.2", Images: map[string]string{}}
	for _, tag := range openshift.ImageTags() {
		r.Images[tag] = "quay.example.com/ocp/content:" + tag + "-" + version
	}
	return r
}

// newPayloadWorld is a world whose control plane has an OpenShift payload.
func newPayloadWorld(t testing.TB, mutate ...func(*hyperv1.HostedControlPlane)) *world {
	return newPayloadWorldOn(t, testenv.Start(t), mutate...)
}

// newPayloadWorldOn is such a world on some API server.
func newPayloadWorldOn(t testing.TB, env *testenv.Env, mutate ...func(*hyperv1.HostedControlPlane)) *world {
	w := newWorldOn(t, env, append([]func(*hyperv1.HostedControlPlane){func(h *hyperv1.HostedControlPlane) {
		h.Spec.ReleaseImage = payload422
		h.Spec.DNS.BaseDomain = "example.com"
		for i := range h.Spec.Services {
			if s := &h.Spec.Services[i]; s.Service == hyperv1.OAuthServer || s.Service == hyperv1.Ignition {
				s.ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.10"}}
			}
		}
	}}, mutate...)...)
	w.payloads = map[string]*release.Release{payload422: payloadOf(payload422, "4.22.0"), payload423: payloadOf(payload423, "4.22.1")}
	return w
}

// generateFeatureGates plays the featuregate-generator.
func (w *world) generateFeatureGates() {
	w.t.Helper()
	err := w.c.Create(w.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: "feature-gate"},
		Data: map[string]string{"feature-gate.yaml": "status: {featureGates: [{enabled: [{name: A}], disabled: [{name: B}]}]}"}})
	if client.IgnoreAlreadyExists(err) != nil {
		w.t.Fatal(err)
	}
}

// expectGranted compares the Roles that were written with the one by which the control-plane-operator of a payload writes them. An API server refuses what
// goes beyond it; the tests are administrators, who are refused nothing.
func expectGranted(t testing.TB, w *world, hcp *hyperv1.HostedControlPlane) {
	t.Helper()
	g := NewWithT(t)
	rendered, err := controlplaneoperator.NewComponent(controlplaneoperator.Options{}).Render(component.WorkloadContext{
		Context: t.Context(), Reader: w.c, HCP: hcp, Release: w.payloads[payload422], OperatorImage: "example.com/operator:1", OmitOwnerReference: true,
	})
	g.Expect(err).NotTo(HaveOccurred())
	var own []rbacv1.PolicyRule
	for _, obj := range rendered.Manifests {
		if role, ok := obj.(*rbacv1.Role); ok {
			own = append(own, role.Rules...)
		}
	}
	g.Expect(own).NotTo(BeEmpty())
	var roles rbacv1.RoleList
	g.Expect(w.c.List(t.Context(), &roles, client.InNamespace(hcp.Namespace))).To(Succeed())
	g.Expect(len(roles.Items)).To(BeNumerically(">", 10))
	for _, role := range roles.Items {
		_, missing := validation.Covers(own, role.Rules)
		g.Expect(missing).To(BeEmpty(), role.Name)
	}
}

func TestPayloadPasses(t *testing.T) {
	t.Run("When the release is an OpenShift payload it should bring up its components, and then write nothing", func(t *testing.T) {
		g := NewWithT(t)
		w := newPayloadWorld(t)
		w.generateFeatureGates()
		g.Expect(w.settle(w.c)).To(Succeed())
		hcp := w.read()
		g.Expect(condition(hcp, "Available")).To(Equal("True AsExpected All is well"))
		g.Expect(condition(hcp, "ValidReleaseInfo")).To(HavePrefix("True"))
		g.Expect(condition(hcp, "ValidIDPConfiguration")).To(HavePrefix("True IDPConfigurationValid"))
		g.Expect(hcp.Status.KubeadminPassword.Name).To(Equal("kubeadmin-password"))
		get := func(obj client.Object, name string) {
			g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: hcp.Namespace, Name: name}, obj)).To(Succeed(), name)
		}
		for _, name := range []string{"kube-apiserver", "openshift-apiserver", "openshift-oauth-apiserver", "oauth-openshift", "cluster-version-operator", "packageserver", "hosted-cluster-config-operator"} {
			get(&appsv1.Deployment{}, name)
		}
		for _, name := range []string{"oauth-server-crt", "openshift-apiserver-cert", "admin-kubeconfig", "ingress-crt"} {
			get(&corev1.Secret{}, name)
		}
		for name, target := range map[string]int32{"openshift-apiserver": 8443, "openshift-oauth-apiserver": 8443, "packageserver": 5443} {
			svc := &corev1.Service{}
			get(svc, name)
			g.Expect(svc.Spec.Selector).To(Equal(map[string]string{"app": name}))
			g.Expect(svc.Spec.Ports).To(ConsistOf(And(HaveField("Name", "https"), HaveField("Port", int32(443)), HaveField("TargetPort.IntVal", target))))
		}
		oauth, config := &corev1.Service{}, &corev1.ConfigMap{}
		get(oauth, "oauth-openshift")
		get(config, "oauth-openshift")
		g.Expect(config.Data["config.yaml"]).To(ContainSubstring(fmt.Sprintf("masterPublicURL: https://192.0.2.10:%d", oauth.Spec.Ports[0].NodePort)))
		trust := &corev1.ConfigMap{}
		get(trust, "oauth-master-ca-bundle")
		g.Expect(trust.Data["ca.crt"]).To(ContainSubstring("BEGIN CERTIFICATE"))
		expectGranted(t, w, hcp)
		testenv.ExpectQuiet(t, w.c, func(c client.WithWatch) error {
			result, err := w.pass(c)
			g.Expect(result.RequeueAfter).To(Equal(recheckReady))
			return err
		})
	})

	t.Run("When the first pass learns the flavour of the release it should make the certificates of payloads at once, and one writer the kubeconfigs", func(t *testing.T) {
		g := NewWithT(t)
		w := newPayloadWorld(t)
		old := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: "ovnkube-master-external"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
		g.Expect(w.c.Create(t.Context(), old)).To(Succeed())
		_, err := w.pass(w.c)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.play()).To(BeTrue())
		_, err = w.pass(w.c)
		g.Expect(err).NotTo(HaveOccurred())
		secrets := w.secrets()
		g.Expect(secrets).To(And(HaveKey("openshift-apiserver-cert"), HaveKey("oauth-server-crt"), HaveKey("kubeadmin-password")))
		g.Expect(secrets).NotTo(HaveKey("admin-kubeconfig"), "it comes with kube-apiserver")
		local := &corev1.Service{}
		g.Expect(apierrors.IsNotFound(w.c.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: "konnectivity-server-local"}, local))).To(BeTrue(), "it comes with kube-apiserver")
		g.Expect(apierrors.IsNotFound(w.c.Get(t.Context(), client.ObjectKeyFromObject(old), old))).To(BeTrue(), "what older operators left")
		g.Expect(w.read().Status.OAuthCallbackURLTemplate).To(And(HavePrefix("https://192.0.2.10:"), HaveSuffix("/oauth2callback/[identity-provider-name]")))
	})

	t.Run("When the payload lacks an image it should name the tag", func(t *testing.T) {
		g := NewWithT(t)
		w := newPayloadWorld(t)
		delete(w.payloads[payload422].Images, "oauth-server")
		delete(w.payloads[payload422].Images, "aws-cloud-controller-manager") // of a component that this control plane has not
		_, err := w.pass(w.c)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(condition(w.read(), "ValidReleaseInfo")).To(Equal("False MissingReleaseImages release 4.22.0 lacks images: oauth-server"))
	})

	for name, tc := range map[string]struct {
		change func(*hyperv1.HostedControlPlane)
		says   string
	}{
		"When OAuth is published by a load balancer": {func(h *hyperv1.HostedControlPlane) {
			*strategy(h, hyperv1.OAuthServer) = hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
		}, "service OAuthServer is published by LoadBalancer, which only platform Azure has"},
		"When OAuth is published by an unknown way": {func(h *hyperv1.HostedControlPlane) {
			*strategy(h, hyperv1.OAuthServer) = hyperv1.ServicePublishingStrategy{Type: hyperv1.S3}
		}, `service OAuthServer cannot be published by "S3"`},
		"When nobody says how machines reach ignition": {func(h *hyperv1.HostedControlPlane) {
			*strategy(h, hyperv1.Ignition) = hyperv1.ServicePublishingStrategy{Type: hyperv1.None}
		}, `service Ignition cannot be published by "None"`},
	} {
		t.Run(name+" it should say so before a component is made", func(t *testing.T) {
			g := NewWithT(t)
			w := newPayloadWorld(t, tc.change)
			_, err := w.pass(w.c)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(condition(w.read(), "ValidHostedControlPlaneConfiguration")).To(HavePrefix("False InsufficientClusterCapabilities " + tc.says))
			list := &hyperv1.ControlPlaneComponentList{}
			g.Expect(w.c.List(t.Context(), list, client.InNamespace(w.hcp.Namespace))).To(Succeed())
			g.Expect(list.Items).To(BeEmpty())
		})
	}

	for name, tc := range map[string]struct {
		change func(*hyperv1.HostedControlPlane)
		says   string
	}{
		"When a capability is unknown": {func(h *hyperv1.HostedControlPlane) {
			h.Spec.Capabilities = &hyperv1.Capabilities{Disabled: []hyperv1.OptionalCapability{"Teleport"}}
		}, `spec.capabilities.disabled[0]: Unsupported value: "Teleport"`},
		"When the name of a feature is malformed": {func(h *hyperv1.HostedControlPlane) {
			h.Spec.Configuration = &hyperv1.ClusterConfiguration{FeatureGate: &configv1.FeatureGateSpec{FeatureGateSelection: configv1.FeatureGateSelection{
				FeatureSet: configv1.CustomNoUpgrade, CustomNoUpgrade: &configv1.CustomFeatureGates{Enabled: []configv1.FeatureGateName{"A=true\n- B"}}}}}
		}, "spec.configuration.featureGate.customNoUpgrade.enabled[0]"},
	} {
		t.Run(name+" the API should refuse it by its field", func(t *testing.T) {
			w := newPayloadWorld(t)
			bad := w.hcp.DeepCopy()
			bad.ResourceVersion, bad.UID, bad.Name = "", "", "bad"
			tc.change(bad)
			NewWithT(t).Expect(w.c.Create(t.Context(), bad)).To(MatchError(ContainSubstring(tc.says)))
		})
	}

	t.Run("When the features of the payload can't be read it should name them, and roll out nothing that needs them", func(t *testing.T) {
		g := NewWithT(t)
		w := newPayloadWorld(t)
		g.Expect(w.c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: "feature-gate"},
			Data: map[string]string{"feature-gate.yaml": "status: [nonsense"}})).To(Succeed())
		for range 4 {
			_, err := w.pass(w.c)
			if err != nil {
				g.Expect(err).To(MatchError(ContainSubstring("feature-gate")))
			}
			w.play()
		}
		report := &hyperv1.ControlPlaneComponent{}
		g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: "kube-apiserver"}, report)).To(Succeed())
		g.Expect(conditions.Get(report.Status.Conditions, hyperv1.ControlPlaneComponentRolloutComplete).Message).To(ContainSubstring("parsing key feature-gate.yaml of ConfigMap"))
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: "kube-apiserver"}}
		g.Expect(apierrors.IsNotFound(w.c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment))).To(BeTrue())
	})

	t.Run("When a release can't be read one program should tell, whichever is there for it", func(t *testing.T) {
		g := NewWithT(t)
		operator := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: names.ConfigOperator}}
		operator.Spec.Template.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{Name: releaseimage.EnvOperateOn, Value: payload422}}}}
		obs := Observed{HCP: demoHCP(func(h *hyperv1.HostedControlPlane) { h.Spec.ReleaseImage = payload422 }), Flavour: openShift, ReleaseErr: errBroken, Deployments: []appsv1.Deployment{operator}}
		accepted := func(obs Observed) *metav1.Condition {
			var status hyperv1.HostedControlPlaneStatus
			report(&status, obs, noon)
			return conditions.Get(status.Conditions, hyperv1.ClusterVersionReleaseAccepted)
		}
		g.Expect(accepted(obs)).To(BeNil(), "the hosted cluster's own operator tells of this release")
		obs.HCP.Spec.ReleaseImage = payload423 // which that one holds for
		g.Expect(accepted(obs)).To(HaveField("Status", metav1.ConditionFalse))
		obs.Deployments, obs.HCP.Spec.ReleaseImage = nil, payload422
		g.Expect(accepted(obs)).To(HaveField("Status", metav1.ConditionFalse), "nobody else is there yet")
	})

	t.Run("When the payload changes kube-apiserver should wait for etcd, and the others for it", func(t *testing.T) {
		g := NewWithT(t)
		w := newPayloadWorld(t)
		w.generateFeatureGates()
		g.Expect(w.settle(w.c)).To(Succeed())
		w.update(func(h *hyperv1.HostedControlPlane) { h.Spec.ReleaseImage = payload423 })
		_, err := w.pass(w.c)
		g.Expect(err).NotTo(HaveOccurred())
		release := func(d client.Object) string {
			name := d.GetName()
			g.Expect(w.c.Get(t.Context(), client.ObjectKeyFromObject(d), d)).To(Succeed(), name)
			if set, ok := d.(*appsv1.StatefulSet); ok {
				return set.Spec.Template.Annotations[hyperv1.ReleaseImageAnnotation]
			}
			return d.(*appsv1.Deployment).Spec.Template.Annotations[hyperv1.ReleaseImageAnnotation]
		}
		named := metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: "etcd"}
		g.Expect(release(&appsv1.StatefulSet{ObjectMeta: named})).To(Equal(payload423))
		for _, name := range []string{"kube-apiserver", "openshift-apiserver", "oauth-openshift"} {
			named.Name = name
			g.Expect(release(&appsv1.Deployment{ObjectMeta: named})).To(Equal(payload422), name)
		}
		g.Expect(w.settle(w.c)).To(Succeed())
		for _, name := range []string{"kube-apiserver", "openshift-apiserver", "oauth-openshift"} {
			named.Name = name
			g.Expect(release(&appsv1.Deployment{ObjectMeta: named})).To(Equal(payload423), name)
		}
	})
}

func strategy(h *hyperv1.HostedControlPlane, service hyperv1.ServiceType) *hyperv1.ServicePublishingStrategy {
	for i := range h.Spec.Services {
		if h.Spec.Services[i].Service == service {
			return &h.Spec.Services[i].ServicePublishingStrategy
		}
	}
	return nil
}
