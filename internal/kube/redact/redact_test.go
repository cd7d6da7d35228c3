package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// hidings are places where a secret can be; each puts it there.
var hidings = map[string]func(secret string) map[string]any{
	"data of a Secret": func(s string) map[string]any {
		return object("Secret", "data", map[string]any{"anything": base64.StdEncoding.EncodeToString([]byte(s))})
	},
	"stringData of a Secret": func(s string) map[string]any {
		return object("Secret", "stringData", map[string]any{"anything": s})
	},
	"data of a Secret in a package": func(s string) map[string]any {
		secret := object("Secret", "data", map[string]any{"anything": base64.StdEncoding.EncodeToString([]byte(s))})
		return object("ObjectSet", "spec", map[string]any{"phases": []any{map[string]any{"objects": []any{map[string]any{"object": secret}}}}})
	},
	"stringData of a Secret in a package": func(s string) map[string]any {
		secret := object("Secret", "stringData", map[string]any{"anything": s})
		return object("ObjectSet", "spec", map[string]any{"phases": []any{map[string]any{"objects": []any{map[string]any{"object": secret}}}}})
	},
	"last applied configuration": func(s string) map[string]any {
		u := object("ConfigMap", "data", map[string]any{})
		u["metadata"].(map[string]any)["annotations"] = map[string]any{lastApplied: `{"data":{"x":"` + s + `"}}`, "keep": "this"}
		return u
	},
	"environment variable": func(s string) map[string]any {
		return pod(map[string]any{"env": []any{map[string]any{"name": "AWS_SECRET_ACCESS_KEY", "value": s}, map[string]any{"name": "PLAIN", "value": "x"}}})
	},
	"flag with its value": func(s string) map[string]any {
		return pod(map[string]any{"args": []any{"--token=" + s, "--v=2"}})
	},
	"flag before its value": func(s string) map[string]any {
		return pod(map[string]any{"args": []any{"--db-password", s, "--v=2"}})
	},
	"kubeconfig in a ConfigMap": func(s string) map[string]any {
		return configMap("kubeconfig", "users:\n- name: admin\n  user:\n    client-key-data: "+s+"\n    token: "+s+"\n")
	},
	"kubeconfig in a ConfigMap as JSON": func(s string) map[string]any {
		raw, _ := json.Marshal(map[string]any{"users": []any{map[string]any{"name": "admin", "user": map[string]any{"token": s, "password": s}}}})
		return configMap("kubeconfig", string(raw))
	},
	"JSON in JSON": func(s string) map[string]any {
		inner, _ := json.Marshal(map[string]any{"token": s})
		outer, _ := json.Marshal(map[string]any{"config": string(inner)})
		return configMap("x", string(outer))
	},
	"registry credentials in a ConfigMap": func(s string) map[string]any {
		return configMap("config.json", `{"auths":{"quay.io":{"auth":"`+s+`","email":"x"}}}`)
	},
	"encryption configuration": func(s string) map[string]any {
		return configMap("config.yaml", "providers:\n- aescbc:\n    keys:\n    - name: key1\n      secret: "+s+"\n")
	},
	"PEM key in a message": func(s string) map[string]any {
		return configMap("log", "loaded -----BEGIN RSA PRIVATE KEY-----\n"+s+"\n-----END RSA PRIVATE KEY----- at start")
	},
	"PEM key cut off": func(s string) map[string]any {
		return configMap("log", "loaded -----BEGIN PRIVATE KEY-----\n"+s)
	},
	"PEM key in base64": func(s string) map[string]any {
		return configMap("key", base64.StdEncoding.EncodeToString([]byte("-----BEGIN EC PRIVATE KEY-----\n"+s+"\n-----END EC PRIVATE KEY-----\n")))
	},
	"bearer token in a message": func(s string) map[string]any {
		return configMap("log", "GET /x Authorization: Bearer "+s+" 401")
	},
	"password in a URL": func(s string) map[string]any {
		return configMap("url", "proxy is https://user:"+url.QueryEscape(s)+"@proxy.example.com:3128/x")
	},
	"signed URL": func(s string) map[string]any {
		return configMap("url", "https://bucket/object?X-Amz-Date=1&X-Amz-Signature="+s+"&x=1")
	},
	"field of a custom resource": func(s string) map[string]any {
		return object("Widget", "spec", map[string]any{"auth": map[string]any{"password": s, "clientSecret": s}})
	},
	"compound fields of a package": func(s string) map[string]any {
		return object("Package", "spec", map[string]any{"config": map[string]any{"adminPassword": s, "dbPassword": s, "webhookToken": s, "smtp": map[string]any{"api_token": s}}})
	},
	"compound keys of a ConfigMap": func(s string) map[string]any {
		return object("ConfigMap", "data", map[string]any{"db-password": s, "DB_PASSWORD": s, "aws-secret-access-key": s, "signing_key": s})
	},
	"password in an annotation": func(s string) map[string]any {
		u := object("ConfigMap", "data", map[string]any{})
		u["metadata"].(map[string]any)["annotations"] = map[string]any{"example.com/admin-password": s}
		return u
	},
	"header": func(s string) map[string]any {
		return pod(map[string]any{"livenessProbe": map[string]any{"httpGet": map[string]any{"httpHeaders": []any{map[string]any{"name": "Authorization", "value": s}}}}})
	},
	"environment in a log": func(s string) map[string]any {
		return configMap("log", "starting with HOME=/root DB_PASSWORD="+s+" PATH=/bin")
	},
}

func object(kind, field string, value map[string]any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "visible-name", "namespace": "visible-namespace"}, field: value}
}

func configMap(key, value string) map[string]any {
	return object("ConfigMap", "data", map[string]any{key: value})
}

func pod(container map[string]any) map[string]any {
	container["name"] = "main"
	container["image"] = "visible/image:1"
	return object("Pod", "spec", map[string]any{"containers": []any{container}})
}

func TestObjectHidesSecrets(t *testing.T) {
	t.Parallel()
	for name, hide := range hidings {
		t.Run("When a secret is in "+name+" it should not be written", func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				g := NewWithT(t)
				// Long enough that it can't be part of something else by chance.
				secret := rapid.StringMatching(`[A-Za-z0-9+/]{20,44}`).Draw(t, "secret")
				u := &unstructured.Unstructured{Object: hide(secret)}
				Object(u)
				raw, err := yaml.Marshal(u.Object)
				g.Expect(err).NotTo(HaveOccurred())
				text := string(raw)
				g.Expect(text).NotTo(ContainSubstring(secret))
				for offset := range 3 { // of the alignment in base64
					encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(" ", offset) + secret))
					g.Expect(text).NotTo(ContainSubstring(encoded[4 : len(encoded)-4]))
				}
				g.Expect(text).To(ContainSubstring("visible-name"))
				g.Expect(text).To(ContainSubstring("visible-namespace"))
			})
		})
	}
}

func TestObjectKeepsTheRest(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	kept := map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "etcd-0", "annotations": map[string]any{
			"a": "b", "hypershift.openshift.io/kubelet-client-key": "SHA256:x", "hypershift.openshift.io/last-token-generation-time": "2026-11-21T10:00:00Z",
			"rbac.authorization.kubernetes.io/autoupdate": "true", "pull-secret-hash": "x",
		}},
		"spec": map[string]any{
			"containers": []any{map[string]any{
				"name": "etcd", "args": []any{"--key-file=/etc/etcd/tls/server.key", "--token-file", "/var/run/token", "--auto-tls=false"},
				"env": []any{
					map[string]any{"name": "ETCD_NAME", "value": "etcd-0"}, map[string]any{"name": "TOKEN_MINTER_IMAGE", "value": "r/i:1"},
					map[string]any{"name": "PASSWORD", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "db", "key": "password"}}},
				},
				"envFrom": []any{map[string]any{"secretRef": map[string]any{"name": "db-credentials"}}},
			}},
			"volumes": []any{
				map[string]any{"name": "client-tls", "secret": map[string]any{"secretName": "etcd-client-tls", "defaultMode": int64(416)}},
				map[string]any{"name": "token", "projected": map[string]any{"sources": []any{map[string]any{"serviceAccountToken": map[string]any{
					"path": "token", "audience": "api", "expirationSeconds": int64(3600), "tokenExpirationSeconds": "3600"}}}}},
			},
			"pullSecret":       map[string]any{"name": "pull-secret"},
			"imagePullSecrets": []any{map[string]any{"name": "pull-secret"}}, "imagePullSecret": "pull-secret", "automountServiceAccountToken": false,
			"passwordSecretRef": map[string]any{"name": "db", "key": "password"}, "credentialsSecretName": "db", "tokenSecretNamespace": "shop",
			"accessTokenInactivityTimeout": "5m", "tokenEndpoint": "https://issuer.example.com/token", "httpTokens": "required", "secureSecretsBackend": "secrets-manager",
			"encryptionKey": "arn:aws:kms:eu-central-1:123456789012:key/1234",
			"tolerations":   []any{map[string]any{"key": "node-role.kubernetes.io/infra"}},
		},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "message": `secret "etcd-client-tls" not found`}}, "startTime": "2026-11-21T10:00:00Z"},
	}
	before, err := yaml.Marshal(kept)
	g.Expect(err).NotTo(HaveOccurred())
	Object(&unstructured.Unstructured{Object: kept})
	after, err := yaml.Marshal(kept)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(after)).To(Equal(string(before)))
}

// hiddenInGoldens are keys whose value is hidden in what this repository renders: they hold secrets, or stand-ins for them.
var hiddenInGoldens = []string{"token", "password", "secret", "httpSecret", "credentials", "encryptionKey"}

func TestGoldensStayReadable(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var files []string
	for _, pattern := range []string{
		"cli/create/testdata/clouds/*.yaml", "cli/install/testdata/*.yaml", "hostedcluster/testdata/*/*.yaml", "configoperator/*/testdata/*/*.yaml", "platform/aws/testdata/*.yaml",
		"cli/render/testdata/openshift/golden/plain/*/*.yaml", "cli/render/testdata/golden/local-private-capi/*/*.yaml",
	} {
		found, err := filepath.Glob("../../" + pattern)
		g.Expect(err).NotTo(HaveOccurred())
		files = append(files, found...)
	}
	g.Expect(len(files)).To(BeNumerically(">", 200), "they moved")
	hidden := map[string][]string{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		for _, document := range strings.Split(string(raw), "\n---\n") {
			var before, after map[string]any
			if yaml.Unmarshal([]byte(document), &before) != nil || before["kind"] == "Secret" {
				continue // a list, or a text
			}
			g.Expect(yaml.Unmarshal([]byte(document), &after)).To(Succeed())
			Object(&unstructured.Unstructured{Object: after})
			compare(before, after, func(key string) { hidden[key] = append(hidden[key], file) })
		}
	}
	for key, in := range hidden {
		g.Expect(hiddenInGoldens).To(ContainElement(key), "in %s", in[0])
	}
}

// compare calls hid for each key whose value is hidden as a whole. A Secret has its own rule.
func compare(before, after any, hid func(key string)) {
	switch b := before.(type) {
	case map[string]any:
		a, _ := after.(map[string]any)
		if b["kind"] == "Secret" {
			return
		}
		for key, value := range b {
			// {name: …, value: …} has a rule of its own.
			if a[key] == redacted && value != redacted && !(key == "value" && b["name"] != nil) {
				hid(key)
			}
			compare(value, a[key], hid)
		}
	case []any:
		if a, ok := after.([]any); ok {
			for i := range b {
				compare(b[i], a[i], hid)
			}
		}
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"etcd-0 is not ready since 12:04:05Z":                "etcd-0 is not ready since 12:04:05Z",
		"--service-account-key-file=/etc/kubernetes/sa.pub":  "--service-account-key-file=/etc/kubernetes/sa.pub",
		"https://10.244.0.1:6443/api/v1/namespaces?limit=10": "https://10.244.0.1:6443/api/v1/namespaces?limit=10",
		"https://user:hunter2@proxy":                         "https://user:" + redacted + "@proxy",
		"token eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWIifQ.c2ln": "token " + redacted,
		"kubeadm join --token abcdef.0123456789abcdef":       "kubeadm join --token " + redacted,
		"key AKIAIOSFODNN7EXAMPLE used":                      "key " + redacted + " used",
		`"password":"hunter2","user":"x"`:                    `"password":` + redacted + `,"user":"x"`,
	} {
		NewWithT(t).Expect(Text(in)).To(Equal(want))
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "token: x", "-----BEGIN PRIVATE KEY-----", `{"auth":"x"}`, "https://a:b@c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := Text(text)
		if len(once) > 20*len(text)+20 {
			t.Errorf("%d bytes became %d", len(text), len(once))
		}
		u := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "data": map[string]any{text: fmt.Sprint(text)}}}
		Object(u) // must not panic
	})
}
