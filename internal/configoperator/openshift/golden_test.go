package openshift

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/resources"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/release"
)

// scenarios are control planes of OpenShift payloads: those of the golden files of components. Each is a merge patch of plain.
var scenarios = []string{"plain", "tech-preview", "modern-tls", "ibmcloud", "gcp", "aro"}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// scenario is what is observed of a fresh hosted cluster.
func scenario(t testing.TB, name string) Input {
	t.Helper()
	doc := readScenario(t, "plain")
	if name != "plain" {
		var err error
		if doc, err = jsonpatch.MergePatch(doc, readScenario(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	hcp := &hyperv1.HostedControlPlane{}
	if err := json.Unmarshal(doc, hcp); err != nil {
		t.Fatal(err)
	}
	hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "api.demo.example.com", Port: 443}
	return inputFor(hcp, name)
}

// inputFor is an Input with everything that the control plane namespace may hold.
func inputFor(hcp *hyperv1.HostedControlPlane, name string) Input {
	in := Input{
		HCP: hcp, Version: "4.22.0", Kubernetes: "1.35.2", Now: noon, OAuthHost: "oauth.demo.example.com", OAuthPort: 443, OperatorImage: "hosted-cluster-config-operator",
		Release: &release.Release{Image: hcp.Spec.ReleaseImage, Version: "4.22.0", KubernetesVersion: "1.35.2", Placeholders: true},
		Tunnel:  resources.Tunnel{Host: "konnectivity.demo.example.com", Port: 443, CA: []byte("tunnel authority"), Cert: []byte("certificate"), Key: []byte("key")},
		Bcrypt:  func(password []byte) ([]byte, error) { return append([]byte("hash of "), password...), nil },
		Random:  func(n int) []byte { return bytes.Repeat([]byte{7}, n) },
		Control: Control{ConfigMaps: map[string]*corev1.ConfigMap{}, Secrets: map[string]*corev1.Secret{}, Services: map[string]*corev1.Service{}},
		Hosted:  Hosted{Objects: map[string]map[string]any{}},
	}
	if name == "aro" {
		in.ManagedService = payload.ARO
	}
	configMaps, secrets, services := sources(hcp)
	for _, cm := range configMaps {
		in.Control.ConfigMaps[cm] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: cm}, Data: map[string]string{"ca.crt": "authority of " + cm, "cloud.conf": "configuration of the cloud", "ca-bundle.crt": "bundle of " + cm}}
	}
	for _, s := range secrets {
		in.Control.Secrets[s] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"tls.crt": []byte("certificate of " + s), "tls.key": []byte("key of " + s), "password": []byte("password of " + s)}}
	}
	if s := in.Control.Secrets[hcp.Spec.PullSecret.Name]; s != nil {
		s.Type, s.Data = corev1.SecretTypeDockerConfigJson, map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"quay.io":{"auth":"dTpw"}}}`)}
	}
	for i, s := range services {
		in.Control.Services[s] = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: s}, Spec: corev1.ServiceSpec{ClusterIP: "172.30.0." + string(rune('1'+i))}}
	}
	return in
}

func readScenario(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "cli", "render", "testdata", "openshift", "scenarios", name+".yaml"))
	if err == nil {
		raw, err = yaml.YAMLToJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// rendered are the files of a scenario: one for each step, with its actions in order, and what they make of nothing.
func rendered(t testing.TB, in Input) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, step := range steps {
		actions, err := step.Plan(in)
		if err != nil {
			t.Fatalf("%s: %v", step.Name, err)
		}
		var text strings.Builder
		for _, a := range actions {
			text.WriteString("---\n# " + string(a.Do))
			if a.Management {
				text.WriteString(", in the control plane")
			}
			text.WriteString("\n")
			raw, err := yaml.Marshal(outcomeOf(t, a).Object)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(raw)
		}
		if text.Len() > 0 {
			files[strings.ReplaceAll(step.Name, " ", "-")+".yaml"] = text.String()
		}
	}
	return files
}

// outcomeOf is the object that an action makes where there is none.
func outcomeOf(t testing.TB, a Action) *unstructured.Unstructured {
	t.Helper()
	if a.Do == Edit || a.Do == EditPresent {
		u, err := changed(a, nil)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.Object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// TestGolden shows each object of a hosted cluster. Of the scenarios beside plain the files have only what differs from it.
func TestGolden(t *testing.T) {
	var plain map[string]string
	for _, name := range scenarios {
		t.Run("When a hosted cluster is "+name+" it should hold these objects", func(t *testing.T) {
			got := rendered(t, scenario(t, name))
			if name == "plain" {
				plain = maps.Clone(got)
			} else {
				got = differing(plain, got)
			}
			compare(t, filepath.Join("testdata", name), got)
		})
	}
}

// differing are the files that plain does not have like this, without the documents that plain has, too.
func differing(plain, got map[string]string) map[string]string {
	out := map[string]string{}
	all := maps.Clone(plain)
	maps.Copy(all, got)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		if got[file] == plain[file] {
			continue
		}
		before, after := strings.Split(plain[file], "---\n"), strings.Split(got[file], "---\n")
		var text strings.Builder
		for _, doc := range after {
			if !slices.Contains(before, doc) {
				text.WriteString("---\n" + doc)
			}
		}
		for _, doc := range before {
			if !slices.Contains(after, doc) && !slices.ContainsFunc(after, func(d string) bool { return nameOf(d) == nameOf(doc) }) {
				text.WriteString("--- # gone\n" + nameOf(doc) + "\n")
			}
		}
		out[file] = text.String()
	}
	return out
}

// nameOf is kind and name of a document.
func nameOf(doc string) string {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil || u.Object == nil {
		return ""
	}
	return strings.TrimSpace(u.GetKind() + " " + u.GetNamespace() + " " + u.GetName())
}

func compare(t *testing.T, dir string, got map[string]string) {
	t.Helper()
	g := NewWithT(t)
	if os.Getenv("UPDATE") == "true" {
		g.Expect(os.RemoveAll(dir)).To(Succeed())
		g.Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
		for name, content := range got {
			g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644)).To(Succeed())
		}
	}
	entries, err := os.ReadDir(dir)
	if !os.IsNotExist(err) {
		g.Expect(err).NotTo(HaveOccurred())
	}
	want := map[string]string{}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		g.Expect(err).NotTo(HaveOccurred())
		want[e.Name()] = string(raw)
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		g.Expect(got[name]).To(Equal(want[name]), "%s/%s", dir, name)
	}
	g.Expect(slices.Sorted(maps.Keys(want))).To(Equal(slices.Sorted(maps.Keys(got))))
}
