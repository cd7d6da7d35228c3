package hostedcluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

const canary = "c4nary-in-a-secret"

// malformed are contents that no reader expects, and that some readers quote when they complain.
var malformed = map[string]string{
	"text":           canary,
	"YAML of a list": "- " + canary,
	"broken YAML":    "a: [" + canary,
	"another type":   `{"auths":"` + canary + `","apiVersion":"` + canary + `","kind":"` + canary + `"}`,
	"a bad entry":    `{"auths":{"registry.example.com":{"auth":"` + canary + `"}},"users":[{"name":"a","user":"` + canary + `"}]}`,
	"PEM":            "-----BEGIN PRIVATE KEY-----\n" + canary + "\n-----END PRIVATE KEY-----\n",
	"lines":          "a\n\x00" + canary + "\r\n",
}

// everySecret is a HostedCluster that names a Secret wherever one can be named, and the keys of these Secrets.
func (w *world) everySecret() (*hyperv1.HostedCluster, map[string][]string) {
	hc := w.hostedCluster(func(hc *hyperv1.HostedCluster) {
		s := &hc.Spec
		s.SSHKey.Name, s.AuditWebhook = "ssh", &corev1.LocalObjectReference{Name: "audit"}
		s.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{
			ActiveKey: corev1.LocalObjectReference{Name: "active"}, BackupKey: &corev1.LocalObjectReference{Name: "backup"}}}
		s.Configuration = &hyperv1.ClusterConfiguration{
			APIServer: &configv1.APIServerSpec{ServingCerts: configv1.APIServerServingCerts{NamedCertificates: []configv1.APIServerNamedServingCert{
				{Names: []string{"api.example.com"}, ServingCertificate: configv1.SecretNameReference{Name: "named"}}}}},
			Authentication: &configv1.AuthenticationSpec{WebhookTokenAuthenticator: &configv1.WebhookTokenAuthenticator{KubeConfig: configv1.SecretNameReference{Name: "tokens"}}},
		}
	})
	return hc, map[string][]string{
		"pull": {names.DockerConfigKey}, "ssh": {names.SSHPublicKey}, "audit": {"webhook-kubeconfig"}, "signer": {"key", "old-key.pub"}, "active": {hyperv1.AESCBCKeySecretKey},
		"backup": {hyperv1.AESCBCKeySecretKey}, "named": {corev1.TLSCertKey, corev1.TLSPrivateKeyKey}, "tokens": {"kubeConfig"},
	}
}

// heldBy are all places but Secrets in which a text is, in these namespaces and in a log.
func heldBy(ctx context.Context, g Gomega, w *world, resources []schema.GroupVersionKind, log, text string, namespaces ...string) []string {
	var found []string
	has := func(where, what string) {
		if strings.Contains(what, text) || strings.Contains(what, base64.StdEncoding.EncodeToString([]byte(text))) {
			found = append(found, where)
		}
	}
	for line := range strings.Lines(log) {
		has("the log: "+line, line)
	}
	for _, kind := range resources {
		for _, ns := range namespaces {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := w.client.List(ctx, list, client.InNamespace(ns)); err != nil {
				continue // what can't be listed, such as reviews
			}
			for i := range list.Items {
				raw, err := json.Marshal(list.Items[i].Object)
				g.Expect(err).NotTo(HaveOccurred())
				has(fmt.Sprintf("%s %s/%s: %s", kind.Kind, ns, list.Items[i].GetName(), raw), string(raw))
			}
		}
	}
	return found
}

// TestNoSecretIsTold gives each Secret that a HostedCluster may name contents that nobody expects. Whatever is said about them, and wherever, does not repeat
// them: who reads conditions, events, ConfigMaps and logs need not be who may read Secrets.
func TestNoSecretIsTold(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	d, err := discovery.NewDiscoveryClientForConfig(w.env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	lists, err := d.ServerPreferredNamespacedResources()
	g.Expect(err).NotTo(HaveOccurred())
	var kinds []schema.GroupVersionKind
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		g.Expect(err).NotTo(HaveOccurred())
		for _, r := range l.APIResources {
			if r.Kind != "Secret" {
				kinds = append(kinds, gv.WithKind(r.Kind+"List"))
			}
		}
	}
	hc, secrets := w.everySecret()
	for name, keys := range secrets {
		data := map[string][]byte{}
		for _, key := range keys {
			data[key] = []byte(canary)
		}
		if name != "pull" {
			g.Expect(w.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, Data: data})).To(Succeed())
		}
	}
	g.Expect(w.client.Create(t.Context(), hc)).To(Succeed())
	// With a key that signs nothing a HostedCluster is invalid, and nothing else is looked at.
	signed := w.hostedCluster(func(hc *hyperv1.HostedCluster) {
		hc.Name, hc.Spec.ServiceAccountSigningKey, hc.Spec.IssuerURL = "signed", &corev1.LocalObjectReference{Name: "signer"}, "https://issuer.example.com"
	})
	g.Expect(w.client.Create(t.Context(), signed)).To(Succeed())

	var mu sync.Mutex
	var log strings.Builder
	// From level 8 on, client-go logs bodies of requests, of whatever program.
	ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(&log, prefix, args)
	}, funcr.Options{Verbosity: 4}))
	for what, content := range malformed {
		t.Run("When Secrets hold "+what+" nothing but they should hold it", func(t *testing.T) {
			g := NewWithT(t)
			for name, keys := range secrets {
				secret := &corev1.Secret{}
				g.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, secret)).To(Succeed())
				for _, key := range keys {
					secret.Data[key] = []byte(content)
				}
				if err := w.client.Update(t.Context(), secret); err != nil {
					g.Expect(name).To(Equal("pull"), "%v", err) // the API server refuses what is no JSON
				}
			}
			for _, name := range []string{hc.Name, signed.Name} {
				if err := w.settle(ctx, w.client, name); err != nil {
					fmt.Fprintln(&log, err) // controller-runtime logs it
				}
				seen, err := w.get(t.Context(), name)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(seen.Status.Conditions).NotTo(BeEmpty())
			}
			g.Expect(heldBy(t.Context(), g, w, kinds, log.String(), canary, w.ns, names.NamespaceOf(hc), names.NamespaceOf(signed))).To(BeEmpty())
		})
	}
}
