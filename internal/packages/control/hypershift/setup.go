package hypershift

import (
	"context"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	klabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagemanager "hcp.internal/platform/internal/packages/control/manager"
)

// setUpConnectors adds the controller of connectors.
func setUpConnectors(ctx context.Context, d packagemanager.Deps) error {
	mgr := d.Manager
	s, err := settingsOf(ctx, d)
	if err != nil {
		return err
	}
	if s.Image == "" && s.PackageImage == "" {
		ctrl.LoggerFrom(ctx).Info("connectors are not deployed: give --remote-phase-manager-image, since this process runs in no pod that has one")
	}
	byObject := map[client.Object]cache.ByObject{}
	for _, part := range parts() {
		byObject[part] = cache.ByObject{Label: klabels.SelectorFromSet(labels)}
	}
	cached, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), ByObject: byObject,
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return fmt.Errorf("setting up the cache of connectors: %w", err)
	}
	if err := mgr.Add(everywhere{cached}); err != nil {
		return err
	}
	partsClient, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), Cache: &client.CacheOptions{Reader: cached},
	})
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	return (&Reconciler{Client: mgr.GetClient(), Parts: partsClient, Settings: s}).SetupWithManager(mgr, cached)
}

// everywhere is a cache that runs before a leader is elected.
type everywhere struct{ cache.Cache }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

func settingsOf(ctx context.Context, d packagemanager.Deps) (settings, error) {
	s := settings{
		Image: d.Options.RemotePhaseManagerImage, PackageImage: d.Options.PackageOperatorPackageImage,
		Affinity: d.Options.SubComponentAffinity, Tolerations: d.Options.SubComponentTolerations,
	}
	_, err := d.Manager.GetRESTMapper().RESTMapping(schema.GroupKind{Group: "security.openshift.io", Kind: "SecurityContextConstraints"})
	switch {
	case isNotServed(err):
		s.UserID = ptrTo[int64](uid)
	case err != nil:
		return s, fmt.Errorf("asking the management cluster for its APIs: %w", err)
	}
	if s.Image != "" {
		return s, nil
	}
	s.Image, err = ownImage(ctx, d.Live, d.Options.Namespace, os.Getenv("HOSTNAME"))
	return s, err
}

// ownImage is the image that this process runs from, "" when it runs in no pod.
func ownImage(ctx context.Context, live client.Reader, namespace, pod string) (string, error) {
	if namespace == "" || pod == "" || strings.Contains(pod, "/") {
		return "", nil
	}
	self := &corev1.Pod{}
	if err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: pod}, self); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	for i := range self.Spec.Containers {
		if c := &self.Spec.Containers[i]; len(self.Spec.Containers) == 1 || c.Name == "manager" {
			return c.Image, nil
		}
	}
	return "", nil
}
