package ignition

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/ignition/payload"
	"hcp.internal/platform/internal/ignition/tools"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
)

// maxMessage of a token Secret ends up in a condition of the NodePool.
const maxMessage = 4096

// report writes how the payload went, and the payload itself: under one key for pools that are upgraded in place, whose nodes get it from there, and under
// another for the rest, for lastGood.
func report(s *corev1.Secret, obs Observed) {
	reason, message := reasonAsExpected, "Payload generated successfully"
	var invalid *payload.InvalidError
	refused := errors.As(obs.Err, &invalid)
	switch {
	case obs.Err == nil:
	case refused:
		reason, message = hyperv1.NodePoolInvalidConfigReason, invalid.Error()
	case errors.Is(obs.Err, errOutdated):
		reason, message = reasonCloudConfigPending, obs.Err.Error()
	default:
		reason, message = hyperv1.NodePoolFailedToGetReason, obs.Err.Error()
	}
	s.Data[token.ReasonKey], s.Data[token.MessageKey] = []byte(reason), []byte(message[:min(len(message), maxMessage)])

	if s.Annotations[hyperv1.TokenSecretNodePoolUpgradeTypeAnnotation] != string(hyperv1.UpgradeTypeInPlace) {
		delete(s.Data, token.PayloadKey)
		switch {
		case refused:
			delete(s.Data, keyLast) // what is asked for now is something else
		case obs.Err == nil && len(obs.Data) > 0:
			keep(s, keyLast, obs.Data)
		}
		return
	}
	delete(s.Data, keyLast)
	if obs.Err != nil {
		return // what machines are being upgraded to stays until there is something better
	}
	if !keep(s, token.PayloadKey, obs.Data) {
		s.Data[token.ReasonKey] = []byte(hyperv1.NodePoolInvalidConfigReason)
		s.Data[token.MessageKey] = []byte("the payload does not fit into a Secret, which upgrades in place need: take files out of the MachineConfigs, or use upgradeType Replace")
	}
}

// keep stores a payload, unless it is too large, and says whether it did.
func keep(s *corev1.Secret, key string, data []byte) bool {
	if stored, err := decodeConfig(s.Data[key]); err == nil && stored == string(data) && len(s.Data[key]) > 0 {
		return true // also when another version of gzip would pack it otherwise
	}
	packed, err := encodePayload(data)
	if err != nil || len(packed) > maxStoredPayload {
		delete(s.Data, key)
		return false
	}
	s.Data[key] = packed
	return true
}

// maxStoredPayload leaves room for the other keys of a Secret, which may have 1 MiB.
const maxStoredPayload = 700 << 10

// reportRelease says on the HostedControlPlane whether the release has the images that machines are made with. Nobody else writes that condition.
func (r *Reconciler) reportRelease(ctx context.Context, generated error) error {
	c := conditions.True(string(hyperv1.IgnitionServerValidReleaseInfo), hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
	var lacking *tools.MissingImagesError
	switch {
	case errors.As(generated, &lacking):
		c = conditions.False(c.Type, hyperv1.MissingReleaseImagesReason, lacking.Error())
	case generated != nil:
		return nil //nolint:nilerr // because it says nothing of the release
	}
	// The control-plane-operator writes the same status; what it has just written is read again.
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		hcp, err := r.hostedControlPlane(ctx)
		if err != nil {
			return err
		}
		before := hcp.DeepCopy()
		c.ObservedGeneration = hcp.Generation
		if known := conditions.Get(hcp.Status.Conditions, c.Type); known != nil && known.Status == c.Status && known.Reason == c.Reason && known.Message == c.Message {
			return nil // a new generation alone is no news
		}
		conditions.Set(&hcp.Status.Conditions, r.Clock.Now(), c)
		return patch.Status(ctx, r.Client, before, hcp)
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reporting the release on the HostedControlPlane: %w", err)
	}
	return nil
}
