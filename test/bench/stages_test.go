//go:build bench

package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/pki"
)

// Stages of a hosted cluster, in the order in which they are printed. Those of pods are "component created" and so on.
const (
	stageApplied      = "HostedCluster"
	stageNamespace    = "namespace"
	stageControlPlane = "HostedControlPlane"
	stageCertificates = "first certificate"
	stageAvailable    = "Available=True"

	created = " created"
	ready   = " ready"
)

var stageOrder = []string{
	stageApplied, stageNamespace, stageControlPlane,
	"control-plane-operator" + created, "control-plane-operator" + ready,
	stageCertificates,
	"etcd" + created, "etcd" + ready,
	"kube-apiserver" + created, "kube-apiserver" + ready,
	"kube-controller-manager" + ready, "kube-scheduler" + ready, "hosted-cluster-config-operator" + ready,
	stageAvailable,
}

// stages are the times at which watches showed them: times in objects have whole seconds only.
type stages struct {
	mu sync.Mutex
	at map[string]time.Time
	// reached gets the name of each stage once. It has room for all, so that watches never wait.
	reached chan string
}

func newStages(room int) *stages {
	return &stages{at: map[string]time.Time{}, reached: make(chan string, room)}
}

func (s *stages) mark(name string) { s.markAt(name, time.Now()) }

// markAt is for what was seen by others, on the clock of the same machine.
func (s *stages) markAt(name string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.at[name]; ok {
		return
	}
	s.at[name] = now
	select {
	case s.reached <- name:
	default: // more than anybody waits for
	}
}

// since is how many seconds after from a stage was reached; false when one of them was not.
func (s *stages) since(from, name string) (float64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	begin, ok := s.at[from]
	end, done := s.at[name]
	return end.Sub(begin).Seconds(), ok && done
}

// when is the time of a stage; zero when it was not reached.
func (s *stages) when(name string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[name]
}

// wait returns when done says so, which is asked after each stage.
func (s *stages) wait(ctx context.Context, done func(name string) bool) error {
	for {
		select {
		case name := <-s.reached:
			if done(name) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow calls see with each state of the objects that list describes, until ctx ends.
func follow(ctx context.Context, c client.WithWatch, list client.ObjectList, see func(client.Object), opts ...client.ListOption) error {
	w, err := c.Watch(ctx, list, opts...)
	if err != nil {
		return fmt.Errorf("watching %T: %w", list, err)
	}
	go func() {
		defer w.Stop()
		for event := range w.ResultChan() {
			obj, ok := event.Object.(client.Object)
			if ok && (event.Type == watch.Added || event.Type == watch.Modified) && obj.GetDeletionTimestamp().IsZero() {
				see(obj)
			}
		}
	}()
	return nil
}

// followOne watches everything that a stage of one hosted cluster is read from.
func followOne(ctx context.Context, c client.WithWatch, name string, s *stages) error {
	ns := controlPlane(name)
	for _, w := range []struct {
		list client.ObjectList
		see  func(client.Object)
		opts []client.ListOption
	}{
		{&hyperv1.HostedClusterList{}, func(obj client.Object) {
			s.mark(stageApplied)
			if available(obj) {
				s.mark(stageAvailable)
			}
		}, named(namespace, name)},
		{metadata("Namespace"), func(client.Object) { s.mark(stageNamespace) }, named("", ns)},
		{&hyperv1.HostedControlPlaneList{}, func(client.Object) { s.mark(stageControlPlane) }, named(ns, name)},
		{metadata("Secret"), func(client.Object) { s.mark(stageCertificates) }, named(ns, pki.RootCA)},
		{&corev1.PodList{}, s.seePod, []client.ListOption{client.InNamespace(ns)}},
	} {
		if err := follow(ctx, c, w.list, w.see, w.opts...); err != nil {
			return err
		}
	}
	return nil
}

func (s *stages) seePod(obj client.Object) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	component := pod.Labels[hyperv1.ControlPlaneComponentLabel]
	s.mark(component + created)
	for _, cond := range pod.Status.Conditions {
		if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
			s.mark(component + ready)
		}
	}
}

func available(obj client.Object) bool {
	hc, ok := obj.(*hyperv1.HostedCluster)
	return ok && meta.IsStatusConditionTrue(hc.Status.Conditions, hyperv1.HostedClusterAvailable)
}

// metadata watches a core kind without contents.
func metadata(kind string) client.ObjectList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	return list
}

func named(ns, name string) []client.ListOption {
	opts := []client.ListOption{client.MatchingFields{"metadata.name": name}}
	if ns != "" {
		opts = append(opts, client.InNamespace(ns))
	}
	return opts
}
