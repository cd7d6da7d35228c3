package hostedcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/metrics"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/version"
)

// ConfigMap that tells the CLI and consoles which releases this operator hosts.
const (
	supportedVersions      = "supported-versions"
	supportedVersionsLabel = "hypershift.openshift.io/supported-versions"
	serverVersionKey       = "server-version"
	// supportedVersionsResync heals the ConfigMap when somebody changes or deletes it, and retry is after a failure.
	supportedVersionsResync = time.Hour
	supportedVersionsRetry  = 10 * time.Second
)

// addFleet adds what is about the operator and all its clusters: metrics, and the supported versions.
func addFleet(mgr ctrl.Manager, cfg *rest.Config, namespace string, clk clock.PassiveClock) error {
	known := prometheus.AlreadyRegisteredError{}
	if err := metrics.Register(ctrlmetrics.Registry, metrics.NewCollector(mgr.GetCache(), clk)); err != nil && !errors.As(err, &known) {
		return fmt.Errorf("registering metrics: %w", err)
	}
	// Not the manager's client: its cache has only the ConfigMaps with our label.
	uncached, err := client.New(cfg, client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		publishVersions(ctx, apply.New(uncached, names.HypershiftOperator), namespace)
		return nil
	}))
}

// publishVersions keeps the ConfigMap until ctx ends.
func publishVersions(ctx context.Context, applier *apply.Applier, namespace string) {
	for ctx.Err() == nil {
		pause := wait.Jitter(supportedVersionsResync, 0.1)
		if err := applier.Apply(ctx, supportedVersionsConfigMap(namespace)); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "publishing the supported versions")
			pause = supportedVersionsRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// supportedVersionsConfigMap lists the minors that are hosted, newest first: those of OpenShift, then those of Kubernetes.
func supportedVersionsConfigMap(namespace string) *corev1.ConfigMap {
	raw, err := json.Marshal(map[string][]string{"versions": append(release.Supported(), release.SupportedKubernetes()...)})
	if err != nil {
		panic(err) // strings can be encoded
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: supportedVersions, Labels: map[string]string{supportedVersionsLabel: "true"}},
		Data:       map[string]string{supportedVersions: string(raw), serverVersionKey: version.Commit(), version.ServerKey: version.Semver()},
	}
}
