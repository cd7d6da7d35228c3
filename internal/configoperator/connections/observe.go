package connections

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	agentLabel, agentApp = "app", "konnectivity-agent"
	// agentsToTry is how many agents are asked for their log before the tunnel is said to be broken; a node of one may be down.
	agentsToTry = 3
	// podsToSee and leasesToSee bound what is read of a large cluster.
	podsToSee, leasesToSee = 50, 100
	// timeout bounds one question; a tunnel that works answers in milliseconds.
	timeout = 10 * time.Second
	// maxLog is how many bytes of a log are asked for. What it says doesn't matter.
	maxLog = 64
)

// Logs reads a little of the log of a pod in namespace kube-system.
type Logs func(ctx context.Context, pod string) error

// ReadLogs gives Logs of the cluster that cfg leads to.
func ReadLogs(cfg *rest.Config) (Logs, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion = "/api", &corev1.SchemeGroupVersion
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	c, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("building a client for logs: %w", err)
	}
	return func(ctx context.Context, pod string) error {
		return c.Get().Namespace(metav1.NamespaceSystem).Resource("pods").Name(pod).SubResource("log").
			Param("tailLines", "1").Param("limitBytes", fmt.Sprint(maxLog)).MaxRetries(0).Do(ctx).Error()
	}, nil
}

// observe asks the hosted API. What one question lacks doesn't keep the others from being asked, except that a dead API is asked once.
func observe(ctx context.Context, hosted client.Client, logs Logs) Observed {
	var obs Observed
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if obs.Failed = list(ctx, hosted, nodes, client.Limit(1)); obs.Failed != nil {
		return obs
	}
	if obs.Nodes = len(nodes.Items) > 0; !obs.Nodes {
		return obs
	}
	leases := &coordinationv1.LeaseList{}
	if obs.Failed = list(ctx, hosted, leases, client.InNamespace(corev1.NamespaceNodeLease), client.Limit(leasesToSee)); obs.Failed != nil {
		return obs
	}
	for _, l := range leases.Items {
		if l.Spec.RenewTime != nil && l.Spec.RenewTime.After(obs.Renewed) {
			obs.Renewed = l.Spec.RenewTime.Time
		}
	}
	pods := &corev1.PodList{}
	if obs.Failed = list(ctx, hosted, pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{agentLabel: agentApp}, client.Limit(podsToSee)); obs.Failed != nil {
		return obs
	}
	for i := range pods.Items {
		if pods.Items[i].Status.Phase != corev1.PodRunning || !pods.Items[i].DeletionTimestamp.IsZero() {
			continue
		}
		if obs.Agents++; obs.Agents > agentsToTry {
			obs.Agents = agentsToTry
			break
		}
		if err := ask(ctx, logs, pods.Items[i].Name); err != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("cannot read a log through the tunnel", "pod", pods.Items[i].Name, "error", err.Error())
			continue
		}
		obs.LogsRead = true
		break
	}
	return obs
}

func list(ctx context.Context, c client.Client, into client.ObjectList, options ...client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.List(ctx, into, options...)
}

func ask(ctx context.Context, logs Logs, pod string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return logs(ctx, pod)
}
