package controlplane

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/kubeapiserver"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/testenv"
)

// bootTimeout is for a machine that is busy with other builds; an idle one needs 6 s.
const bootTimeout = 2 * time.Minute

// everything that changes the arguments, in a control plane that fits on one machine.
func everything(hcp *hyperv1.HostedControlPlane) {
	hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{
		ActiveKey: corev1.LocalObjectReference{Name: "new-key"}, BackupKey: &corev1.LocalObjectReference{Name: "old-key"},
	}}
	hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{
		Audit: configv1.Audit{
			Profile:     configv1.WriteRequestBodiesAuditProfileType,
			CustomRules: []configv1.AuditCustomRule{{Group: "blue", Profile: configv1.AllRequestBodiesAuditProfileType}},
		},
		TLSSecurityProfile: &configv1.TLSSecurityProfile{Type: configv1.TLSProfileOldType},
		ServingCerts: configv1.APIServerServingCerts{NamedCertificates: []configv1.APIServerNamedServingCert{{
			Names: []string{"api.example.com"}, ServingCertificate: configv1.SecretNameReference{Name: "kas-server-crt"},
		}}},
	}}
	hcp.Spec.Configuration.Scheduler = &configv1.SchedulerSpec{Profile: configv1.HighNodeUtilization}
	hcp.Spec.Configuration.FeatureGate = &configv1.FeatureGateSpec{FeatureGateSelection: configv1.FeatureGateSelection{
		FeatureSet: configv1.CustomNoUpgrade, CustomNoUpgrade: &configv1.CustomFeatureGates{Disabled: []configv1.FeatureGateName{"WatchList"}},
	}}
	hcp.Spec.Configuration.Authentication = &configv1.AuthenticationSpec{
		Type: configv1.AuthenticationTypeOIDC,
		OIDCProviders: []configv1.OIDCProvider{{
			Name:          "corporate",
			Issuer:        configv1.TokenIssuer{URL: "https://localhost:1/oidc", Audiences: []configv1.TokenAudience{"console"}},
			ClaimMappings: configv1.TokenClaimMappings{Username: configv1.UsernameClaimMapping{Claim: "sub"}, Groups: configv1.PrefixedClaimMapping{Claim: "groups"}},
			ClaimValidationRules: []configv1.TokenClaimValidationRule{{
				Type: configv1.TokenValidationRuleTypeRequiredClaim, RequiredClaim: &configv1.TokenRequiredClaim{Claim: "tenant", RequiredValue: "blue"},
			}},
		}},
	}
	hcp.Annotations[hyperv1.KubeAPIServerServiceAccountTokenMaxExpiration] = "7200"
}

// keysAndCertificates are what the PKI makes for the control plane, with two encryption keys.
func keysAndCertificates(t *testing.T) []client.Object {
	t.Helper()
	spec := pki.Spec{
		Namespace: namespace, Name: "demo", InfraID: "demo-x7k2p", APIHost: "10.97.0.1", APIPort: 6443,
		AdvertiseAddress: "10.97.0.1", InternalAPIPort: 6443, PodAPIPort: 6443, ServiceCIDRs: []string{"172.31.0.0/16"},
	}
	plan := pki.PlanFor(spec, pki.Observed{}, pki.Source{Now: time.Now(), Keys: pki.NewKey, Rand: rand.Reader})
	if len(plan.Problems) > 0 {
		t.Fatal(plan.Problems)
	}
	var objs []client.Object
	for _, wave := range [][]pki.Write{plan.Authorities, plan.Leaves, plan.Copies} {
		for _, w := range wave {
			if w.Secret != nil {
				objs = append(objs, w.Secret)
			} else {
				objs = append(objs, w.ConfigMap)
			}
		}
	}
	for name, letter := range map[string]string{"new-key": "n", "old-key": "o"} {
		objs = append(objs, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Data:       map[string][]byte{hyperv1.AESCBCKeySecretKey: []byte(strings.Repeat(letter, 32))},
		})
	}
	return objs
}

// machine runs containers of pods as processes: their volumes become folders, their addresses ports of the loopback.
type machine struct {
	t       *testing.T
	root    string
	files   map[string]map[string][]byte // object kind/name → key → content
	ports   map[string]int
	binary  string
	running []*testenv.Process
}

func newMachine(t *testing.T, objs []client.Object) *machine {
	t.Helper()
	m := &machine{t: t, root: t.TempDir(), binary: testenv.KubeBinary(t), files: map[string]map[string][]byte{}, ports: map[string]int{}}
	names := []string{"etcd", "peer", "metrics", "api", "kube-controller-manager", "kube-scheduler"}
	ports, err := testenv.FreePorts(len(names))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		m.ports[name] = ports[i]
	}
	for _, obj := range objs {
		data := map[string][]byte{}
		switch o := obj.(type) {
		case *corev1.Secret:
			data = o.Data
			m.files["Secret/"+o.Name] = data
		case *corev1.ConfigMap:
			for k, v := range o.Data {
				data[k] = []byte(v)
			}
			m.files["ConfigMap/"+o.Name] = data
		}
	}
	t.Cleanup(func() {
		for _, p := range m.running {
			p.Kill()
		}
	})
	return m
}

// local puts addresses of the control plane namespace on this machine.
func (m *machine) local(s string) string {
	at := func(port string) string { return fmt.Sprintf("localhost:%d", m.ports[port]) }
	on := func(port string) string { return fmt.Sprintf("127.0.0.1:%d", m.ports[port]) }
	return strings.NewReplacer(
		"0.0.0.0:2379", on("etcd"), "0.0.0.0:2380", on("peer"), "0.0.0.0:2382", on("metrics"),
		"etcd-client."+namespace+".svc:2379", at("etcd"), "etcd-0.etcd-discovery."+namespace+".svc:2379", at("etcd"),
		"etcd-0.etcd-discovery."+namespace+".svc:2380", at("peer"),
		"kube-apiserver:6443", at("api"), "--secure-port=6443", fmt.Sprintf("--secure-port=%d", m.ports["api"]),
		"--secure-port=10257", fmt.Sprintf("--secure-port=%d", m.ports["kube-controller-manager"]),
		"--secure-port=10259", fmt.Sprintf("--secure-port=%d", m.ports["kube-scheduler"]),
		"--bind-address=0.0.0.0", "--bind-address=127.0.0.1",
	).Replace(s)
}

// start runs the container that has the name of its pod's component.
func (m *machine) start(name string, pod *corev1.PodSpec) *testenv.Process {
	m.t.Helper()
	root := filepath.Join(m.root, name)
	c := component.Container(pod, name)
	for _, mount := range c.VolumeMounts {
		dir := filepath.Join(root, mount.MountPath)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			m.t.Fatal(err)
		}
		for key, data := range m.content(pod, mount.Name) {
			data = []byte(m.inRoot(root, m.local(string(data))))
			if err := os.WriteFile(filepath.Join(dir, key), data, 0o600); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	var args []string
	for _, arg := range c.Args {
		args = append(args, m.inRoot(root, m.local(arg)))
	}
	if name == "kube-controller-manager" || name == "kube-scheduler" {
		args = append(args, "--bind-address=127.0.0.1")
	}
	p, err := testenv.StartProcess(m.binary, root, c.Command[0], nil, args...)
	if err != nil {
		m.t.Fatal(err)
	}
	m.running = append(m.running, p)
	return p
}

func (m *machine) inRoot(root, s string) string {
	for _, dir := range []string{"/etc/kubernetes", "/etc/etcd", "/var/lib", "/var/log"} {
		s = strings.ReplaceAll(s, dir+"/", filepath.Join(root, dir)+"/")
	}
	return s
}

func (m *machine) content(pod *corev1.PodSpec, volume string) map[string][]byte {
	for _, v := range pod.Volumes {
		key := ""
		switch {
		case v.Name != volume:
			continue
		case v.Secret != nil:
			key = "Secret/" + v.Secret.SecretName
		case v.ConfigMap != nil:
			key = "ConfigMap/" + v.ConfigMap.Name
		default:
			return nil
		}
		if m.files[key] == nil {
			m.t.Fatalf("volume %s: nobody makes %s", volume, key)
		}
		return m.files[key]
	}
	return nil
}

// answers waits until a URL on this machine answers 200, and says how long that took.
func (m *machine) answers(ctx context.Context, scheme, port, path string) time.Duration {
	m.t.Helper()
	begin := time.Now()
	insecure := &http.Client{Timeout: time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, //nolint:gosec // G402: as the kubelet probes
	}}
	url := fmt.Sprintf("%s://localhost:%d%s", scheme, m.ports[port], path)
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, bootTimeout, true, func(ctx context.Context) (bool, error) {
		for _, p := range m.running {
			select {
			case <-p.Done():
				return false, fmt.Errorf("%s ended:\n%s", p.LogFile, p.Tail())
			default:
			}
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		resp, err := insecure.Do(req)
		if err != nil {
			return false, nil // not listening yet
		}
		defer resp.Body.Close() //nolint:errcheck // only read
		return resp.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		m.t.Fatalf("waiting for %s: %v", url, err)
	}
	return time.Since(begin)
}

func TestBoot(t *testing.T) {
	t.Run("When programs get what is rendered for them they should become a control plane", func(t *testing.T) {
		g := NewWithT(t)
		hcp := hostedControlPlane(everything)
		objs := keysAndCertificates(t)
		ctx := workloadContext(t, hcp, objs...)
		pods := map[string]*corev1.PodSpec{}
		for _, c := range workloads() {
			for _, obj := range render(t, ctx, c) {
				switch o := obj.(type) {
				case *appsv1.Deployment:
					pods[o.Name] = &o.Spec.Template.Spec
				case *appsv1.StatefulSet:
					pods[o.Name] = &o.Spec.Template.Spec
				default:
					objs = append(objs, obj)
				}
			}
		}
		m := newMachine(t, objs)
		// In the worst order: each before what it depends on.
		for _, name := range []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver"} {
			m.start(name, pods[name])
		}
		t.Logf("kube-controller-manager is healthy after %s, without an API server", m.answers(t.Context(), "https", "kube-controller-manager", "/healthz"))
		m.start("etcd", pods["etcd"])
		t.Logf("etcd is ready after %s", m.answers(t.Context(), "http", "metrics", "/readyz"))
		t.Logf("kube-apiserver is ready %s later", m.answers(t.Context(), "https", "api", "/readyz"))

		kubeconfig := []byte(m.local(string(m.files["Secret/service-network-admin-kubeconfig"]["kubeconfig"])))
		for range 2 { // The second time there is nothing to do.
			g.Expect(kubeapiserver.Bootstrap(t.Context(), kubeconfig)).To(Succeed())
		}
		t.Logf("kube-scheduler is ready %s later", m.answers(t.Context(), "https", "kube-scheduler", "/readyz"))
	})
}
