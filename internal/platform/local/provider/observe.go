package provider

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "hcp.internal/api/infrastructure/v1beta1"
)

// bootstrapState says what is known of a machine's user data.
type bootstrapState string

const (
	bootstrapUnnamed bootstrapState = "unnamed" // the Machine names no Secret
	bootstrapMissing bootstrapState = "missing" // there is no such Secret
	bootstrapInvalid bootstrapState = "invalid" // it has no key "value", or an empty one
	bootstrapReady   bootstrapState = "ready"
)

// observed is everything that decides on a LocalMachine.
type observed struct {
	local     *infrav1.LocalMachine
	machine   *clusterv1.Machine // nil: no owner yet
	cluster   *clusterv1.Cluster // nil: none
	pod       *corev1.Pod        // nil: none of this name
	bootstrap bootstrapState
	secret    string // name of the Secret with user data
	placement placement
	// orphaned: the Machine that it was made for will never be; orphanIn is when that can be said, 0: not by the passing of time.
	orphaned bool
	orphanIn time.Duration
}

// paused tells whether somebody wants the machine left alone.
func (o observed) paused() bool {
	_, annotated := o.local.Annotations[pausedAnnotation]
	return annotated || (o.cluster != nil && ptr.Deref(o.cluster.Spec.Paused, false))
}

// ours tells whether the pod is the one of this machine, and not another one of the same name.
func (o observed) ours() bool {
	return o.pod != nil && metav1.IsControlledBy(o.pod, o.local) && (o.local.Status.PodUID == "" || o.local.Status.PodUID == string(o.pod.UID))
}

// observe reads all of it. live reads past the cache: from it come Secrets, which must not be cached, and a pod that the cache
// doesn't know, because making a second one or giving up on a machine by mistake can't be undone.
func observe(ctx context.Context, cached, live client.Reader, local *infrav1.LocalMachine, now time.Time) (observed, error) {
	obs := observed{local: local, bootstrap: bootstrapUnnamed}
	pod := &corev1.Pod{}
	err := cached.Get(ctx, client.ObjectKeyFromObject(local), pod)
	if apierrors.IsNotFound(err) {
		err = live.Get(ctx, client.ObjectKeyFromObject(local), pod)
	}
	switch {
	case err == nil:
		obs.pod = pod
	case !apierrors.IsNotFound(err):
		return obs, fmt.Errorf("reading the pod %s: %w", client.ObjectKeyFromObject(local), err)
	}
	if obs.machine, err = ownerMachine(ctx, cached, local); err != nil {
		return obs, err
	}
	name := local.Labels[clusterLabel]
	if obs.machine != nil {
		name = obs.machine.Spec.ClusterName
	}
	if name != "" {
		cluster := &clusterv1.Cluster{}
		switch err := cached.Get(ctx, client.ObjectKey{Namespace: local.Namespace, Name: name}, cluster); {
		case err == nil:
			obs.cluster = cluster
		case !apierrors.IsNotFound(err):
			return obs, fmt.Errorf("reading the Cluster %s/%s: %w", local.Namespace, name, err)
		}
	}
	if err := obs.observeOrphan(ctx, live, now); err != nil {
		return obs, err
	}
	return obs, obs.observeBootstrap(ctx, live)
}

// orphanAfter is how long Cluster API has to make the Machine of a LocalMachine. It makes both in one go, a MachineSet's LocalMachine first;
// when its manager dies in between, the next one begins with a new pair and nobody ever asks for the first LocalMachine again. Longer than any
// pass may take whose requests are answered late.
const orphanAfter = 2 * time.Minute

// observeOrphan finds out whether the LocalMachine was left behind so.
func (o *observed) observeOrphan(ctx context.Context, live client.Reader, now time.Time) error {
	ofSet := slices.ContainsFunc(o.local.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == "MachineSet" && groupOf(r.APIVersion) == clusterv1.GroupVersion.Group
	})
	claimed := slices.ContainsFunc(o.local.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "Machine" })
	if !ofSet || claimed || o.pod != nil || o.local.Status.PodUID != "" || !o.local.DeletionTimestamp.IsZero() {
		return nil
	}
	if left := o.local.CreationTimestamp.Add(orphanAfter).Sub(now); left > 0 {
		o.orphanIn = left
		return nil
	}
	list := &clusterv1.MachineList{}
	if err := live.List(ctx, list, client.InNamespace(o.local.Namespace)); err != nil {
		return fmt.Errorf("listing Machines in %s: %w", o.local.Namespace, err)
	}
	o.orphaned = !slices.ContainsFunc(list.Items, func(m clusterv1.Machine) bool { return m.Spec.InfrastructureRef.Name == o.local.Name })
	return nil
}

func ownerMachine(ctx context.Context, c client.Reader, local *infrav1.LocalMachine) (*clusterv1.Machine, error) {
	for _, ref := range local.OwnerReferences {
		if ref.Kind != "Machine" || groupOf(ref.APIVersion) != clusterv1.GroupVersion.Group {
			continue
		}
		m := &clusterv1.Machine{}
		switch err := c.Get(ctx, client.ObjectKey{Namespace: local.Namespace, Name: ref.Name}, m); {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("reading the Machine %s/%s: %w", local.Namespace, ref.Name, err)
		case m.UID == ref.UID:
			return m, nil
		}
	}
	return nil, nil
}

func groupOf(apiVersion string) string {
	for i := range apiVersion {
		if apiVersion[i] == '/' {
			return apiVersion[:i]
		}
	}
	return ""
}

// observeBootstrap looks at the user data only while the machine has still to be made.
func (o *observed) observeBootstrap(ctx context.Context, live client.Reader) error {
	if o.machine == nil || o.machine.Spec.Bootstrap.DataSecretName == nil || *o.machine.Spec.Bootstrap.DataSecretName == "" {
		return nil
	}
	o.secret = *o.machine.Spec.Bootstrap.DataSecretName
	o.bootstrap = bootstrapReady
	if o.pod != nil || o.local.Status.PodUID != "" {
		return nil
	}
	secret := &corev1.Secret{}
	switch err := live.Get(ctx, client.ObjectKey{Namespace: o.local.Namespace, Name: o.secret}, secret); {
	case apierrors.IsNotFound(err):
		o.bootstrap = bootstrapMissing
	case err != nil:
		return fmt.Errorf("reading the Secret %s/%s with user data: %w", o.local.Namespace, o.secret, err)
	case len(secret.Data[userDataKey]) == 0:
		o.bootstrap = bootstrapInvalid
	}
	return nil
}
