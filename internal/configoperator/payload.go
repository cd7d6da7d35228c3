package configoperator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/openshift"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/release"
)

// payloadTimeout bounds a pass over a payload's objects, of which there are some two hundred.
const payloadTimeout = 3 * time.Minute

// lookupTimeout bounds how long a pass waits for a registry. The provider goes on reading, for a later pass.
const lookupTimeout = 30 * time.Second

// Payload is what is known from the start about a hosted cluster whose release is an OpenShift payload.
type Payload struct {
	// Version and Kubernetes are those of the control plane.
	Version, Kubernetes string
	// ManagedService is "ARO-HCP" on Azure Red Hat OpenShift.
	ManagedService string
	// OAuthHost and OAuthPort are where the OAuth server is published.
	OAuthHost string
	OAuthPort int32
	// OperatorImage is the image of this operator, for what it runs on nodes.
	OperatorImage string
	// Releases reads the hosted cluster's release.
	Releases release.Provider
	// Infra is the cluster that runs virtual machines; nil: the management cluster.
	Infra client.Client
}

// reconcilePayload makes one pass over a hosted cluster of an OpenShift payload.
func (r *Reconciler) reconcilePayload(ctx context.Context, hcp *hyperv1.HostedControlPlane) (ctrl.Result, error) {
	in, err := r.observePayload(ctx, hcp)
	var hosted HostedError
	if err != nil && !errors.As(err, &hosted) {
		restored, _, _ := r.withRecovery(ctx, hcp, false, 0)
		return ctrl.Result{}, errors.Join(err, r.report(ctx, hcp, append(restored, succeeded(hcp.Generation, err, nil))...))
	}
	var missing error
	var failures []Failure
	if err != nil { // nothing else would be answered either
		failures = []Failure{{Object: hosted.what, Err: hosted.err}}
	} else {
		var actions []openshift.Action
		actions, missing = openshift.Plan(in)
		failures = r.run(ctx, actions)
		if len(failures) == 0 && openshift.Clears(in) {
			r.cleared.Store(true)
		}
	}
	restored, again, more := r.withRecovery(ctx, hcp, err == nil, resync)
	failures = append(failures, more...)
	err = r.report(ctx, hcp, append(append(openshift.Conditions(in), restored...), succeeded(hcp.Generation, missing, failures))...)
	for _, f := range failures {
		err = errors.Join(err, f)
	}
	if err = errors.Join(missing, err); err != nil {
		return ctrl.Result{}, err // tried again with increasing pauses
	}
	return ctrl.Result{RequeueAfter: wait.Jitter(again, resyncJitter)}, nil
}

// HostedError is a failure to read the hosted cluster, whose words are not repeated.
type HostedError struct {
	what string
	err  error
}

func (e HostedError) Error() string { return Failure{Object: e.what, Err: e.err}.Error() }

// Unwrap returns what the API server or the network said.
func (e HostedError) Unwrap() error { return e.err }

// observePayload reads both clusters and the release. Without a pull secret and the release nothing is done.
func (r *Reconciler) observePayload(ctx context.Context, hcp *hyperv1.HostedControlPlane) (openshift.Input, error) {
	in := openshift.Input{
		HCP: hcp, Version: r.Payload.Version, Kubernetes: r.Payload.Kubernetes, ManagedService: r.Payload.ManagedService,
		OAuthHost: r.Payload.OAuthHost, OAuthPort: r.Payload.OAuthPort, OperatorImage: r.Payload.OperatorImage, Cleared: r.cleared.Load(), Now: r.Clock.Now(), Random: randomBytes, Bcrypt: openshift.Bcrypt,
	}
	var err error
	if in.Control, err = openshift.ObserveControl(ctx, r.Management, hcp); err != nil {
		return in, err
	}
	infra := client.Reader(r.Management)
	if r.Payload.Infra != nil {
		infra = r.Payload.Infra
	}
	in.Control.Mirrors, in.Control.MirrorsErr = openshift.ObserveMirrors(ctx, infra, hcp)
	if in.MetricsHost, err = openshift.ObserveMetricsHost(ctx, r.Management, hcp); err != nil {
		return in, err
	}
	secret := in.Control.Secrets[hcp.Spec.PullSecret.Name]
	if secret == nil {
		return in, fmt.Errorf("waiting for the pull secret %s, which the hypershift-operator copies from the HostedCluster's", hcp.Spec.PullSecret.Name)
	}
	lookup, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	provider := r.Payload.Releases
	if hcp.Spec.AdditionalTrustBundle != nil {
		if cm := in.Control.ConfigMaps[names.UserCABundle]; cm != nil {
			provider = release.WithTrustOf(provider, []byte(cm.Data[names.CABundleKey]))
		}
	}
	if in.Release, err = provider.Lookup(lookup, hcp.Spec.ReleaseImage, secret.Data[corev1.DockerConfigJsonKey]); err != nil {
		return in, fmt.Errorf("reading release %q: %w", hcp.Spec.ReleaseImage, err)
	}
	if in.Tunnel, err = r.observeTunnel(ctx, hcp.Namespace); err != nil {
		return in, err
	}
	if in.Hosted, err = openshift.ObserveHosted(ctx, r.Hosted, hcp); err != nil {
		return in, HostedError{what: "objects of the hosted cluster", err: err}
	}
	return in, nil
}

// run carries out actions and returns the failures. When the hosted API gives no answer at all the rest isn't tried.
func (r *Reconciler) run(ctx context.Context, actions []openshift.Action) []Failure {
	ctx, cancel := context.WithTimeout(ctx, payloadTimeout)
	defer cancel()
	var failures []Failure
	for _, a := range actions {
		err := r.runOne(ctx, a)
		if err == nil {
			if r.Watch != nil && !a.Management && a.Do != openshift.Delete && a.Do != openshift.DeleteOwn {
				r.Watch(a.Object.GetObjectKind().GroupVersionKind())
			}
			continue
		}
		failures = append(failures, Failure{Object: a.Name(), Err: err})
		if !errors.As(err, new(apierrors.APIStatus)) && !errors.Is(err, openshift.ErrNoKind) && !errors.Is(err, openshift.ErrNoRoutes) && !a.Infra {
			break
		}
	}
	return failures
}

func (r *Reconciler) runOne(ctx context.Context, a openshift.Action) error {
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	return r.executorOnce().Run(ctx, a)
}

func (r *Reconciler) executorOnce() *openshift.Executor {
	r.once.Do(func() {
		r.executor = &openshift.Executor{Hosted: r.Hosted, Management: r.Management, Owner: names.ConfigOperator}
		if r.Payload != nil {
			r.executor.Infra = r.Payload.Infra
		}
	})
	return r.executor
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, since Go 1.24
	return b
}

// payload is what the process knows of an OpenShift payload, nil for a release of Kubernetes.
func (o Options) payload() (*Payload, error) {
	if !release.IsPayload(o.Version) {
		return nil, nil
	}
	overrides, err := rewrite.ParseOverrides(strings.TrimPrefix(o.RegistryOverrides, "="))
	if err != nil {
		return nil, fmt.Errorf("--registry-overrides: %w", err)
	}
	pairs, err := rewrite.ParseOverrides(strings.TrimPrefix(o.RegistryMirrors, "="))
	if err != nil {
		return nil, fmt.Errorf("OPENSHIFT_IMG_OVERRIDES: %w", err)
	}
	var mirrors []rewrite.Mirror
	for _, p := range pairs {
		mirrors = append(mirrors, rewrite.Mirror{Source: p.Source, Mirrors: []string{p.To}})
	}
	infra, err := infraClient(o.KubevirtInfraKubeconfig)
	if err != nil {
		return nil, err
	}
	return &Payload{
		Infra: infra, Version: o.Version, Kubernetes: o.KubernetesVersion, ManagedService: o.ManagedService, OAuthHost: o.OAuthAddress, OAuthPort: o.OAuthPort, OperatorImage: o.Image,
		Releases: release.NewRegistryProvider(release.Options{Overrides: overrides, Mirrors: mirrors}),
	}, nil
}
