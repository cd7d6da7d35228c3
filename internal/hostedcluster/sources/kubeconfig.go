package sources

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
)

// tokenWebhookField is where the kubeconfig is named with which kube-apiserver asks about tokens.
const tokenWebhookField = "spec.configuration.authentication.webhookTokenAuthenticator.kubeConfig"

// checkKubeconfig says why kube-apiserver must not get a user's kubeconfig. It would run the program that one names, and send the content of a file of its
// own, such as the key that signs tokens, to whatever server the kubeconfig names.
func checkKubeconfig(key string, raw []byte) error {
	config, err := clientcmd.Load(raw)
	if err != nil {
		return fmt.Errorf("key %q holds no kubeconfig", key) // the parser's message may quote it
	}
	for _, name := range slices.Sorted(maps.Keys(config.AuthInfos)) {
		if user := config.AuthInfos[name]; user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" {
			return fmt.Errorf("key %q: user %.100q has credentials that a program or a file gives: put a token or a certificate into the kubeconfig", key, name)
		}
	}
	return nil
}
