package hostedcluster

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/release/releasetest"
)

// TestBadInput feeds one mistake each to the running operator: it has its condition and a remedy, nothing is made, and fixing the input is
// enough.
func TestBadInput(t *testing.T) {
	setImage := func(image func(*world) string) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			g := NewWithT(t)
			hc, err := w.get(t.Context(), "demo")
			g.Expect(err).NotTo(HaveOccurred())
			before := hc.DeepCopy()
			hc.Spec.Release.Image = image(w)
			g.Expect(w.client.Patch(t.Context(), hc, client.MergeFrom(before))).To(Succeed())
		}
	}
	good := setImage(func(w *world) string { return w.image })
	var reachable atomic.Bool // a registry that some time brings back may be back before anybody has seen it away

	for name, tc := range map[string]struct {
		mutate    func(w *world, hc *hyperv1.HostedCluster)
		prepare   func(t *testing.T, w *world)
		condition string
		want      string
		says      string
		fix       func(t *testing.T, w *world)
	}{
		"When the pull secret does not exist it should wait for it": {
			prepare: func(t *testing.T, w *world) {
				NewWithT(t).Expect(w.client.Delete(t.Context(), w.pullSecret())).To(Succeed())
			},
			condition: hyperv1.ValidReleaseImage, want: "False/SecretNotFound", says: "which does not exist: create it",
			fix: func(t *testing.T, w *world) {
				NewWithT(t).Expect(w.client.Create(t.Context(), w.pullSecret())).To(Succeed())
			},
		},
		"When the pull secret has no content it should say which key": {
			prepare: func(t *testing.T, w *world) {
				g := NewWithT(t)
				g.Expect(w.client.Delete(t.Context(), w.pullSecret())).To(Succeed())
				g.Expect(w.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "pull"}})).To(Succeed())
			},
			condition: hyperv1.ValidReleaseImage, want: "False/InvalidImage", says: `has no key ".dockerconfigjson": add it`,
			fix: func(t *testing.T, w *world) {
				NewWithT(t).Expect(w.client.Patch(t.Context(), w.pullSecret(), client.RawPatch("application/merge-patch+json",
					[]byte(`{"stringData":{".dockerconfigjson":"{\"auths\":{}}"}}`)))).To(Succeed())
			},
		},
		"When the pull secret is malformed it should show what it must look like": {
			prepare: func(t *testing.T, w *world) {
				g := NewWithT(t)
				g.Expect(w.client.Delete(t.Context(), w.pullSecret())).To(Succeed())
				g.Expect(w.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "pull"}, Data: map[string][]byte{".dockerconfigjson": []byte("hunter2")}})).To(Succeed())
			},
			condition: hyperv1.ValidReleaseImage, want: "False/InvalidImage", says: "malformed pull secret",
			fix: func(t *testing.T, w *world) {
				NewWithT(t).Expect(w.client.Patch(t.Context(), w.pullSecret(), client.RawPatch("application/merge-patch+json",
					[]byte(`{"stringData":{".dockerconfigjson":"{\"auths\":{}}"}}`)))).To(Succeed())
			},
		},
		"When the release does not exist it should say so": {
			mutate:    func(w *world, hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = w.registry.Host + "/release:none" },
			condition: hyperv1.ValidReleaseImage, want: "False/InvalidImage", says: "no such image", fix: good,
		},
		"When the release appears later it should take it up": {
			mutate:    func(w *world, hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = w.registry.Host + "/release:1.36.9" },
			condition: hyperv1.ValidReleaseImage, want: "False/InvalidImage", says: "no such image",
			fix: func(t *testing.T, w *world) { w.registry.PushRelease(t, "1.36.9", w.registry.KubernetesTags()) },
		},
		"When the image is not a release it should say so": {
			prepare: func(t *testing.T, w *world) {
				w.registry.Push(t, "other:1", releasetest.Image(t, map[string][]byte{"bin/sh": []byte("x")}))
			},
			mutate:    func(w *world, hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = w.registry.Host + "/other:1" },
			condition: hyperv1.ValidReleaseImage, want: "False/InvalidImage", says: "not a release image", fix: good,
		},
		"When the version is not supported it should name the window": {
			prepare:   func(t *testing.T, w *world) { w.registry.PushRelease(t, "1.30.0", w.registry.KubernetesTags()) },
			mutate:    func(w *world, hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = w.registry.Host + "/release:1.30.0" },
			condition: hyperv1.ValidReleaseImage, want: "False/InvalidImage", says: "older than this operator supports (1.34 to 1.36)",
			fix: func(t *testing.T, w *world) {
				NewWithT(t).Expect(w.client.Patch(t.Context(), w.hostedCluster(), client.RawPatch("application/merge-patch+json",
					[]byte(`{"metadata":{"annotations":{"hypershift.openshift.io/skip-release-image-validation":""}}}`)))).To(Succeed())
			},
		},
		"When the registry is unreachable it should go on trying": {
			prepare: func(_ *testing.T, w *world) {
				w.registry.Intercept = func(rw http.ResponseWriter, _ *http.Request) bool {
					if reachable.Load() {
						return false
					}
					http.Error(rw, "", http.StatusServiceUnavailable)
					return true
				}
			},
			condition: hyperv1.ValidReleaseImage, want: "False/InvalidImage", says: "registry unreachable",
			fix: func(*testing.T, *world) { reachable.Store(true) },
		},
		"When the platform is not switched on it should name those that are": {
			mutate:    func(_ *world, hc *hyperv1.HostedCluster) { hc.Spec.Platform.Type = hyperv1.KubevirtPlatform },
			condition: hyperv1.SupportedHostedCluster, want: "False/UnsupportedHostedCluster", says: "set spec.platform.type to one of Local, None",
		},
		"When networks overlap it should name both": {
			mutate: func(_ *world, hc *hyperv1.HostedCluster) {
				hc.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "10.133.0.0/16"}}
			},
			condition: hyperv1.ValidHostedClusterConfiguration, want: "False/InvalidConfiguration", says: "spec.networking.clusterNetwork[0] 10.132.0.0/14 overlaps spec.networking.serviceNetwork[0] 10.133.0.0/16",
		},
		"When the namespace belongs to somebody else it should not touch it": {
			prepare: func(t *testing.T, w *world) {
				NewWithT(t).Expect(w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-demo"}})).To(Succeed())
			},
			condition: hyperv1.ValidHostedClusterConfiguration, want: "False/InvalidConfiguration", says: "which exists and was not made for a hosted cluster",
		},
		"When the signing key is not there it should say so": {
			mutate: func(_ *world, hc *hyperv1.HostedCluster) {
				hc.Spec.ServiceAccountSigningKey = &corev1.LocalObjectReference{Name: "signer"}
			},
			condition: hyperv1.ValidHostedClusterConfiguration, want: "False/InvalidConfiguration", says: "spec.serviceAccountSigningKey names Secret",
		},
		"When it is paused it should do nothing until it no longer is": {
			mutate:    func(_ *world, hc *hyperv1.HostedCluster) { hc.Spec.PausedUntil = ptr.To("true") },
			condition: hyperv1.ReconciliationActive, want: "False/ReconciliationPaused", says: "until field removed",
			fix: func(t *testing.T, w *world) {
				NewWithT(t).Expect(w.client.Patch(t.Context(), w.hostedCluster(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"pausedUntil":null}}`)))).To(Succeed())
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := NewWithT(t)
			ctx := t.Context()
			if tc.prepare != nil {
				tc.prepare(t, w)
			}
			w.start(t)
			hc := w.hostedCluster()
			if tc.mutate != nil {
				tc.mutate(w, hc)
			}
			g.Expect(w.client.Create(ctx, hc)).To(Succeed())
			g.Eventually(w.condition(ctx, "demo", tc.condition), patience, often).Should(Equal(tc.want))
			g.Expect(w.message(ctx, "demo", tc.condition)).To(ContainSubstring(tc.says))
			g.Expect(w.message(ctx, "demo", tc.condition)).NotTo(ContainSubstring("hunter2"))
			g.Expect(w.condition(ctx, "demo", hyperv1.HostedClusterProgressing)()).To(Equal("False/Blocked"))
			g.Expect(w.message(ctx, "demo", hyperv1.HostedClusterAvailable)).To(ContainSubstring(tc.says))
			if ns := (&corev1.Namespace{}); w.client.Get(ctx, client.ObjectKey{Name: w.ns + "-demo"}, ns) == nil {
				g.Expect(ns.Annotations).To(BeEmpty())
				g.Expect(ns.Labels).To(HaveLen(1), "only kubernetes.io/metadata.name")
			}
			if tc.fix == nil {
				return
			}
			tc.fix(t, w)
			g.Eventually(func() error {
				return w.client.Get(ctx, client.ObjectKey{Namespace: w.ns + "-demo", Name: "control-plane-operator"}, &appsv1.Deployment{})
			}, patience, often).Should(Succeed())
			g.Eventually(w.condition(ctx, "demo", tc.condition), patience, often).Should(HavePrefix("True/"))
		})
	}
}

func TestCollision(t *testing.T) {
	t.Run("When two names lead to the same namespace it should refuse the second, and let it be deleted", func(t *testing.T) {
		w := newWorld(t)
		w.start(t)
		g := NewWithT(t)
		ctx := t.Context()
		g.Expect(w.client.Create(ctx, w.hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Name = "a-b" }))).To(Succeed())
		g.Eventually(w.condition(ctx, "a-b", hyperv1.ReconciliationSucceeded), patience, often).Should(HavePrefix("True/"))
		g.Expect(w.client.Create(ctx, w.hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Name = "a.b" }))).To(Succeed())
		g.Eventually(w.condition(ctx, "a.b", hyperv1.ValidHostedClusterConfiguration), patience, often).Should(Equal("False/InvalidConfiguration"))
		g.Expect(w.message(ctx, "a.b", hyperv1.ValidHostedClusterConfiguration)).To(ContainSubstring("belongs to HostedCluster " + w.ns + "/a-b"))

		g.Expect(w.client.Delete(ctx, &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "a.b"}})).To(Succeed())
		g.Eventually(w.missing(ctx, &hyperv1.HostedCluster{}, w.ns, "a.b"), patience, often).Should(Succeed())
		ns := &corev1.Namespace{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Name: w.ns + "-a-b"}, ns)).To(Succeed())
		g.Expect(ns.DeletionTimestamp).To(BeNil())
	})
}

func TestTakenName(t *testing.T) {
	t.Run("When a HostedCluster asks for the host name of another it should be refused, though it is older, and go on when it gives the name up", func(t *testing.T) {
		w := newWorld(t)
		w.start(t)
		g := NewWithT(t)
		ctx := t.Context()
		host := "api." + w.ns + ".example.com"
		old := w.hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Name = "old" })
		g.Expect(w.client.Create(ctx, old)).To(Succeed())
		g.Eventually(w.condition(ctx, "old", hyperv1.ReconciliationSucceeded), patience, often).Should(HavePrefix("True/"))
		g.Expect(w.client.Create(ctx, w.hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Name, hc.Spec.KubeAPIServerDNSName = "owner", host }))).To(Succeed())
		g.Eventually(w.condition(ctx, "owner", hyperv1.ReconciliationSucceeded), patience, often).Should(HavePrefix("True/"))

		ask := func(name string) {
			g.Expect(w.client.Patch(ctx, old, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"kubeAPIServerDNSName":%q}}`, name)))).To(Succeed())
		}
		ask(host)
		g.Eventually(w.condition(ctx, "old", hyperv1.ValidHostedClusterConfiguration), patience, often).Should(Equal("False/InvalidConfiguration"))
		g.Expect(w.message(ctx, "old", hyperv1.ValidHostedClusterConfiguration)).To(Equal("spec.kubeAPIServerDNSName: " + host + " is that of HostedCluster " + w.ns + "/owner: choose another name"))
		plane := &hyperv1.HostedControlPlane{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: w.ns + "-old", Name: "old"}, plane)).To(Succeed())
		g.Expect(plane.Spec.KubeAPIServerDNSName).To(BeEmpty())
		ask("")
		g.Eventually(w.condition(ctx, "old", hyperv1.ValidHostedClusterConfiguration), patience, often).Should(HavePrefix("True/"))
	})
}

func TestHealing(t *testing.T) {
	t.Run("When a referenced object changes it should be copied again", func(t *testing.T) {
		w := newWorld(t)
		w.start(t)
		g := NewWithT(t)
		ctx := t.Context()
		g.Expect(w.client.Create(ctx, w.hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Spec.SSHKey.Name = "ssh" }))).To(Succeed())
		g.Eventually(w.condition(ctx, "demo", hyperv1.ReconciliationSucceeded), patience, often).Should(Equal("False/ReconciliationError"))
		g.Expect(w.message(ctx, "demo", hyperv1.ReconciliationSucceeded)).To(ContainSubstring("SSHKeySync: spec.sshKey names Secret"))
		// A supporting step does not hold up the control plane.
		g.Eventually(func() error {
			return w.client.Get(ctx, client.ObjectKey{Namespace: w.ns + "-demo", Name: "control-plane-operator"}, &appsv1.Deployment{})
		}, patience, often).Should(Succeed())

		ssh := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "ssh"}, StringData: map[string]string{"id_rsa.pub": "one", "id_rsa": "private"}}
		g.Expect(w.client.Create(ctx, ssh)).To(Succeed())
		copied := &corev1.Secret{}
		content := func() (string, error) {
			err := w.client.Get(ctx, client.ObjectKey{Namespace: w.ns + "-demo", Name: "ssh-key"}, copied)
			return string(copied.Data["id_rsa.pub"]), err
		}
		g.Eventually(content, patience, often).Should(Equal("one"))
		g.Expect(copied.Data).NotTo(HaveKey("id_rsa"))
		g.Eventually(w.condition(ctx, "demo", hyperv1.ReconciliationSucceeded), patience, often).Should(HavePrefix("True/"))
		g.Expect(w.client.Patch(ctx, ssh, client.RawPatch("application/merge-patch+json", []byte(`{"stringData":{"id_rsa.pub":"two"}}`)))).To(Succeed())
		g.Eventually(content, patience, often).Should(Equal("two"))
	})

	t.Run("When somebody breaks an object of ours it should be repaired", func(t *testing.T) {
		w := newWorld(t)
		w.start(t)
		g := NewWithT(t)
		ctx := t.Context()
		g.Expect(w.client.Create(ctx, w.hostedCluster())).To(Succeed())
		g.Eventually(w.condition(ctx, "demo", hyperv1.ReconciliationSucceeded), patience, often).Should(HavePrefix("True/"))
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns + "-demo", Name: "pull-secret"}}
		g.Expect(w.client.Delete(ctx, secret)).To(Succeed())
		g.Eventually(func() error { return w.client.Get(ctx, client.ObjectKeyFromObject(secret), secret) }, patience, often).Should(Succeed())
		hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns + "-demo", Name: "demo"}}
		g.Expect(w.client.Patch(ctx, hcp, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"infraID":"other"}}`)))).To(Succeed())
		g.Eventually(func() (string, error) {
			err := w.client.Get(ctx, client.ObjectKeyFromObject(hcp), hcp)
			return hcp.Spec.InfraID, err
		}, patience, often).Should(Equal("demo-abcde"))
	})
}
