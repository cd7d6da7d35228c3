//go:build bench

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/cli/destroy"
	"hcp.internal/platform/internal/contract/names"
	localmode "hcp.internal/platform/internal/local"
	"hcp.internal/platform/internal/local/components"
)

// namespace holds the hosted clusters of benchmarks and nothing else.
const namespace = "bench"

// destroyTimeout is for all hosted clusters of a benchmark together.
const destroyTimeout = 10 * time.Minute

func controlPlane(name string) string { return names.ControlPlaneNamespace(namespace, name) }

// create does what `hypershift create cluster local` does.
func (c *cluster) create(ctx context.Context, name string, annotations map[string]string) error {
	o := create.NewOptions(hyperv1.LocalPlatform)
	o.Connect, o.Namespace, o.Name, o.Annotations = c.flags, namespace, name, annotations
	o.ReleaseImage = components.RegistryHost + "/hypershift/release:" + localmode.DefaultKubernetesVersion
	return create.Cluster(ctx, o, io.Discard)
}

// destroy does what `hypershift destroy cluster local` does, for all names at once.
func (c *cluster) destroy(names ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), destroyTimeout)
	defer cancel()
	return each(names, func(name string) error {
		o := destroy.NewOptions()
		o.Connect, o.Namespace, o.Name, o.GracePeriod = c.flags, namespace, name, destroyTimeout
		if err := destroy.Cluster(ctx, o, io.Discard); err != nil && !errors.Is(err, destroy.ErrNotFound) {
			return err
		}
		return c.gone(ctx, controlPlane(name))
	})
}

// gone waits until a namespace is, so that nothing of one run is still ending during the next.
func (c *cluster) gone(ctx context.Context, name string) error {
	for {
		err := c.api.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("waiting for namespace %s to go: %w", name, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for namespace %s to go: %w", name, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// destroyAtEnd destroys hosted clusters when the benchmark is over, however it ends.
func (c *cluster) destroyAtEnd(b *testing.B, names ...string) {
	b.Helper()
	b.Cleanup(func() {
		if err := c.destroy(names...); err != nil {
			b.Errorf("%v\nThe rest is in namespace %s; `hypershift destroy cluster local --namespace %s --name NAME --force` removes it", err, namespace, namespace)
		}
	})
}

// emptyNamespace destroys what a killed run left behind.
func (c *cluster) emptyNamespace(b *testing.B) {
	b.Helper()
	list := &hyperv1.HostedClusterList{}
	if err := c.api.List(b.Context(), list, client.Limit(500)); err != nil {
		b.Fatalf("listing hosted clusters: %v", err)
	}
	var names []string
	for _, hc := range list.Items {
		if hc.Namespace == namespace {
			names = append(names, hc.Name)
		}
	}
	if others := len(list.Items) - len(names); others > 0 {
		fmt.Printf("note: %d other hosted clusters share the machine; figures are better without them\n", others)
	}
	if err := c.destroy(names...); err != nil {
		b.Fatalf("removing what a killed run left behind: %v", err)
	}
	c.makeNamespace(b)
}

// makeNamespace makes the namespace for all benchmarks, as that is no part of what is measured.
func (c *cluster) makeNamespace(b *testing.B) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	ns := &corev1.Namespace{}
	if err := c.api.Get(ctx, client.ObjectKey{Name: namespace}, ns); err == nil && !ns.DeletionTimestamp.IsZero() {
		if err := c.gone(ctx, namespace); err != nil { // the last run has just ended
			b.Fatal(err)
		}
	}
	err := c.api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		b.Fatalf("creating namespace %s: %v", namespace, err)
	}
}

// removeNamespace is the last clean-up, for a cluster that we did not start.
func (c *cluster) removeNamespace() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return client.IgnoreNotFound(c.api.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
}

// each runs f for all names at once and joins the errors.
func each(names []string, f func(name string) error) error {
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { errs[i] = f(name) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
