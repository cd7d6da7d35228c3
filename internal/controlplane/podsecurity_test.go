package controlplane

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/testenv"
)

// TestPodSecurity asks an API server that enforces the Pod Security Standard "restricted" for every pod that any fixture renders: that is the level of
// control-plane namespaces.
func TestPodSecurity(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	c := env.Client(t, scheme)
	ns := env.Namespace(t) + "-restricted"
	g.Expect(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}})).To(Succeed())
	var files []string
	for _, pattern := range []string{"../cli/render/testdata/golden/*/*/*.yaml", "../hostedcluster/testdata/*/*.yaml"} {
		found, err := filepath.Glob(pattern)
		g.Expect(err).NotTo(HaveOccurred())
		files = append(files, found...)
	}
	asked := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
			spec := podSpecOf(g, document)
			if spec == nil {
				continue
			}
			asked++
			spec.PriorityClassName = "" // there are no classes here, and the level does not judge them
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "pod-"}, Spec: *spec}
			if pod.Spec.RestartPolicy == "" {
				pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			}
			addClaims(&pod.Spec)
			g.Expect(c.Create(t.Context(), pod, client.DryRunAll)).To(Succeed(), file)
		}
	}
	g.Expect(asked).To(BeNumerically(">", 40), "pods were found in the golden files")
	bad := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "bad"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	err := c.Create(t.Context(), bad, client.DryRunAll)
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "the server does enforce it: %v", err)
}

// addClaims adds what a StatefulSet's templates of claims would.
func addClaims(pod *corev1.PodSpec) {
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, m := range c.VolumeMounts {
			if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
				pod.Volumes = append(pod.Volumes, corev1.Volume{Name: m.Name, VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: m.Name},
				}})
			}
		}
	}
}

// podSpecOf is the pod that a document makes, nil when it makes none.
func podSpecOf(g *WithT, document []byte) *corev1.PodSpec {
	var workload struct {
		Kind string `json:"kind"`
		Spec struct {
			Template    *corev1.PodTemplateSpec `json:"template"`
			JobTemplate *struct {
				Spec struct {
					Template *corev1.PodTemplateSpec `json:"template"`
				} `json:"spec"`
			} `json:"jobTemplate"`
		} `json:"spec"`
	}
	var kind metav1.TypeMeta
	g.Expect(yaml.Unmarshal(document, &kind)).To(Succeed())
	switch kind.Kind {
	case "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob":
	default:
		return nil
	}
	g.Expect(yaml.Unmarshal(document, &workload)).To(Succeed())
	if j := workload.Spec.JobTemplate; j != nil {
		return &j.Spec.Template.Spec
	}
	return &workload.Spec.Template.Spec
}
