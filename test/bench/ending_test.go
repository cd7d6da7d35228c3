//go:build bench

package bench

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Stages of the end of a hosted cluster. Those of pods are "component gone".
const (
	stageDeleted     = "deletion asked for"
	stageTerminating = "namespace deleted"
	gone             = " gone"
	stageEnd         = "HostedCluster" + gone
)

var endOrder = []string{
	stageDeleted, "HostedControlPlane" + gone, stageTerminating,
	"control-plane-operator" + gone, "etcd" + gone, "kube-apiserver" + gone, "kube-controller-manager" + gone, "kube-scheduler" + gone,
	"hosted-cluster-config-operator" + gone, "namespace" + gone, stageEnd,
}

// destroyOne destroys a hosted cluster that is available, and returns when each stage of that was reached.
func (c *cluster) destroyOne(b *testing.B, name string) *stages {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), destroyTimeout)
	defer cancel()
	s := newStages(100)
	if err := followEnd(ctx, c.api, name, s); err != nil {
		b.Fatal(err)
	}
	if err := c.destroy(name); err != nil {
		b.Fatal(err)
	}
	if err := s.wait(ctx, func(stage string) bool { return stage == stageEnd }); err != nil {
		b.Fatalf("nobody told that %s is gone: %v", name, err)
	}
	return s
}

// followEnd watches everything that a stage of one deletion is read from.
func followEnd(ctx context.Context, c client.WithWatch, name string, s *stages) error {
	ns := controlPlane(name)
	for _, w := range []struct {
		list client.ObjectList
		seen string // stage of an object that has a time of deletion
		gone func(client.Object) string
		opts []client.ListOption
	}{
		{&hyperv1.HostedClusterList{}, stageDeleted, func(client.Object) string { return stageEnd }, named(namespace, name)},
		{&hyperv1.HostedControlPlaneList{}, "", func(client.Object) string { return "HostedControlPlane" + gone }, named(ns, name)},
		{metadata("Namespace"), stageTerminating, func(client.Object) string { return "namespace" + gone }, named("", ns)},
		{&corev1.PodList{}, "", func(pod client.Object) string { return pod.GetLabels()[hyperv1.ControlPlaneComponentLabel] + gone }, []client.ListOption{client.InNamespace(ns)}},
	} {
		events, err := c.Watch(ctx, w.list, w.opts...)
		if err != nil {
			return fmt.Errorf("watching %T: %w", w.list, err)
		}
		go func() {
			defer events.Stop()
			for event := range events.ResultChan() {
				obj, ok := event.Object.(client.Object)
				switch {
				case !ok:
				case event.Type == watch.Deleted:
					s.mark(w.gone(obj))
				case w.seen != "" && !obj.GetDeletionTimestamp().IsZero():
					s.mark(w.seen)
				}
			}
		}()
	}
	return nil
}
