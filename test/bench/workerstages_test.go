//go:build bench

package bench

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/contract/token"
)

// Stages of a worker.
const (
	stagePool       = "NodePool"
	stageToken      = "token Secret"
	stagePayload    = "Ignition payload"
	stageMachine    = "Machine"
	stagePod        = "pod"
	stageRunning    = "pod running"
	stageBooted     = "booted"
	stageFetched    = "Ignition config fetched"
	stageWritten    = "files written"
	stageContainerd = "containerd started"
	stageInstalled  = "kubelet installed"
	stageKubelet    = "kubelet started"
	stageRequest    = "certificate requested"
	stageApproved   = "certificate approved"
	stageRegistered = "Node registered"
	stageNetwork    = "pod network's container started"
	stageReady      = "Node Ready"
)

var (
	workerOrder = []string{
		stagePool, stageToken, stagePayload, stageMachine, stagePod, stageRunning, stageBooted, stageFetched, stageWritten, stageContainerd,
		stageInstalled, stageKubelet, stageRequest, stageApproved, stageRegistered, stageNetwork, stageReady,
	}
	bareOrder = []string{stagePod, stageRunning, stageRegistered, stageReady}
)

// followWorker watches everything that a stage of the only worker of a pool is read from. Names of what belongs to it begin with the pool's.
func (h *hostedCluster) followWorker(ctx context.Context, pool string, s *stages) error {
	ns := controlPlane(h.name)
	machines, err := h.machines()
	if err != nil {
		return err
	}
	ours := func(name string) bool { return strings.HasPrefix(name, pool+"-") }
	for _, w := range []struct {
		c    client.WithWatch
		list client.ObjectList
		see  func(client.Object)
		opts []client.ListOption
	}{
		{h.api, &hyperv1.NodePoolList{}, func(client.Object) { s.mark(stagePool) }, named(namespace, pool)},
		{h.api, &corev1.SecretList{}, func(obj client.Object) {
			if secret, ok := obj.(*corev1.Secret); ok && secret.Annotations[hyperv1.NodePoolAnnotation] == namespace+"/"+pool && secret.Annotations[hyperv1.TokenSecretAnnotation] == "true" {
				s.mark(stageToken)
				if len(secret.Data[token.ReasonKey]) > 0 {
					s.mark(stagePayload)
				}
			}
		}, []client.ListOption{client.InNamespace(ns)}},
		{h.api, machines, func(obj client.Object) {
			if ours(obj.GetName()) {
				s.mark(stageMachine)
			}
		}, []client.ListOption{client.InNamespace(ns)}},
		{h.api, &corev1.PodList{}, func(obj client.Object) { s.seeWorkerPod(obj, ours) }, []client.ListOption{client.InNamespace(ns)}},
		{h.own, &certificatesv1.CertificateSigningRequestList{}, func(obj client.Object) { s.seeRequest(obj, ours) }, nil},
		{h.own, &corev1.PodList{}, func(obj client.Object) {
			if pod, ok := obj.(*corev1.Pod); ok && ours(pod.Spec.NodeName) && len(pod.Status.ContainerStatuses) > 0 && ptrTrue(pod.Status.ContainerStatuses[0].Started) {
				s.mark(stageNetwork)
			}
		}, []client.ListOption{client.InNamespace("kube-system"), client.MatchingLabels{"k8s-app": "flannel"}}},
		{h.own, &corev1.NodeList{}, func(obj client.Object) { s.seeNode(obj, ours) }, nil},
	} {
		if err := follow(ctx, w.c, w.list, w.see, w.opts...); err != nil {
			return err
		}
	}
	return nil
}

// followNodes marks each Ready Node of a pool.
func (h *hostedCluster) followNodes(ctx context.Context, pool string, s *stages) error {
	return follow(ctx, h.own, &corev1.NodeList{}, func(obj client.Object) {
		if node, ok := obj.(*corev1.Node); ok && strings.HasPrefix(node.Name, pool+"-") && nodeReady(node) {
			s.mark(stageReady + " " + node.Name)
		}
	})
}

// machines are Cluster API's, in whichever groups they are stored.
func (h *hostedCluster) machines() (client.ObjectList, error) {
	list := &metav1.PartialObjectMetadataList{}
	var err error
	for _, group := range []string{translate.Private, translate.Standard} {
		mapping, failed := h.api.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: "Machine"})
		if failed == nil {
			list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind("MachineList"))
			return list, nil
		}
		err = failed
	}
	return nil, fmt.Errorf("looking for Cluster API's kinds: %w", err)
}

func (s *stages) seeWorkerPod(obj client.Object, ours func(string) bool) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || !ours(pod.Name) {
		return
	}
	s.mark(stagePod)
	if pod.Status.Phase == corev1.PodRunning {
		s.mark(stageRunning)
	}
}

func (s *stages) seeNode(obj client.Object, ours func(string) bool) {
	node, ok := obj.(*corev1.Node)
	if !ok || !ours(node.Name) {
		return
	}
	s.mark(stageRegistered)
	if nodeReady(node) {
		s.mark(stageReady)
	}
}

func nodeReady(node *corev1.Node) bool {
	for _, cond := range node.Status.Conditions {
		if cond.Type == corev1.NodeReady && cond.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

func ptrTrue(b *bool) bool { return b != nil && *b }

// seeRequest looks at requests for client certificates: those for serving come later, and nothing waits for them.
func (s *stages) seeRequest(obj client.Object, ours func(string) bool) {
	csr, ok := obj.(*certificatesv1.CertificateSigningRequest)
	if !ok || csr.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return
	}
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || !ours(strings.TrimPrefix(request.Subject.CommonName, "system:node:")) {
		return
	}
	s.mark(stageRequest)
	for _, cond := range csr.Status.Conditions {
		if cond.Type == certificatesv1.CertificateApproved {
			s.mark(stageApproved)
		}
	}
}

// consoleLines are what a worker's console says when it reaches a stage.
var consoleLines = map[string]string{
	"first boot":                 stageBooted,
	"ignition: got the config":   stageFetched,
	"ignition: applied ":         stageWritten,
	"containerd.service: start":  stageContainerd,
	"kubelet-install.service: d": stageInstalled,
	"kubelet.service: started":   stageKubelet,
}

// readConsole marks the stages that happen inside a worker.
func (h *hostedCluster) readConsole(ctx context.Context, pod *corev1.Pod, s *stages) error {
	stream, err := h.logs.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Timestamps: true}).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		at, text, _ := strings.Cut(lines.Text(), " ")
		when, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			continue
		}
		for part, stage := range consoleLines {
			if strings.Contains(text, part) {
				s.markAt(stage, when)
			}
		}
	}
	return lines.Err()
}
