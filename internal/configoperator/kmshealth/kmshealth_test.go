package kmshealth

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		plugins []string
		servers []answered
		wanted  bool
		status  metav1.ConditionStatus // empty: no condition
		says    string
		after   time.Duration
	}{
		"When no plugin holds keys there should be no condition": {after: unused},
		"When a plugin is asked for it should look soon":         {wanted: true, after: sooner},
		"When all answer it should be True":                      {plugins: []string{"local-kms-a", "awskmskey-1"}, servers: of([]Answer{Well, Well}), status: metav1.ConditionTrue, says: hyperv1.AllIsWellMessage, after: again},
		"When ours does not answer it should name it":            {plugins: []string{"local-kms-a"}, servers: of([]Answer{Away}), status: metav1.ConditionFalse, says: "key local-kms-a may not be had: see container kms-plugin in pod kas-1:", after: sooner},
		"When that of a cloud does not answer it should name it": {plugins: []string{"awskmskey-1", "awskmskey-2"}, servers: of([]Answer{Well, Away}), status: metav1.ConditionFalse, says: "key awskmskey-2 may not be had: see its plugin's container in pod kas-1, and", after: sooner},
		"When one is away it should not wait for another":        {plugins: []string{"awskmskey-1", "awskmskey-2"}, servers: of([]Answer{Nothing, Away}), status: metav1.ConditionFalse, says: "awskmskey-2", after: sooner},
		"When the server says nothing it should be Unknown":      {plugins: []string{"local-kms-a"}, servers: of([]Answer{Nothing}), status: metav1.ConditionUnknown, says: "does not say", after: sooner},
		"When no server serves it should be Unknown":             {plugins: []string{"local-kms-a"}, status: metav1.ConditionUnknown, says: "does not say", after: sooner},
		"When every server says so it should be True":            {plugins: []string{"local-kms-a"}, servers: of([]Answer{Well}, []Answer{Well}), status: metav1.ConditionTrue, says: hyperv1.AllIsWellMessage, after: again},
		"When one of three misses its plugin it should name it":  {plugins: []string{"local-kms-a"}, servers: of([]Answer{Well}, []Answer{Away}, []Answer{Nothing}), status: metav1.ConditionFalse, says: "in pod kas-2:", after: sooner},
		"When several miss theirs it should name all of them":    {plugins: []string{"local-kms-a"}, servers: of([]Answer{Away}, []Answer{Well}, []Answer{Away}), status: metav1.ConditionFalse, says: "in pods kas-1, kas-3:", after: sooner},
		"When one of several keeps silent it should be Unknown":  {plugins: []string{"local-kms-a"}, servers: of([]Answer{Well}, []Answer{Nothing}), status: metav1.ConditionUnknown, says: "does not say", after: sooner},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, after := judge(tc.plugins, tc.servers, tc.wanted, 7)
			g.Expect(after).To(Equal(tc.after))
			if tc.status == "" {
				g.Expect(c).To(BeNil())
				return
			}
			g.Expect(c.Status).To(Equal(tc.status))
			g.Expect(c.Message).To(ContainSubstring(tc.says))
			g.Expect(c.ObservedGeneration).To(Equal(int64(7)))
		})
	}
}

// of is what servers kas-1, kas-2, … say.
func of(answers ...[]Answer) (list []answered) {
	for i, a := range answers {
		list = append(list, answered{fmt.Sprintf("kas-%d", i+1), a})
	}
	return list
}

func TestAsk(t *testing.T) {
	serve := func(t *testing.T, codes map[string]int) string {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			code, known := codes[r.URL.Path]
			if !known {
				code = http.StatusNotFound
			}
			if r.TLS.ServerName != names.KubeAPIServer { // its certificate is for that name
				code = http.StatusMisdirectedRequest
			}
			w.WriteHeader(code)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	well, away := map[string]int{"/readyz/kms-provider-0": 200}, map[string]int{"/readyz/kms-provider-0": 500}
	g := NewWithT(t)
	probe, err := Ask(&rest.Config{Host: "https://kube-apiserver:6443", TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	g.Expect(err).NotTo(HaveOccurred())
	for name, tc := range map[string]struct {
		host string
		want Answer
	}{
		"When a server has its plugin it should say so":                     {serve(t, well), Well},
		"When another misses its own it should say so":                      {serve(t, away), Away},
		"When a server has one check for all it should be asked for that":   {serve(t, map[string]int{"/readyz/kms-providers": 500}), Away},
		"When a server has no plugin yet it should say nothing":             {serve(t, nil), Nothing},
		"When nobody listens it should say nothing":                         {"https://127.0.0.1:1", Nothing},
		"When it is no address it should say nothing, and nothing be asked": {"https://%zz", Nothing},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(probe(t.Context(), tc.host, 0)).To(Equal(tc.want))
		})
	}
}

func TestReconcile(t *testing.T) {
	g := NewWithT(t)
	env, scheme := testenv.Start(t), runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{hyperv1.AddToScheme, corev1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	c := env.Client(t, scheme)
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "demo"}}
	hcp.Spec.PullSecret.Name, hcp.Spec.InfraID, hcp.Spec.ReleaseImage = "pull-secret", "demo", "registry.example.com/release:1.36.3"
	hcp.Spec.IssuerURL, hcp.Spec.Platform.Type = "https://kubernetes.default.svc", hyperv1.NonePlatform
	hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}
	hcp.Spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}
	for _, s := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		hcp.Spec.Services = append(hcp.Spec.Services, hyperv1.ServicePublishingStrategyMapping{Service: s, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}})
	}
	hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: "key"}}}
	g.Expect(c.Create(t.Context(), hcp)).To(Succeed())
	others := metav1.Condition{Type: "Available", Status: metav1.ConditionTrue, Reason: "AsExpected", LastTransitionTime: metav1.NewTime(noon)}
	hcp.Status.Conditions = []metav1.Condition{others}
	g.Expect(c.Status().Update(t.Context(), hcp)).To(Succeed())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: encryption.ConfigSecret}}
	configure := func(form encryption.Form) {
		keys := []encryption.Key{encryption.NewKey(make([]byte, encryption.KeySize)).In(form)}
		raw, err := encryption.Config(keys)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = ctrl.CreateOrUpdate(t.Context(), c, secret, func() error {
			secret.Data = encryption.Files(keys)
			secret.Data[encryption.ConfigKey] = raw
			return nil
		})
		g.Expect(err).NotTo(HaveOccurred())
	}
	answers := map[string]Answer{"https://10.1.0.1:6443": Well, "https://10.1.0.2:6443": Well}
	pass := func(c client.Client) (ctrl.Result, error) {
		r := &Reconciler{
			Management: testenv.Uncached(c), Clock: clocktesting.NewFakePassiveClock(noon), Probe: func(_ context.Context, host string, _ int) Answer { return answers[host] },
			Hold: func(*hyperv1.HostedControlPlane, time.Time) (string, time.Duration) { return "", 0 },
		}
		return r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(hcp)})
	}
	expect := func(want string) {
		t.Helper()
		_, err := pass(c)
		g.Expect(err).NotTo(HaveOccurred())
		live := &hyperv1.HostedControlPlane{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(hcp), live)).To(Succeed())
		got := ""
		if found := conditions.Get(live.Status.Conditions, encryption.KeysAvailable); found != nil {
			got = string(found.Status) + " " + found.Reason
		}
		g.Expect(got).To(Equal(want))
		g.Expect(conditions.IsTrue(live.Status.Conditions, "Available")).To(BeTrue(), "others' conditions stay")
	}
	t.Run("When there is no configuration yet it should say nothing", func(t *testing.T) { expect("") })
	t.Run("When kube-apiserver has the keys itself it should say nothing", func(t *testing.T) {
		configure(encryption.InConfig)
		expect("")
	})
	t.Run("When no server serves it should say that it does not know", func(t *testing.T) {
		configure(encryption.InPlugin)
		expect("Unknown " + hyperv1.StatusUnknownReason)
	})
	t.Run("When a plugin holds them it should ask every server how it is, and say so once", func(t *testing.T) {
		startServer(t, c, hcp.Namespace, "kas-1", "10.1.0.1", true)
		startServer(t, c, hcp.Namespace, "kas-2", "10.1.0.2", true)
		startServer(t, c, hcp.Namespace, "kas-3", "10.1.0.3", false) // it starts: its key may be one that can't be used
		expect("True " + hyperv1.AsExpectedReason)
		answers["https://10.1.0.2:6443"] = Away
		expect("False " + encryption.KeysAwayReason)
		testenv.ExpectQuiet(t, c, func(c client.WithWatch) error { _, err := pass(c); return err })
		answers["https://10.1.0.2:6443"] = Well
		expect("True " + hyperv1.AsExpectedReason)
	})
	t.Run("When the plugin is not used any more it should say nothing", func(t *testing.T) {
		configure(encryption.InConfig)
		expect("")
	})
}

// startServer makes a pod whose plugin is down, so that the pod is not ready; its server serves, or starts.
func startServer(t *testing.T, c client.Client, namespace, name, address string, serves bool) {
	t.Helper()
	g := NewWithT(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "kube-apiserver"}}}
	pod.Spec.Containers = []corev1.Container{
		{Name: "kube-apiserver", Image: "example.com/kube", Ports: []corev1.ContainerPort{{Name: "client", ContainerPort: 6443}}}, {Name: "kms-plugin", Image: "example.com/kms"},
	}
	g.Expect(c.Create(t.Context(), pod)).To(Succeed())
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "kube-apiserver", Ready: serves}, {Name: "kms-plugin"}},
	}
	g.Expect(c.Status().Update(t.Context(), pod)).To(Succeed())
}
