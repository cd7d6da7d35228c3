// Package redact hides what nobody but its users should see, in objects and texts that are shown or sent on.
package redact

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// redacted stands for what isn't shown.
const redacted = "REDACTED"

// lastApplied holds a whole object as kubectl sent it, Secrets included.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Object removes from an object what nobody but its users should see: the data of Secrets, environment variables and
// arguments whose names say that they are secret, and keys, tokens and passwords in any text. It changes u.
//
// It errs on the side of hiding. Names, keys and sizes stay, because they are what a person looks for.
func Object(u *unstructured.Unstructured) {
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	if annotations := u.GetAnnotations(); annotations[lastApplied] != "" {
		delete(annotations, lastApplied)
		u.SetAnnotations(annotations)
	}
	redactSecret(u.Object)
	for key, value := range u.Object {
		u.Object[key] = redactValue(value)
	}
}

// redactSecret hides what a Secret holds. Packages have Secrets inside other objects, as they are to be applied.
func redactSecret(m map[string]any) {
	if m["kind"] != "Secret" || m["apiVersion"] != "v1" {
		return
	}
	for _, field := range []string{"data", "stringData"} {
		values, _ := m[field].(map[string]any)
		for key, value := range values {
			values[key] = fmt.Sprintf("%s (%d characters)", redacted, len(fmt.Sprint(value)))
		}
	}
}

// redactValue returns v with secrets hidden, at any depth.
func redactValue(v any) any {
	switch v := v.(type) {
	case string:
		return Text(v)
	case []any:
		for i := range v {
			v[i] = redactValue(v[i])
		}
		redactArguments(v)
		return v
	case map[string]any:
		redactMap(v)
		return v
	}
	return v
}

func redactMap(m map[string]any) {
	redactSecret(m)
	// An environment variable, or a header: {name: …, value: …}.
	if name, ok := m["name"].(string); ok && namesSecret(name) {
		if value, ok := m["value"].(string); ok && value != "" {
			m["value"] = redacted
		}
	}
	for key, value := range m {
		// The name of something in AWS, such as of the key that encrypts a volume, is no secret.
		if text, ok := value.(string); ok && keyNamesSecret(key) && text != "" && !strings.HasPrefix(text, "arn:") {
			m[key] = redacted
			continue
		}
		m[key] = redactValue(value)
	}
}

// redactArguments hides the value behind a flag of its own: ["--token", "abc"]. "--token=abc" is text like any other.
func redactArguments(list []any) {
	for i := 0; i+1 < len(list); i++ {
		flag, ok := list[i].(string)
		if !ok || !strings.HasPrefix(flag, "-") || strings.Contains(flag, "=") || !namesSecret(flag) {
			continue
		}
		if value, ok := list[i+1].(string); ok && !strings.HasPrefix(value, "-") {
			list[i+1] = redacted
		}
	}
}

// keyNamesSecret says whether a field, or a key of somebody's own such as those of a ConfigMap or of a package's configuration, holds a secret. Labels and
// annotations say much about secrets and hold none, unless it is a password.
func keyNamesSecret(key string) bool {
	if secretField.MatchString(key) {
		return true
	}
	if _, name, qualified := strings.Cut(key, "/"); qualified {
		return passwordName.MatchString(name) && namesSecret(name)
	}
	// "key" alone is a key in a Secret, or that of a label or a taint.
	return namesSecret(key) && !strings.EqualFold(key, "key") && !aboutField.MatchString(key)
}

// namesSecret says whether an environment variable or a flag of this name holds a secret.
func namesSecret(name string) bool {
	return secretName.MatchString(name) && !aboutSecret.MatchString(name)
}

var (
	// secretName finds names of environment variables and flags whose value is secret. KEY alone would hide harmless paths
	// and selectors, so it needs a companion.
	secretName = regexp.MustCompile(`(?i)(passw(or)?d|passphrase|token|secret|credential|bearer|authorization|private[-_]?key|access[-_]?key|api[-_]?key|encryption[-_]?key|client[-_]?key|signing[-_]?key|_key$|^key$)`)

	// aboutSecret finds those that only say where a secret is, or how it is made.
	aboutSecret = regexp.MustCompile(`(?i)(file|path|dir|name|namespace|image|ttl|expiration|enabled|type|ref|mode)s?$`)

	passwordName = regexp.MustCompile(`(?i)(passw(or)?d|passphrase)`)

	// aboutField finds fields that, beside those of aboutSecret, say something of a secret: fields of Kubernetes and of clouds, which people look for.
	aboutField = regexp.MustCompile(`(?i)((time|seconds|timeout|age|class|backend|endpoint|ur[il]|issuer|audience|policy|version|secret[-_]?hash)(s|es)?|http[-_]?tokens|pull[-_]?secrets?)$`)

	// secretField finds fields that hold a secret themselves, wherever they are: those of kubeconfigs, of encryption
	// configurations, of registry credentials. Names of Secrets (secretName, secretRef, …) are no secrets.
	secretField = regexp.MustCompile(`(?i)^(password|token|client-key-data|clientKeyData|id-token|refresh-token|access-token|auth|identitytoken|registrytoken|bearerToken|clientSecret|client_secret|privateKey|private_key|secretKey|secret_key|apiKey|api_key|.*\.dockerconfigjson|.*\.dockercfg)$`)
)

// textRules find secrets in the middle of text: logs, ConfigMaps, arguments, messages. What they find is
// replaced by the text behind them.
var textRules = []struct {
	find *regexp.Regexp
	with string
}{
	// PEM private keys, also cut off, and with line ends escaped in JSON.
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|\z)`), redacted},
	// The same in base64: "-----BEGIN" followed by anything.
	{regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=]*(?:UFJJVkFURS|BSSVZBVE|QUklWQVRF)[A-Za-z0-9+/=]*`), redacted},
	// JSON web tokens.
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), redacted},
	// Authorization: Bearer abc
	{regexp.MustCompile(`(?i)((?:bearer|basic)\s+)[A-Za-z0-9+/=._~-]{8,}`), "${1}" + redacted},
	// Bootstrap tokens of Kubernetes.
	{regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), redacted},
	// Keys of clouds and registries.
	{regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), redacted},
	{regexp.MustCompile(`\b(?:ghp|gho|ghu|ghs|ghr|github_pat|glpat)[_-][A-Za-z0-9_-]{16,}\b`), redacted},
	// https://user:password@host
	{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@"']*:)[^/\s@"']+@`), "${1}" + redacted + "@"},
	// Signatures in URLs.
	{regexp.MustCompile(`(?i)([?&](?:X-Amz-Signature|X-Amz-Security-Token|X-Amz-Credential|X-Goog-Signature|Signature|sig|access_token|token)=)[^&\s"']+`), "${1}" + redacted},
	// password: abc, "token":"abc", --client-secret=abc, AWS_SECRET_ACCESS_KEY=abc.
	{regexp.MustCompile(`(?i)((?:^|[^A-Za-z0-9])["']?(?:[A-Za-z0-9_.-]*(?:password|passwd|passphrase|client[-_]?secret|secret[-_]?access[-_]?key|private[-_]?key|api[-_]?key|encryption[-_]?key|[-_ ]token|[-_]key-data)|client-key-data|token|secret|auth|identitytoken)["']?[ \t]*[:=][ \t]*)(?:"[^"\n]+"|'[^'\n]+'|[^\s"',;}{\]\[][^\s"',;}]*)`), "${1}" + redacted},
	// The same inside JSON that is inside JSON.
	{regexp.MustCompile(`(?i)(\\"(?:password|token|secret|auth|identitytoken|client-key-data)\\"\s*:\s*)\\"[^"\\]+\\"`), "${1}" + redacted},
}

// Text hides secrets in text.
func Text(text string) string {
	for _, rule := range textRules {
		text = rule.find.ReplaceAllString(text, rule.with)
	}
	return text
}
