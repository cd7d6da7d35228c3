package configoperator

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hcpstatus"
	"hcp.internal/platform/internal/configoperator/hold"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/testenv"
)

// payloadWorld is a hosted cluster of an OpenShift payload, with what its cluster-version-operator has made. Two API servers are the two clusters.
type payloadWorld struct {
	env    *testenv.Env // the hosted cluster
	client client.WithWatch
	hosted client.WithWatch // as an administrator
	ours   client.WithWatch // as the operator's user, whom admission policies let through
	hcp    *hyperv1.HostedControlPlane
	r      *Reconciler
}

// stubs are kinds that a payload defines, by API version: kind, plural, and a dot behind those that are in namespaces.
var stubs = map[string]string{
	"config.openshift.io/v1": "Infrastructure infrastructures DNS dnses Ingress ingresses Network networks Proxy proxies Build builds Image images Project projects ClusterVersion clusterversions " +
		"FeatureGate featuregates ClusterOperator clusteroperators OperatorHub operatorhubs APIServer apiservers Authentication authentications ImageDigestMirrorSet imagedigestmirrorsets",
	"operator.openshift.io/v1":               "Network networks CloudCredential cloudcredentials Storage storages CSISnapshotController csisnapshotcontrollers ClusterCSIDriver clustercsidrivers IngressController ingresscontrollers.",
	"operator.openshift.io/v1alpha1":         "ImageContentSourcePolicy imagecontentsourcepolicies",
	"imageregistry.operator.openshift.io/v1": "Config configs",
	"monitoring.coreos.com/v1":               "PrometheusRule prometheusrules. ServiceMonitor servicemonitors. PodMonitor podmonitors.",
	"operators.coreos.com/v1alpha1":          "CatalogSource catalogsources.",
}

// define makes the kinds of an API version, as the cluster-version-operator does.
func (w *payloadWorld) define(t testing.TB, apiVersion string) {
	t.Helper()
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(stubs[apiVersion])
	for i := 0; i < len(words); i += 2 {
		kind, plural := words[i], strings.TrimSuffix(words[i+1], ".")
		scope := "Cluster"
		if plural != words[i+1] {
			scope = "Namespaced"
		}
		crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"group": gv.Group, "scope": scope,
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{
				"name": gv.Version, "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		}}}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName(plural + "." + gv.Group)
		if err := w.hosted.Create(t.Context(), crd); err != nil {
			t.Fatalf("defining %s: %v", kind, err)
		}
	}
	for i := 0; i < len(words); i += 2 { // each is established by itself
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gv.WithKind(words[i] + "List"))
		NewWithT(t).Eventually(func() error { return w.hosted.List(t.Context(), list) }).WithTimeout(time.Minute).Should(Succeed(), words[i])
	}
}

func newPayloadWorld(t testing.TB) *payloadWorld {
	t.Helper()
	management, env := testenv.Start(t), testenv.StartOther(t)
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &payloadWorld{env: env, client: management.Client(t, scheme)}
	if w.hosted, err = hostedClient(bounded(env.Config), scheme); err != nil {
		t.Fatal(err)
	}
	cfg := rest.CopyConfig(env.Config)
	cfg.Impersonate.UserName = hostedUser
	if w.ours, err = hostedClient(bounded(cfg), scheme); err != nil {
		t.Fatal(err)
	}
	if err := w.hosted.Create(t.Context(), hostedBinding()); err != nil {
		t.Fatal(err)
	}
	w.hcp = openshiftControlPlane(management.Namespace(t))
	status := w.hcp.Status.DeepCopy()
	if err := w.client.Create(t.Context(), w.hcp); err != nil {
		t.Fatalf("creating a HostedControlPlane: %v", err)
	}
	w.hcp.Status = *status
	if err := w.client.Status().Update(t.Context(), w.hcp); err != nil {
		t.Fatal(err)
	}
	ns := w.hcp.Namespace
	object := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }
	for _, o := range []client.Object{
		&corev1.Secret{ObjectMeta: object("pull-secret"), Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{".dockerconfigjson": []byte(`{"auths":{}}`)}},
		&corev1.Secret{ObjectMeta: object("konnectivity-agent"), Data: map[string][]byte{"tls.crt": []byte("certificate"), "tls.key": []byte("key")}},
		&corev1.Secret{ObjectMeta: object("ingress-crt"), Data: map[string][]byte{"tls.crt": []byte("certificate"), "tls.key": []byte("key")}},
		&corev1.ConfigMap{ObjectMeta: object("konnectivity-ca-bundle"), Data: map[string]string{"ca.crt": "authority"}},
		&corev1.ConfigMap{ObjectMeta: object("root-ca"), Data: map[string]string{"ca.crt": authorityPEM(t)}},
		&corev1.Secret{ObjectMeta: object("kubeadmin-password"), Data: map[string][]byte{"password": []byte("aaaaa-bbbbb-ccccc-ddddd")}},
		&corev1.ConfigMap{ObjectMeta: object("openshift-controller-manager-config"), Data: map[string]string{"config.yaml": "controllers: ['*']\n"}},
		&corev1.ConfigMap{ObjectMeta: object("kubelet-client-ca"), Data: map[string]string{"ca.crt": "authority of nodes"}},
		service(ns, "openshift-apiserver"), service(ns, "openshift-oauth-apiserver"), service(ns, "packageserver"),
	} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"openshift", "openshift-config", "openshift-config-managed", "openshift-ingress-operator", "openshift-image-registry", "openshift-cluster-csi-drivers",
		"openshift-marketplace", "openshift-monitoring", "openshift-kube-apiserver-operator", "openshift-operator-lifecycle-manager", "openshift-network-operator"} {
		if err := w.hosted.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	w.r = w.reconciler(w.client, w.ours)
	return w
}

func (w *payloadWorld) reconciler(management, hosted client.Client) *Reconciler {
	return &Reconciler{
		Management: management, Hosted: hosted, Clock: clocktesting.NewFakePassiveClock(noon), TunnelHost: "10.244.0.1", TunnelPort: 30091,
		Payload: &Payload{Version: "4.22.0", Kubernetes: "1.35.2", OAuthHost: "oauth.example.com", OAuthPort: 443,
			Releases: release.ProviderFunc(func(_ context.Context, image string, _ []byte) (*release.Release, error) {
				return &release.Release{Image: image, Version: "4.22.0", KubernetesVersion: "1.35.2", Placeholders: true}, nil
			})},
	}
}

func openshiftControlPlane(namespace string) *hyperv1.HostedControlPlane {
	return hostedControlPlane(func(h *hyperv1.HostedControlPlane) {
		h.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: "demo"}
		h.Spec.ReleaseImage = "registry.example.com/release:4.22.0"
		h.Spec.IssuerURL = "https://kubernetes.default.svc"
		h.Spec.PullSecret.Name, h.Spec.InfraID, h.Spec.ClusterID = "pull-secret", "demo", "6a0b5fd5-6f2f-4d69-9b4e-0b2f0f9f8a11"
		h.Spec.DNS.BaseDomain = "example.com"
		h.Spec.Platform.Type = hyperv1.NonePlatform
		h.Spec.OLMCatalogPlacement = hyperv1.ManagementOLMCatalogPlacement
		for _, s := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
			h.Spec.Services = append(h.Spec.Services, hyperv1.ServicePublishingStrategyMapping{
				Service: s, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer},
			})
		}
		h.Spec.Etcd.ManagementType = hyperv1.Managed
		h.Spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}
		h.Spec.Networking.NetworkType = hyperv1.OVNKubernetes
		h.Spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}
		h.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "10.96.0.0/16"}}
		// Without OAuth: kinds of oauth.openshift.io are those of an API server that doesn't run here.
		h.Spec.Configuration = &hyperv1.ClusterConfiguration{Authentication: &configv1.AuthenticationSpec{Type: configv1.AuthenticationTypeOIDC}}
	})
}

func service(namespace, name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}}
}

func (w *payloadWorld) pass(t testing.TB) error {
	t.Helper()
	_, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
	return err
}

// quiet fails when a pass writes anything to either cluster.
func (w *payloadWorld) quiet(t *testing.T) {
	t.Helper()
	before := w.r
	defer func() { w.r = before }()
	testenv.ExpectQuiet(t, w.client, func(c client.WithWatch) error {
		w.r = w.reconciler(c, w.ours)
		return w.pass(t)
	})
	testenv.ExpectQuiet(t, w.ours, func(c client.WithWatch) error {
		w.r = w.reconciler(w.client, c)
		return w.pass(t)
	})
}

func (w *payloadWorld) condition(t testing.TB, kind string) *metav1.Condition {
	t.Helper()
	hcp := &hyperv1.HostedControlPlane{}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), hcp); err != nil {
		t.Fatal(err)
	}
	return conditions.Get(hcp.Status.Conditions, kind)
}

func (w *payloadWorld) get(t testing.TB, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	if err := w.hosted.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, u); err != nil {
		t.Fatalf("reading %s %s/%s: %v", kind, namespace, name, err)
	}
	return u
}

func TestPayload(t *testing.T) {
	w := newPayloadWorld(t)
	ours := hyperv1.ConfigOperatorReconciliationSucceeded
	t.Run("When kinds of the payload aren't there yet it should name what waits for them and make the rest", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.pass(t)).To(MatchError(ContainSubstring("ClusterVersion version")))
		c := w.condition(t, ours)
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(c.Message).To(And(ContainSubstring("ClusterVersion version"), ContainSubstring("the cluster-version-operator of the payload defines it")))
		w.get(t, "apiregistration.k8s.io/v1", "APIService", "", "v1.route.openshift.io")
		w.get(t, "v1", "Namespace", "", "openshift-kube-apiserver")
	})
	t.Run("When the kinds come it should make everything without a restart", func(t *testing.T) {
		g := NewWithT(t)
		for apiVersion := range stubs {
			w.define(t, apiVersion)
		}
		g.Eventually(func() error { return w.pass(t) }).WithTimeout(30 * time.Second).Should(Succeed())
		g.Expect(w.condition(t, ours).Status).To(Equal(metav1.ConditionTrue))
		version := w.get(t, "config.openshift.io/v1", "ClusterVersion", "", "version")
		g.Expect(version.GetLabels()).To(HaveKeyWithValue(hyperv1.ManagedLabel, "true"))
		g.Expect(nested(version, "spec", "clusterID")).To(Equal(w.hcp.Spec.ClusterID))
		g.Expect(nested(w.get(t, "config.openshift.io/v1", "Infrastructure", "", "cluster"), "status", "controlPlaneTopology")).To(Equal("External"))
		operator := w.get(t, "config.openshift.io/v1", "ClusterOperator", "", "kube-apiserver")
		versions, _, _ := unstructured.NestedSlice(operator.Object, "status", "versions")
		g.Expect(versions).To(ContainElement(map[string]any{"name": "kube-apiserver", "version": "1.35.2"}))
		endpoints := w.get(t, "v1", "Endpoints", "default", "openshift-apiserver")
		g.Expect(fmt.Sprint(endpoints.Object["subsets"])).To(ContainSubstring("443"))
	})
	t.Run("When nothing changed it should write nothing", func(t *testing.T) {
		w.quiet(t)
	})
	t.Run("When a payload's cluster was restored it should say what is missing, look again soon, and stay whole once it was found so", func(t *testing.T) {
		g := NewWithT(t)
		const kind = hyperv1.HostedClusterRestoredFromBackup
		g.Expect(w.condition(t, kind)).To(BeNil(), "it was never restored")
		mark := func(present bool) {
			hcp := &hyperv1.HostedControlPlane{}
			g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), hcp)).To(Succeed())
			hcp.Annotations = map[string]string{}
			if present {
				hcp.Annotations[hyperv1.HostedClusterRestoredFromBackupAnnotation] = ""
			}
			g.Expect(w.client.Update(t.Context(), hcp)).To(Succeed())
		}
		mark(true)
		defer mark(false)
		result, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(BeNumerically("<", 3*time.Minute))
		g.Expect(w.condition(t, kind)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "RecoveryFinished"),
			HaveField("Message", "Hosted cluster recovery not finished yet: there is no StatefulSet openshift-monitoring/prometheus-k8s")))
		w.quiet(t)
		labels := map[string]string{"app": "prometheus"}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-monitoring", Name: "prometheus-k8s"}, Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}}}
		g.Expect(w.hosted.Create(t.Context(), set)).To(Succeed())
		set.Status.ObservedGeneration = set.Generation
		g.Expect(w.hosted.Status().Update(t.Context(), set)).To(Succeed())
		g.Expect(w.pass(t)).To(Succeed())
		g.Expect(w.condition(t, kind)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", "Hosted cluster recovery finished")))
		mark(false)
		g.Expect(w.pass(t)).To(Succeed())
		g.Expect(w.condition(t, kind)).To(HaveField("Status", metav1.ConditionTrue), "the mark is gone because of it")
		w.quiet(t)
	})
	t.Run("When a user changes what belongs to the HostedCluster the API server should refuse it", func(t *testing.T) {
		g := NewWithT(t)
		user := rest.CopyConfig(w.env.Config)
		user.Impersonate.UserName, user.Impersonate.Groups = "admin@example.com", []string{"system:masters"}
		c, err := client.New(user, client.Options{Scheme: w.hosted.Scheme()})
		g.Expect(err).NotTo(HaveOccurred())
		// Policies take effect some time after they are written.
		g.Eventually(func() error {
			u := w.get(t, "config.openshift.io/v1", "APIServer", "", "cluster")
			_ = unstructured.SetNestedField(u.Object, "Modern", "spec", "tlsSecurityProfile", "type")
			return c.Update(t.Context(), u, client.DryRunAll) // one that got through would let those after it through as no change
		}).WithTimeout(time.Minute).Should(MatchError(ContainSubstring("change it in the HostedCluster instead")))
		u := w.get(t, "config.openshift.io/v1", "Infrastructure", "", "cluster")
		_ = unstructured.SetNestedField(u.Object, "AWS", "spec", "platformSpec", "type")
		g.Expect(c.Update(t.Context(), u)).To(MatchError(apierrors.IsInvalid, "invalid"))
		g.Expect(c.Delete(t.Context(), w.get(t, "config.openshift.io/v1", "Network", "", "cluster"))).NotTo(Succeed())
	})
	t.Run("When a change got through all the same it should be put back", func(t *testing.T) {
		g := NewWithT(t)
		policy := w.get(t, "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "", "config-binding")
		g.Expect(w.hosted.Delete(t.Context(), policy)).To(Succeed())
		var u *unstructured.Unstructured
		g.Eventually(func() error { // the policy is forgotten after a while, too
			u = w.get(t, "config.openshift.io/v1", "APIServer", "", "cluster")
			_ = unstructured.SetNestedField(u.Object, "Modern", "spec", "tlsSecurityProfile", "type")
			return w.hosted.Update(t.Context(), u)
		}).WithTimeout(30 * time.Second).Should(Succeed())
		network := w.get(t, "config.openshift.io/v1", "Network", "", "cluster")
		_ = unstructured.SetNestedField(network.Object, "Calico", "spec", "networkType")
		g.Expect(w.hosted.Update(t.Context(), network)).To(Succeed())
		g.Expect(w.pass(t)).To(Succeed())
		g.Expect(nested(w.get(t, "config.openshift.io/v1", "Network", "", "cluster"), "spec", "networkType")).To(Equal("OVNKubernetes"))
		w.get(t, "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "", "config-binding")
	})
}

func TestPayloadStatus(t *testing.T) {
	w := newPayloadWorld(t)
	pass := func() error {
		r := &hcpstatus.Reconciler{Management: w.client, Hosted: w.ours, Clock: clocktesting.NewFakePassiveClock(noon), Hold: hold.For("")}
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
		return err
	}
	t.Run("When the hosted cluster has no version yet it should say that it doesn't know", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(pass()).To(Succeed())
		g.Expect(w.condition(t, hyperv1.ClusterVersionAvailable).Reason).To(Equal(hyperv1.StatusUnknownReason))
	})
	t.Run("When its version is huge the HostedControlPlane should take what is told of it", func(t *testing.T) {
		g := NewWithT(t)
		w.define(t, "config.openshift.io/v1")
		var history, conds []any
		for range 1000 {
			history = append(history, map[string]any{"state": "Completed", "startedTime": "2026-11-20T12:00:00Z", "completionTime": "2026-11-20T13:00:00Z", "version": "4.22.0", "image": "r@sha256:1", "verified": false})
			conds = append(conds, map[string]any{"type": "Failing", "status": "True", "reason": "<b>", "message": strings.Repeat("x\x00", 100), "lastTransitionTime": "2026-11-20T13:00:00Z"})
		}
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(hcpstatus.ClusterVersion)
		u.SetName("version")
		g.Expect(w.hosted.Create(t.Context(), u)).To(Succeed())
		u.Object["status"] = map[string]any{"desired": map[string]any{"version": "4.22.0", "image": "r@sha256:1"}, "history": history, "conditions": conds}
		g.Expect(w.hosted.Status().Update(t.Context(), u)).To(Succeed())
		g.Expect(pass()).To(Succeed())
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), hcp)).To(Succeed())
		g.Expect(hcp.Status.VersionStatus.History).To(HaveLen(100))
		g.Expect(w.condition(t, hyperv1.ClusterVersionSucceeding).Status).To(Equal(metav1.ConditionFalse))
		before := hcp.ResourceVersion
		g.Expect(pass()).To(Succeed())
		g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), hcp)).To(Succeed())
		g.Expect(hcp.ResourceVersion).To(Equal(before), "nothing new was told")
	})
}

func nested(u *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(u.Object, path...)
	return s
}

// authorityPEM is a certificate that an API server takes for the authority of an aggregated one.
func authorityPEM(t testing.TB) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root-ca"}, NotBefore: noon, NotAfter: noon.AddDate(20, 0, 0), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
