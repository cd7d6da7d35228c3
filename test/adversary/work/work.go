// Package work does what users do: it makes, upgrades and destroys hosted clusters, changes NodePools, and rolls packages out.
package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/test/adversary/plan"
	"hcp.internal/platform/test/adversary/world"
)

// accepted is how long a step may try until an API server takes it.
const accepted = 2 * time.Minute

// Work plays the steps of a plan that are no faults.
type Work struct {
	World *world.World
	// Release is the image of the demo cluster.
	Release string
	// Made and Going are called when a hosted cluster was accepted, and before it is destroyed.
	Made, Going func(cluster int)
	// Deadline says how much longer something that begins now and takes bound by itself may take. Late is called when a deletion didn't end in time.
	Deadline func(bound time.Duration) time.Duration
	Late     func(what string)

	manifests map[int][]*unstructured.Unstructured
}

// fieldOwner of what is applied.
var fieldOwner = client.FieldOwner("adversary")

// Prepare makes what the steps of a plan need, while nothing is harmed yet.
func (w *Work) Prepare(ctx context.Context, p plan.Plan) error {
	demo := &hyperv1.HostedCluster{}
	if err := w.World.Client.Get(ctx, world.Key(plan.Demo), demo); err != nil {
		return fmt.Errorf("reading the demo cluster, which the adversary needs: %w", err)
	}
	w.Release = demo.Spec.Release.Image
	for _, ns := range []string{world.Clusters, world.Tenant, world.Victim} {
		if err := w.World.Namespace(ctx, ns); err != nil {
			return fmt.Errorf("making namespace %s: %w", ns, err)
		}
	}
	w.manifests = map[int][]*unstructured.Unstructured{}
	for c := 1; c <= p.Clusters; c++ {
		objects, err := w.render(ctx, c)
		if err != nil {
			return err
		}
		w.manifests[c] = objects
	}
	if err := w.push(ctx); err != nil {
		return err
	}
	return w.createPool(ctx)
}

// render has our own command say what a hosted cluster is made of. Clusters with even numbers ask for less, so that more of them fit.
func (w *Work) render(ctx context.Context, cluster int) ([]*unstructured.Unstructured, error) {
	key := world.Key(cluster)
	args := []string{"create", "cluster", "local", "--name", key.Name, "--namespace", key.Namespace, "--release-image", w.Release, "--render", "--render-sensitive"}
	if cluster%2 == 0 {
		args = append(args, "--annotations", "resource-request-override.hypershift.openshift.io/etcd.etcd=cpu=100m")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(w.World.Bin, "hypershift"), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("hypershift %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	var objects []*unstructured.Unstructured
	for d := utilyaml.NewYAMLOrJSONDecoder(&out, 1<<12); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); err != nil {
			break // the end
		}
		if o.GetKind() != "" && o.GetKind() != "Namespace" {
			objects = append(objects, o)
		}
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("hypershift %s printed nothing", strings.Join(args, " "))
	}
	return objects, nil
}

// Play does what a step says. It returns when it was accepted, or, for what is destroyed, when it is gone.
func (w *Work) Play(ctx context.Context, s plan.Step) error {
	switch s.Kind {
	case plan.Destroy:
		return w.Destroy(ctx, s.Cluster)
	case plan.Create:
		defer w.Made(s.Cluster)
	}
	return world.Until(ctx, w.Deadline(accepted), func(ctx context.Context) error {
		switch s.Kind {
		case plan.Create:
			return w.apply(ctx, w.manifests[s.Cluster]...)
		case plan.Upgrade:
			return w.upgrade(ctx, s.Cluster)
		case plan.Scale:
			return w.changePool(ctx, fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+s.Count))
		case plan.Roll:
			return w.rollPool(ctx)
		case plan.Fleet, plan.Package, plan.ClusterPackage:
			return w.apply(ctx, manifest(s))
		}
		return fmt.Errorf("nobody knows how to play %s", s.Kind)
	})
}

// apply may be done again when nobody knows whether it was done.
func (w *Work) apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		if err := w.World.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("applying %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// upgrade gives a hosted cluster the release that it has by its other name, which rolls everything.
func (w *Work) upgrade(ctx context.Context, cluster int) error {
	image, err := otherName(ctx, w.Release)
	if err != nil {
		return err
	}
	key := world.Key(cluster)
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	return w.World.Client.Patch(ctx, hc, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"release":{"image":%q}}}`, image)))
}

// otherName is another name of the same image: the digest of a tag, or a tag with a digest.
func otherName(ctx context.Context, image string) (string, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return "", fmt.Errorf("reading the name of the release image: %w", err)
	}
	is, err := remote.Head(ref, remote.WithContext(ctx))
	if err != nil {
		return "", fmt.Errorf("asking the registry for release image %s: %w", image, err)
	}
	if _, ok := ref.(name.Digest); !ok {
		return ref.Context().Digest(is.Digest.String()).String(), nil
	}
	tags, err := remote.List(ref.Context(), remote.WithContext(ctx))
	if err != nil {
		return "", fmt.Errorf("listing the tags of %s: %w", ref.Context(), err)
	}
	for _, tag := range tags {
		if d, err := remote.Head(ref.Context().Tag(tag), remote.WithContext(ctx)); err == nil && d.Digest == is.Digest {
			return ref.Context().Tag(tag).String(), nil
		}
	}
	return "", fmt.Errorf("no tag of %s is %s", ref.Context(), is.Digest)
}

// DestroyBound is how long a hosted cluster that nobody harms may take to go.
const DestroyBound = 3 * time.Minute

// Destroy deletes a hosted cluster and waits until nothing of it is left in the management cluster.
func (w *Work) Destroy(ctx context.Context, cluster int) error {
	w.Going(cluster)
	key := world.Key(cluster)
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err := w.gone(ctx, "HostedCluster "+key.String(), DestroyBound, hc, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: world.ControlPlane(cluster)}})
	w.World.Forget(cluster)
	return err
}

// muchLater is how long something that is late is waited for, to say how late it was.
const muchLater = 3 * time.Minute

// gone deletes the first object and waits until all are gone; Late is told when that isn't in time.
func (w *Work) gone(ctx context.Context, what string, bound time.Duration, first client.Object, more ...client.Object) error {
	begin, bound := time.Now(), w.Deadline(bound)
	deleted := false
	err := world.Until(ctx, bound+muchLater, func(ctx context.Context) error {
		if !deleted {
			if err := client.IgnoreNotFound(w.World.Client.Delete(ctx, first)); err != nil {
				return err
			}
			deleted = true
		}
		for _, o := range append([]client.Object{first}, more...) {
			if err := w.World.Gone(ctx, client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object)); err != nil {
				return err
			}
		}
		return nil
	})
	took := time.Since(begin).Round(time.Second)
	if took > 0 || err != nil { // otherwise it wasn't there
		w.World.Log.Info("deleted", "what", what, "took", took.String(), "bound", bound.String(), "error", text(err))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil || took > bound {
		w.Late(fmt.Sprintf("%s was deleted %s ago, allowed are %s: %s", what, took, bound, text(err)))
	}
	return nil
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// ignoreMissing is for objects whose kind may not even be there.
func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
