package kmshealth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hcpconditions"
	"hcp.internal/platform/internal/configoperator/hold"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/encryption"
)

const (
	// Controller is the name of the controller.
	Controller = "kms-health"
	// FieldOwner owns the condition. It differs from that of the process, whose other conditions an apply would take away.
	FieldOwner = "hosted-cluster-config-operator-kms-health"
	// jitter spreads the passes of many clusters.
	jitter = 0.2
	// timeout bounds one question. The server asks the plugin when it has not for 20 s, which may take as long as the plugin's timeout: 35 s at most.
	timeout = 40 * time.Second
	// maxPlugins bounds the questions of a pass; a rotation needs two.
	maxPlugins = encryption.MaxKeys
)

// Probe asks the kube-apiserver at host, https://ADDRESS:PORT, about a plugin, by its place in the configuration.
type Probe func(ctx context.Context, host string, plugin int) Answer

// Ask makes a Probe of the health checks of API servers that know the client of cfg, each at an address of its own. Only the code of an answer counts.
func Ask(cfg *rest.Config) (Probe, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.ServerName = names.KubeAPIServer // addresses of pods are in no certificate
	cfg.APIPath, cfg.GroupVersion = "/", &schema.GroupVersion{}
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	cfg.Timeout = timeout
	shared, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("building a client for health checks: %w", err)
	}
	// Not livez: it leaves these checks out by itself.
	ask := func(ctx context.Context, c rest.Interface, check string) (a Answer, known bool) {
		err := c.Get().AbsPath("readyz", check).MaxRetries(0).Do(ctx).Error()
		var answer apierrors.APIStatus
		switch {
		case err == nil:
			return Well, true
		case apierrors.IsNotFound(err):
			return Nothing, false
		case errors.As(err, &answer) && answer.Status().Code == http.StatusInternalServerError:
			return Away, true
		}
		return Nothing, true
	}
	return func(ctx context.Context, host string, plugin int) Answer {
		one := rest.CopyConfig(cfg)
		one.Host = host
		c, err := rest.RESTClientForConfigAndClient(one, shared)
		if err != nil {
			return Nothing // it is no address
		}
		if a, known := ask(ctx, c, encryption.HealthCheck(plugin)); known {
			return a
		}
		a, _ := ask(ctx, c, encryption.HealthChecks) // of all together: when it fails, it may be another one
		return a
	}, nil
}

// Reconciler keeps the condition of one HostedControlPlane. It is its only writer.
type Reconciler struct {
	Management client.Client // not cached: the decision whether to write needs what was written last
	Probe      Probe
	Clock      clock.PassiveClock
	// Hold says why nothing is to be done, if so.
	Hold hold.Func
}

// Reconcile asks each server once about each plugin.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hcp, done, err := hold.Begin(ctx, r.Management, req, r.Hold, r.Clock.Now())
	if hcp == nil {
		return done, err
	}
	if hcp.Spec.SecretEncryption == nil {
		return ctrl.Result{}, r.report(ctx, hcp, nil) // it can't be taken away once it is there
	}
	live, err := encryption.ReadConfig(ctx, r.Management, hcp.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	plugins := live.Plugins[:min(len(live.Plugins), maxPlugins)]
	servers, err := r.ask(ctx, hcp.Namespace, len(plugins))
	if err != nil {
		return ctrl.Result{}, err
	}
	wanted := encryption.FormOf(hcp) == encryption.InPlugin || hcp.Spec.SecretEncryption.Type == hyperv1.KMS
	condition, after := judge(plugins, servers, wanted, hcp.Generation)
	return ctrl.Result{RequeueAfter: wait.Jitter(after, jitter)}, r.report(ctx, hcp, condition)
}

// report writes the condition when it differs, or takes it away.
func (r *Reconciler) report(ctx context.Context, hcp *hyperv1.HostedControlPlane, want *metav1.Condition) error {
	return hcpconditions.ApplyOne(ctx, r.Management, FieldOwner, r.Clock.Now(), hcp, encryption.KeysAvailable, want)
}
