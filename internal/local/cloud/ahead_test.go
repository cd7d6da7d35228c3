package cloud

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// There is no scheduler here, so what is bound was bound without one.
func TestVolumesAhead(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	env.StartVolumeControllers(t)
	client, err := kubernetes.NewForConfig(env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, end := context.WithCancel(t.Context())
	ended, options := make(chan error, 1), Options{Config: env.Config, VolumeDir: t.TempDir(), Node: "local", Pool: pool, Log: logr.Discard()}
	go func() { ended <- Run(ctx, options) }()
	defer func() { end(); g.Expect(<-ended).To(Succeed()) }()

	mode := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "one-node"}, Provisioner: Provisioner, VolumeBindingMode: &mode}
	_, err = client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	ns := env.Namespace(t)
	labels := map[string]string{"app": "web"}
	template := claim()
	template.Namespace, template.Name, template.UID, template.Labels, template.Spec.StorageClassName = ns, "data-web-0", "", labels, ptr.To(class.Name)
	made, err := client.CoreV1().PersistentVolumeClaims(ns).Create(ctx, template, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	claimNow := func() *corev1.PersistentVolumeClaim {
		c, err := client.CoreV1().PersistentVolumeClaims(ns).Get(ctx, made.Name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		return c
	}
	g.Eventually(func() corev1.PersistentVolumeClaimPhase { return claimNow().Status.Phase }, 2*time.Minute).Should(Equal(corev1.ClaimBound),
		"When a class waits for the first consumer and there is one node a claim should be bound before there is a pod")

	inTemplate := *template.DeepCopy()
	inTemplate.ObjectMeta = metav1.ObjectMeta{Name: "data", Labels: labels}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To[int32](1), ServiceName: "web", Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}},
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{inTemplate},
	}}
	_, err = client.AppsV1().StatefulSets(ns).Create(ctx, set, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	var pod *corev1.Pod
	g.Eventually(func() error {
		pod, err = client.CoreV1().Pods(ns).Get(ctx, "web-0", metav1.GetOptions{})
		return err
	}, 2*time.Minute).Should(Succeed(), "When a StatefulSet finds a claim of its own name it should take it up")
	g.Expect(pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName).To(Equal(made.Name))
	g.Expect(claimNow().UID).To(Equal(made.UID))
	g.Expect(claimNow().Status.Phase).To(Equal(corev1.ClaimBound))
}
