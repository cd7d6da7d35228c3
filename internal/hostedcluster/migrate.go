package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/capiproxy"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/migration"
	"hcp.internal/platform/internal/hostedcluster/status"
	"hcp.internal/platform/internal/hostedcluster/step"
	"hcp.internal/platform/internal/kube/read"
)

// mover deploys programs for hosted clusters that are moved from standard to private types of Cluster API or back: as a pass would, and no more
// of a pass than that.
type mover struct {
	// private works behind the proxy, standard directly.
	private, standard *Reconciler
}

// Deploy implements migration.Deployer.
func (m mover) Deploy(ctx context.Context, hc *hyperv1.HostedCluster, private, awake bool) error {
	r := m.standard
	if private {
		r = m.private
	}
	hc = r.settled(hc)
	if err := r.asItRan(ctx, hc); err != nil {
		return err
	}
	obs, err := r.observe(ctx, hc)
	if err != nil {
		return fmt.Errorf("observing %s: %w", hc.Name, err)
	}
	if err := errors.Join(obs.ReleaseErr, obs.PlatformErr); err != nil {
		return err
	}
	if !awake {
		obs.Pools = nil // what has no replica keeps none
	}
	o := r.operatorSettings()
	var steps []step.Step
	if awake {
		steps = append(steps, operatorStep(&obs, o))
	}
	return r.apply(ctx, hc, append(steps, capiOperatorsStep(&obs, o)))
}

// asItRan gives a hosted cluster the release that its control plane has. Another one that somebody asks for meanwhile waits, or a move could not end
// for what is wrong with it.
func (r *Reconciler) asItRan(ctx context.Context, hc *hyperv1.HostedCluster) error {
	hcp, err := read.Optional(ctx, r.Client, client.ObjectKey{Namespace: names.NamespaceOf(hc), Name: hc.Name}, &hyperv1.HostedControlPlane{})
	if err != nil || hcp == nil {
		return err
	}
	hc.Spec.Release.Image, hc.Spec.ControlPlaneRelease = hcp.Spec.ReleaseImage, nil
	if image := hcp.Spec.ControlPlaneReleaseImage; image != nil {
		hc.Spec.ControlPlaneRelease = &hyperv1.Release{Image: *image}
	}
	return nil
}

// Speaks implements migration.Deployer. Labels that can't be read are no answer: there would be no way to find out later.
func (m mover) Speaks(ctx context.Context, hc *hyperv1.HostedCluster) error {
	hc = m.private.settled(hc)
	obs, err := m.private.observe(ctx, hc)
	if err != nil {
		return err
	}
	if obs.ReleaseErr != nil {
		return fmt.Errorf("reading the release: %w", obs.ReleaseErr)
	}
	if obs.OperatorLabels == nil {
		return fmt.Errorf("the labels of image %s can't be read, which tell whether the control-plane-operator knows private types (%s)", obs.OperatorImage, capiproxy.ImageLabel)
	}
	return status.SpeaksPrivately(&obs)
}

// settled is a hosted cluster as it is once r looks after it.
func (r *Reconciler) settled(hc *hyperv1.HostedCluster) *hyperv1.HostedCluster {
	hc = hc.DeepCopy()
	for _, key := range []string{hyperv1.PrivateCAPIMigrationInProgressAnnotation, hyperv1.PrivateCAPITypesAnnotation, hyperv1.HostedClusterScopeAnnotation} {
		delete(hc.Annotations, key)
	}
	if r.PrivateCAPI {
		hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] = "true"
	} else {
		hc.Annotations[hyperv1.HostedClusterScopeAnnotation] = hyperv1.LegacyScope
	}
	return hc
}

// newMover works through r, which is one for private types, and directly.
func newMover(r *Reconciler, direct client.Client) mover {
	standard := r.configured()
	standard.Client, standard.Live, standard.Direct = direct, direct, nil
	standard.PrivateCAPI, standard.Scope = false, ptr.To(hyperv1.LegacyScope)
	standard.Capabilities.ClusterAPI = true
	return mover{private: r, standard: standard}
}

// configured is another Reconciler that was told the same. What it is told is in exported fields, all of which are taken over: one that is forgotten
// would deploy programs with half of an installation's settings. What it has found out is in the others, and starts anew.
func (r *Reconciler) configured() *Reconciler {
	out := &Reconciler{}
	from, to := reflect.ValueOf(r).Elem(), reflect.ValueOf(out).Elem()
	for i := range from.NumField() {
		if to.Type().Field(i).IsExported() {
			to.Field(i).Set(from.Field(i))
		}
	}
	return out
}

// addMigration moves hosted clusters from standard types, and back. cfg leads to the management cluster itself.
func addMigration(mgr ctrl.Manager, r *Reconciler, cfg *rest.Config, direct client.Client, namespace string) error {
	disco, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return err
	}
	c := &migration.Controller{Direct: direct, Cached: mgr.GetClient(), Discovery: disco, Deployer: newMover(r, direct), Clock: r.Clock, Namespace: namespace, Events: r.Events}
	return errors.Join(migration.Register(ctrlmetrics.Registry, mgr.GetClient()), c.SetupWithManager(mgr))
}
