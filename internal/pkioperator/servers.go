package pkioperator

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/pki"
)

const (
	// clientPort is the name of the port for clients in the pods.
	clientPort = "client"
	// askTimeout of one question to one server.
	askTimeout = 10 * time.Second
	// maxServers bounds a list of which three is the usual length.
	maxServers = 50
)

// apiServers asks the pods of kube-apiserver, each by its own address: behind the Service they look like one.
type apiServers struct {
	client    client.Client // not cached
	namespace string
	// whoami asks one server; replaced by tests.
	whoami func(ctx context.Context, host string, roots []byte, as *authority) (accepted bool, err error)
}

// Accepted implements asker.
func (a *apiServers) Accepted(ctx context.Context, newer, older *authority) (accepted, olderAccepted, ok bool, err error) {
	root, err := read(ctx, a.client, a.namespace, pki.RootCABundle, &corev1.ConfigMap{})
	if err != nil || root == nil {
		return false, false, false, err
	}
	hosts, err := a.hosts(ctx)
	if err != nil || len(hosts) == 0 {
		return false, false, false, err
	}
	accepted = true
	for _, host := range hosts {
		yes, err := a.whoami(ctx, host, []byte(root.Data[pki.CACertKey]), newer)
		if err != nil {
			return false, false, false, nil //nolint:nilerr // because one that does not answer now was not asked
		}
		accepted = accepted && yes
		if older == nil {
			continue
		}
		if yes, err = a.whoami(ctx, host, []byte(root.Data[pki.CACertKey]), older); err != nil {
			return false, false, false, nil //nolint:nilerr // because one that does not answer now was not asked
		}
		olderAccepted = olderAccepted || yes
	}
	return accepted, olderAccepted, true, nil
}

// hosts are the addresses of all servers; none while not all that there should be are ready.
func (a *apiServers) hosts(ctx context.Context) ([]string, error) {
	d, err := read(ctx, a.client, a.namespace, names.KubeAPIServer, &appsv1.Deployment{})
	if err != nil || d == nil {
		return nil, err
	}
	pods := &corev1.PodList{}
	if err := a.client.List(ctx, pods, client.InNamespace(a.namespace), client.MatchingLabels{"app": names.KubeAPIServer}, client.Limit(maxServers)); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", names.KubeAPIServer, err)
	}
	var hosts []string
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		port := portOf(pod)
		if !pod.DeletionTimestamp.IsZero() || !ready(pod) || pod.Status.PodIP == "" || port == 0 {
			return nil, nil
		}
		hosts = append(hosts, "https://"+net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port))))
	}
	if len(hosts) != int(ptr.Deref(d.Spec.Replicas, 1)) {
		return nil, nil
	}
	return hosts, nil
}

func portOf(pod *corev1.Pod) int32 {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == clientPort {
				return p.ContainerPort
			}
		}
	}
	return 0
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// whoami asks a server who the holder of a certificate is. Not to be let in is an answer; not to be answered is an error.
func whoami(ctx context.Context, host string, roots []byte, as *authority) (bool, error) {
	review, err := authenticationclient.NewForConfig(&rest.Config{
		Host: host, Timeout: askTimeout,
		TLSClientConfig: rest.TLSClientConfig{CAData: roots, ServerName: names.KubeAPIServer, CertData: as.certPEM, KeyData: as.keyPEM},
	})
	if err != nil {
		return false, fmt.Errorf("connecting to %s: %w", host, err)
	}
	_, err = review.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking %s: %w", host, err)
	}
	return true, nil
}
