package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/control/environment"
	"hcp.internal/platform/internal/packages/control/manager"
	"hcp.internal/platform/internal/packages/control/packagecontroller"
)

// Run installs the operator from o.SelfBootstrap and returns when it runs. It is the Bootstrapper of manager.Command.
func Run(ctx context.Context, cfg *rest.Config, o manager.Options) error {
	scheme, err := manager.NewScheme()
	if err != nil {
		return fmt.Errorf("building the scheme: %w", err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	b := &bootstrap{client: c, options: o}
	if b.environment, err = b.look(ctx, cfg); err != nil {
		return err
	}
	if err := restartBehindProxy(b.environment.Proxy); err != nil {
		return err
	}
	return b.run(ctx, cfg)
}

type bootstrap struct {
	client      client.Client // without a cache: each thing is looked at once or twice
	options     manager.Options
	environment manifests.PackageEnvironment
}

// look finds out about the cluster.
func (b *bootstrap) look(ctx context.Context, cfg *rest.Config) (manifests.PackageEnvironment, error) {
	server, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return manifests.PackageEnvironment{}, fmt.Errorf("setting up discovery: %w", err)
	}
	d := &environment.Detector{Reader: b.client, Server: server, Clock: clock.RealClock{}}
	env, err := d.Get(ctx, "")
	if err != nil {
		return env, fmt.Errorf("looking at the cluster: %w", err)
	}
	return env, nil
}

func (b *bootstrap) run(ctx context.Context, cfg *rest.Config) error {
	log := ctrl.LoggerFrom(ctx)
	want, err := b.desired()
	if err != nil {
		return err
	}
	definitions, err := b.definitions(ctx, want)
	if err != nil {
		return fmt.Errorf("reading package %s: %w", b.options.SelfBootstrap, err)
	}
	if err := b.create(ctx, definitions); err != nil {
		return err
	}
	if err := b.number(ctx); err != nil {
		return err
	}
	if err := b.declare(ctx, want); err != nil {
		return err
	}
	switch done, err := b.available(ctx); {
	case err != nil:
		return err
	case done:
		log.Info("the operator runs; there is nothing to do")
		return nil
	}
	log.Info("installing the operator", "image", want.Spec.Image)
	return b.work(ctx, cfg)
}

// desired is the ClusterPackage of the operator.
func (b *bootstrap) desired() (*v1alpha1.ClusterPackage, error) {
	config := map[string]any{}
	if b.options.SelfBootstrapConfig != "" {
		if err := json.Unmarshal([]byte(b.options.SelfBootstrapConfig), &config); err != nil {
			return nil, fmt.Errorf("--self-bootstrap-config (PKO_CONFIG): %w", err)
		}
	}
	if b.options.ImagePrefixOverrides != "" {
		config[overridesKey] = b.options.ImagePrefixOverrides
	}
	p := &v1alpha1.ClusterPackage{}
	p.Name, p.Spec.Image = packageName, b.options.SelfBootstrap
	if len(config) > 0 {
		raw, err := json.Marshal(config)
		if err != nil {
			return nil, fmt.Errorf("encoding the configuration: %w", err)
		}
		p.Spec.Config = &runtime.RawExtension{Raw: raw}
	}
	return p, nil
}

// declare makes the ClusterPackage what is wanted. Before it gets another image, the operator before is stopped: it would work against this one.
func (b *bootstrap) declare(ctx context.Context, want *v1alpha1.ClusterPackage) error {
	have := &v1alpha1.ClusterPackage{}
	err := b.client.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		if err := b.client.Create(ctx, want, client.FieldOwner(v1alpha1.FieldOwner)); err != nil {
			return fmt.Errorf("creating ClusterPackage %s: %w", packageName, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading ClusterPackage %s: %w", packageName, err)
	}
	if have.Spec.Image != want.Spec.Image {
		if err := b.stopPredecessor(ctx, want.Spec.Image); err != nil {
			return err
		}
	}
	// Null removes a configuration that is not given any more; what the user has set besides stays.
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"image": want.Spec.Image, "config": want.Spec.Config}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	if err := b.client.Patch(ctx, have, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldOwner)); err != nil {
		return fmt.Errorf("changing ClusterPackage %s: %w", packageName, err)
	}
	return nil
}

// available tells whether the installed operator works, at the state that is wanted.
func (b *bootstrap) available(ctx context.Context) (bool, error) {
	p := &v1alpha1.ClusterPackage{}
	if err := b.client.Get(ctx, client.ObjectKey{Name: packageName}, p); err != nil {
		return false, fmt.Errorf("reading ClusterPackage %s: %w", packageName, err)
	}
	c := conditions.Current(p.Status.Conditions, v1alpha1.ConditionAvailable, p.Generation)
	if c == nil || c.Status != "True" {
		return false, nil
	}
	d := &appsv1.Deployment{}
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: b.options.Namespace, Name: managerName}, d); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return d.Status.AvailableReplicas > 0 && d.Status.UpdatedReplicas == d.Status.AvailableReplicas, nil
}

// work is the operator for cluster-scoped packages until the installed one works. It waits for no lease: whoever held it was just removed, and
// did not give it back.
func (b *bootstrap) work(ctx context.Context, cfg *rest.Config) error {
	o := b.options
	o.Bootstrap, o.ForceAdoption, o.LeaderElection = true, true, false
	mgr, err := manager.New(ctx, cfg, o, packagecontroller.Extend)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	waited := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-ended:
			return false, fmt.Errorf("working as the operator: %w", errors.Join(err, errors.New("ended before the installed one was available")))
		default:
		}
		done, err := b.available(ctx)
		if err != nil {
			ctrl.LoggerFrom(ctx).Info("waiting for the operator", "reason", err.Error())
		}
		return done, nil
	})
	if waited != nil {
		return waited
	}
	cancel()
	return <-ended
}

// puller pulls as the operator does.
func (b *bootstrap) puller() (*images.Puller, images.Rewrite, error) {
	rewrite, err := packagecontroller.Rewrite(b.options)
	if err != nil {
		return nil, rewrite, err
	}
	return packagecontroller.NewPuller(b.client, rewrite, b.options), rewrite, nil
}

// served tells whether the API server has a kind.
func served(err error) bool { return !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) }
