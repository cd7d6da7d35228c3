//go:build bench

package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/image"
	localmode "hcp.internal/platform/internal/local"
	"hcp.internal/platform/internal/local/builds"
	"hcp.internal/platform/internal/local/components"
	localplatform "hcp.internal/platform/internal/platform/local"
)

//go:embed testdata/bare-worker.sh
var bareScript string

//go:embed testdata/bare-containerd.toml
var bareContainerd string

//go:embed testdata/bare-kubelet.yaml
var bareKubelet string

//go:embed testdata/bare-cni.conflist
var bareCNI string

// bareWorkers are what workers are compared with: containerd and a kubelet that is there already, started by a shell with settings that
// are there already, too, and with a certificate and a pod network, in a pod like a worker's.
type bareWorkers struct {
	*hostedCluster
	image   string // of workers
	kubelet string // on this machine
	pause   string
}

func (h *hostedCluster) bareWorkers(b *testing.B) *bareWorkers {
	b.Helper()
	tags, err := image.PublishedRelease(b.Context(), components.RegistryHost+"/hypershift/release:"+localmode.DefaultKubernetesVersion)
	if err != nil {
		b.Fatal(err)
	}
	return &bareWorkers{hostedCluster: h, image: tags[localplatform.NodeImageTag], pause: tags["pause"],
		kubelet: filepath.Join(root(b), builds.KubernetesNodeBinary(localmode.DefaultKubernetesVersion))}
}

// join starts a bare worker and removes it; what it returns is what that of a worker does.
func (w *bareWorkers) join(b *testing.B, name string) (*stages, float64, map[string]memory) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), workerTimeout)
	defer cancel()
	ns := controlPlane(w.hostedCluster.name)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, StringData: map[string]string{
		"start.sh": bareScript, "kubelet.yaml": bareKubelet, "cni.conflist": bareCNI,
		"containerd.toml": strings.ReplaceAll(bareContainerd, "PAUSE", w.pause),
	}, Data: map[string][]byte{"kubeconfig": w.kubeconfig(b, name)}}
	if err := w.api.Create(ctx, secret); err != nil {
		b.Fatal(err)
	}
	s := newStages(20)
	ours := func(found string) bool { return found == name }
	if err := follow(ctx, w.api, &corev1.PodList{}, func(obj client.Object) { s.seeWorkerPod(obj, ours) }, named(ns, name)...); err != nil {
		b.Fatal(err)
	}
	if err := follow(ctx, w.own, &corev1.NodeList{}, func(obj client.Object) { s.seeNode(obj, ours) }, named("", name)...); err != nil {
		b.Fatal(err)
	}
	before := busySoFar(b)
	pod := w.pod(ns, name)
	if err := w.api.Create(ctx, pod); err != nil {
		b.Fatal(err)
	}
	if err := s.wait(ctx, func(stage string) bool { return stage == stageReady }); err != nil {
		b.Fatalf("the bare worker is not Ready after %s: %v\n%s", workerTimeout, err, w.console(pod))
	}
	used := busySoFar(b) - before
	pause(b, settle)
	if err := w.api.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		b.Fatal(err)
	}
	mem := w.memoryByProgram(b, []corev1.Pod{*pod})
	w.remove(b, pod, secret)
	return s, used, mem
}

func (w *bareWorkers) console(pod *corev1.Pod) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := w.logs.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: ptr.To[int64](40)}).DoRaw(ctx)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// remove waits until the pod is gone.
func (w *bareWorkers) remove(b *testing.B, pod *corev1.Pod, secret *corev1.Secret) {
	b.Helper()
	ctx := b.Context()
	for _, err := range []error{w.api.Delete(ctx, pod), w.api.Delete(ctx, secret),
		w.own.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}})} {
		if err != nil {
			b.Fatal(err)
		}
	}
	for deadline := time.Now().Add(workerTimeout); ; pause(b, 200*time.Millisecond) {
		err := w.api.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		if apierrors.IsNotFound(err) {
			return
		}
		if err != nil || time.Now().After(deadline) {
			b.Fatalf("the bare worker does not go: %v", err)
		}
	}
}

// pod is like that of a worker, with the kubelet laid in.
func (w *bareWorkers) pod(ns, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			Hostname:                      name,
			Containers: []corev1.Container{{
				Name: "machine", Image: w.image, Command: []string{"/usr/bin/bash", "/machine/config/start.sh"},
				Env: []corev1.EnvVar{
					{Name: "NODE_NAME", Value: name},
					{Name: "NODE_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
				},
				SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true), RunAsUser: ptr.To[int64](0), RunAsNonRoot: ptr.To(false)},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "disk", MountPath: "/var"},
					{Name: "config", MountPath: "/machine/config", ReadOnly: true},
					{Name: "kubelet", MountPath: "/usr/bin/kubelet", ReadOnly: true},
				},
			}},
			Volumes: []corev1.Volume{
				{Name: "disk", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "config", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, DefaultMode: ptr.To[int32](0o400)}}},
				{Name: "kubelet", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: w.kubelet, Type: ptr.To(corev1.HostPathFile)}}},
			},
		},
	}
}

// kubeconfig is one that a kubelet can use at once: the administrator has asked for its certificate.
func (w *bareWorkers) kubeconfig(b *testing.B, node string) []byte {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}}, key)
	if err != nil {
		b.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		b.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["hosted"] = &clientcmdapi.Cluster{Server: w.config.Host, CertificateAuthorityData: w.config.CAData}
	config.AuthInfos["node"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: w.sign(ctx, b, node, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})),
		ClientKeyData:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
	}
	config.Contexts["node"] = &clientcmdapi.Context{Cluster: "hosted", AuthInfo: "node"}
	config.CurrentContext = "node"
	data, err := clientcmd.Write(*config)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

func (w *bareWorkers) sign(ctx context.Context, b *testing.B, node string, request []byte) []byte {
	b.Helper()
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: node + "-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	if err := w.own.Create(ctx, csr); err != nil {
		b.Fatal(err)
	}
	// What an administrator asks for is approved by kube-controller-manager.
	for ; len(csr.Status.Certificate) == 0; pause(b, 100*time.Millisecond) {
		if err := w.own.Get(ctx, client.ObjectKeyFromObject(csr), csr); err != nil {
			b.Fatal(fmt.Errorf("waiting for the certificate of %s: %w", node, err))
		}
	}
	return csr.Status.Certificate
}
