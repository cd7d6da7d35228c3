package sources

import (
	"errors"
	"fmt"

	"hcp.internal/platform/internal/kube/kubeconfig"
)

// tokenWebhookField is where the kubeconfig is named with which kube-apiserver asks about tokens.
const tokenWebhookField = "spec.configuration.authentication.webhookTokenAuthenticator.kubeConfig"

// checkKubeconfig says why kube-apiserver must not get a user's kubeconfig, which it would use with the files of the control plane.
func checkKubeconfig(key string, raw []byte) error {
	switch _, err := kubeconfig.Foreign(raw); {
	case errors.Is(err, kubeconfig.ErrNone):
		return fmt.Errorf("key %q holds no kubeconfig", key)
	case err != nil:
		return fmt.Errorf("key %q: %w", key, err)
	}
	return nil
}
