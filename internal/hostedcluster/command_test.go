package hostedcluster

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestCommand(t *testing.T) {
	t.Run("When the program is run from a shell it should work, and give its lease back at the end", func(t *testing.T) {
		w := newWorld(t)
		g := NewWithT(t)
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		g.Expect(os.WriteFile(kubeconfig, w.env.Kubeconfig(t), 0o600)).To(Succeed())
		t.Setenv("ENABLE_HOSTEDCLUSTERS_ANNOTATION_SCOPING", "true")
		t.Setenv("HOSTEDCLUSTERS_SCOPE_ANNOTATION", w.ns)
		ctx, cancel := context.WithCancel(t.Context())
		cmd := Command()
		cmd.SetArgs([]string{"--kubeconfig", kubeconfig, "--namespace", w.ns, "--pod-name", "operator-0", "--metrics-addr", "0", "--control-plane-operator-image", w.registry.Host + "/operator:1"})
		done := make(chan error, 1)
		go func() { done <- cmd.ExecuteContext(ctx) }()
		defer cancel()

		hc := w.hostedCluster()
		hc.Spec.InfraID, hc.Spec.ClusterID = "demo-abcde", "0a5b1c4e-3c9f-4f5e-8d53-7f6c6f0c2a11"
		g.Expect(w.client.Create(ctx, hc)).To(Succeed())
		g.Eventually(w.condition(ctx, "demo", "ReconciliationSucceeded"), patience, often).Should(HavePrefix("True/"))
		w.expectControlPlane(t, "demo")
		lease := &coordinationv1.Lease{}
		key := client.ObjectKey{Namespace: w.ns, Name: "hypershift-operator-leader-elect"}
		g.Expect(w.client.Get(ctx, key, lease)).To(Succeed())
		g.Expect(lease.Spec.HolderIdentity).To(HaveValue(Equal("operator-0")))
		cancel()
		g.Eventually(done, patience).Should(Receive(BeNil()))
		g.Expect(w.client.Get(t.Context(), key, lease)).To(Succeed())
		g.Expect(lease.Spec.HolderIdentity).To(HaveValue(BeEmpty()))
	})

	t.Run("When it can't find its own image it should ask for it", func(t *testing.T) {
		w := newWorld(t)
		_, err := ownImage(t.Context(), w.client, w.ns, "")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("give --control-plane-operator-image")))
	})
}

func TestImageOf(t *testing.T) {
	status := func(name, image, id string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, Image: image, ImageID: id}
	}
	for name, tc := range map[string]struct {
		statuses []corev1.ContainerStatus
		want     string
	}{
		"When the runtime tells the digest it should be by digest": {[]corev1.ContainerStatus{status("operator", "r/x:1", "r/x@sha256:1")}, "r/x@sha256:1"},
		"When there are more containers it should be ours":         {[]corev1.ContainerStatus{status("proxy", "p", "p@sha256:2"), status("operator", "r/x:1", "docker-pullable://r/x@sha256:1")}, "r/x@sha256:1"},
		"When the ID is no reference it should be the image":       {[]corev1.ContainerStatus{status("operator", "r/x:1", "sha256:1")}, "r/x:1"},
		"When nothing is reported yet it should wait":              {[]corev1.ContainerStatus{status("operator", "", "")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Status: corev1.PodStatus{ContainerStatuses: tc.statuses}}
			NewWithT(t).Expect(imageOf(pod)).To(Equal(tc.want))
		})
	}
}
