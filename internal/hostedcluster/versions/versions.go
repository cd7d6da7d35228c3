// Package versions tells users of a management cluster which releases its operator hosts, in a ConfigMap that the CLI and consoles read.
package versions

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/version"
)

const (
	// name is that of the ConfigMap, and of the key with the versions; internal/cli/version reads it.
	name      = "supported-versions"
	label     = "hypershift.openshift.io/supported-versions"
	serverKey = "server-version"
	// resync heals the ConfigMap when somebody changes or deletes it, and retry is after a failure.
	resync = time.Hour
	retry  = 10 * time.Second
)

// Publish keeps the ConfigMap of namespace, that of the operator, as it has to be until ctx ends.
func Publish(ctx context.Context, applier *apply.Applier, namespace string) {
	for ctx.Err() == nil {
		pause := wait.Jitter(resync, 0.1)
		if err := applier.Apply(ctx, configMap(namespace)); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "publishing the supported versions")
			pause = retry
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
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
