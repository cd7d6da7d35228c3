package olm

import (
	"fmt"
	"math/big"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// NewCollectProfiles makes olm-collect-profiles, which keeps profiles of the operators' memory, once a day.
func NewCollectProfiles() *component.WorkloadComponent {
	const name = "olm-collect-profiles"
	return component.NewCronJobComponent(name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithAssetDir("assets/"+name).
		WithPredicate(kit.NotOnPlatform(hyperv1.IBMCloudPlatform)).
		WithAdaptFunction(func(ctx component.WorkloadContext, job *batchv1.CronJob) error {
			job.Spec.Schedule = schedule(ctx.HCP.Namespace)
			return nil
		}).
		// The job itself fills it in.
		WithManifestAdapter("secret.yaml", component.ReconcileExisting(), component.AdaptManifest(emptyPair)).
		Build()
}

// schedule is a minute of the day that depends on the namespace, so that not all control planes do it at once.
func schedule(namespace string) string {
	n := new(big.Int).SetBytes([]byte(namespace))
	mod := func(m int64) int64 { return new(big.Int).Mod(n, big.NewInt(m)).Int64() }
	return fmt.Sprintf("%d %d * * *", mod(60), mod(24))
}

// emptyPair gives a Secret the keys that one of its type must have.
func emptyPair(_ component.WorkloadContext, secret *corev1.Secret) error {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if _, ok := secret.Data[key]; !ok {
			secret.Data[key] = []byte{}
		}
	}
	return nil
}
