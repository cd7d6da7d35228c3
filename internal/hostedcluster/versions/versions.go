// Package versions tells users of a management cluster which releases its operator hosts, in a ConfigMap that the CLI and consoles read.
package versions

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/sleep"
	"hcp.internal/platform/internal/version"
)

const (
	// name is that of the ConfigMap, and of the key with the versions; internal/cli/version reads it.
	name      = "supported-versions"
	label     = "hypershift.openshift.io/supported-versions"
	serverKey = "server-version"
	// resync is how long the ConfigMap is watched until it is looked at anew, and retry is after a failure.
	resync = time.Hour
	retry  = 10 * time.Second
	// gap is the least time between two looks at it: somebody who writes it all the time doesn't keep us busy.
	gap = time.Second
)

// Publish keeps the ConfigMap of namespace, that of the operator, as it has to be until ctx ends: also when somebody changes or deletes it. c has no cache.
func Publish(ctx context.Context, c client.WithWatch, namespace string) {
	applier := apply.New(c, names.HypershiftOperator)
	for ctx.Err() == nil {
		if err := keep(ctx, c, applier, namespace); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "publishing the supported versions")
			_ = sleep.For(ctx, retry)
		}
		_ = sleep.For(ctx, gap)
	}
}

// keep writes the ConfigMap, and returns once it is another one than ours, after a while at the latest, or when the watch ends. The watch is there before it
// is written: what happens right after that is seen, too.
func keep(ctx context.Context, c client.WithWatch, applier *apply.Applier, namespace string) error {
	w, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return fmt.Errorf("watching ConfigMap %s/%s: %w", namespace, name, err)
	}
	defer w.Stop()
	if err := applier.Apply(ctx, configMap(namespace)); err != nil {
		return err
	}
	over := time.After(wait.Jitter(resync, 0.1))
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-over:
			return nil
		case event, open := <-w.ResultChan():
			cm, ok := event.Object.(*corev1.ConfigMap)
			if !open || !ok || event.Type == watch.Deleted || !maps.Equal(cm.Data, configMap(namespace).Data) || cm.Labels[label] != "true" {
				return nil
			}
		}
	}
}

// configMap lists the minors that are hosted, newest first: those of OpenShift, then those of Kubernetes.
func configMap(namespace string) *corev1.ConfigMap {
	raw, err := json.Marshal(map[string][]string{"versions": append(release.Supported(), release.SupportedKubernetes()...)})
	if err != nil {
		panic(err) // strings can be encoded
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{label: "true"}},
		Data:       map[string]string{name: string(raw), serverKey: version.Commit(), version.ServerKey: version.Semver()},
	}
}
