package kmshealth

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
)

const (
	// clientPort is the name of the port for clients in the pods.
	clientPort = "client"
	// maxServers bounds a list of which three is the usual length.
	maxServers = 50
)

// server is a kube-apiserver that serves: the name of its pod, and where it is to be asked by itself. Behind the Service all look like one.
type server struct{ pod, host string }

// servers are those that serve, by the names of their pods.
func servers(ctx context.Context, reader client.Reader, namespace string) ([]server, error) {
	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app": names.KubeAPIServer}, client.Limit(maxServers)); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", names.KubeAPIServer, err)
	}
	var list []server
	for i := range pods.Items {
		pod := &pods.Items[i]
		if port := portOf(pod); port != 0 && pod.DeletionTimestamp.IsZero() && pod.Status.PodIP != "" && serves(pod) {
			list = append(list, server{pod.Name, "https://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port)))})
		}
	}
	slices.SortFunc(list, func(a, b server) int { return cmp.Compare(a.pod, b.pod) })
	return list, nil
}

// serves looks at the server alone: while the process of its plugin is down, the pod is not ready. One that starts does not serve: if it can't use a key, that
// is no trouble of those that do.
func serves(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == names.KubeAPIServer && s.Ready })
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

// answered is what one server says of the plugins, in their order.
type answered struct {
	pod     string
	answers []Answer
}

// ask asks every server about each plugin; all servers at once, so that one that keeps silent does not delay the others' word.
func (r *Reconciler) ask(ctx context.Context, namespace string, plugins int) ([]answered, error) {
	if plugins == 0 {
		return nil, nil
	}
	list, err := servers(ctx, r.Management, namespace)
	if err != nil {
		return nil, err
	}
	all := make([]answered, len(list))
	var asking sync.WaitGroup
	for i, s := range list {
		all[i] = answered{pod: s.pod, answers: make([]Answer, plugins)}
		asking.Go(func() {
			for plugin := range plugins {
				all[i].answers[plugin] = r.Probe(ctx, s.host, plugin)
			}
		})
	}
	asking.Wait()
	return all, nil
}
