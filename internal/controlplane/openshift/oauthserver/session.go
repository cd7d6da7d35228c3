package oauthserver

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/controlplane/component"
)

// sessionKey holds what log-ins under way are signed and encrypted with; the lengths are those of its texts.
const (
	sessionKey           = "v4-0-config-system-session"
	authenticationLength = 64
	encryptionLength     = 32
)

// sessionSecrets is the file as the server reads it.
type sessionSecrets struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Secrets    []sessionPair `json:"secrets"`
}

type sessionPair struct {
	Authentication string `json:"authentication"`
	Encryption     string `json:"encryption"`
}

// adaptSession makes these secrets once. They are kept while they are good: others end every log-in under way. A preview has none, because what it
// shows must not become a secret.
func adaptSession(ctx component.WorkloadContext, secret *corev1.Secret) error {
	live := &corev1.Secret{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: secret.Name}, live)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading Secret %s: %w", secret.Name, err)
	}
	secret.ResourceVersion = live.ResourceVersion
	if goodSession(live.Data[sessionKey]) {
		secret.Data = map[string][]byte{sessionKey: live.Data[sessionKey]}
		return nil
	}
	file := sessionSecrets{APIVersion: "osin.config.openshift.io/v1", Kind: "SessionSecrets", Secrets: []sessionPair{}}
	if !ctx.Unsigned {
		file.Secrets = append(file.Secrets, sessionPair{randomText(authenticationLength), randomText(encryptionLength)})
	}
	raw, err := yaml.Marshal(file)
	if err != nil {
		return fmt.Errorf("encoding the session secrets: %w", err)
	}
	secret.Data = map[string][]byte{sessionKey: raw}
	return nil
}

// goodSession says whether a file holds secrets, none of them empty.
func goodSession(raw []byte) bool {
	var file sessionSecrets
	if yaml.Unmarshal(raw, &file) != nil || len(file.Secrets) == 0 {
		return false
	}
	for _, s := range file.Secrets {
		if s.Authentication == "" || s.Encryption == "" {
			return false
		}
	}
	return true
}

// randomText is a secret of so many characters that are safe in URLs.
func randomText(length int) string {
	raw := make([]byte, length) // more than are needed: four characters hold three bytes
	_, _ = rand.Read(raw)       // never fails: the process ends first
	return base64.RawURLEncoding.EncodeToString(raw)[:length]
}
