package kasbootstrap

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"hcp.internal/platform/internal/sidecar/kubeapi"
	"hcp.internal/platform/internal/testenv"
)

const manifests = `# a comment is no object
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: NAME
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:hosted-cluster-config"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: default}
data: {key: value}
`

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRun(t *testing.T) {
	env := testenv.Start(t)
	connect := func() (*kubeapi.Client, error) { return kubeapi.FromKubeconfigBytes(env.Kubeconfig(t)) }
	t.Run("When the API server comes later it should apply every document, and again without harm", func(t *testing.T) {
		g := NewWithT(t)
		name := env.Namespace(t) // unique
		objects, err := Load(folder(t, map[string]string{"a.yaml": string(bytes.ReplaceAll([]byte(manifests), []byte("NAME"), []byte(name))), "README.md": "no manifest"}))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(objects).To(HaveLen(2))
		calls := 0
		b := Bootstrap{Log: &bytes.Buffer{}, Connect: func() (*kubeapi.Client, error) {
			if calls++; calls == 1 {
				return nil, errors.New("connection refused")
			}
			return connect()
		}}
		g.Expect(b.Run(t.Context(), objects)).To(Succeed())
		g.Expect(b.Run(t.Context(), objects)).To(Succeed())
		client, err := connect()
		g.Expect(err).NotTo(HaveOccurred())
		var got struct {
			Data map[string]string `json:"data"`
		}
		g.Expect(client.Get(t.Context(), "/api/v1/namespaces/default/configmaps/"+name, &got)).To(Succeed())
		g.Expect(got.Data).To(HaveKeyWithValue("key", "value"))
		g.Expect(client.Get(t.Context(), "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/"+name, nil)).To(Succeed())
	})
	t.Run("When a kind isn't served it should apply the rest and then say what is missing", func(t *testing.T) {
		g := NewWithT(t)
		name := env.Namespace(t)
		objects, err := Load(folder(t, map[string]string{
			"a.yaml": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}",
			"b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}",
		}))
		g.Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		log, ended := gbytes.NewBuffer(), make(chan error, 1)
		go func() { ended <- Bootstrap{Log: log, Connect: connect}.Run(ctx, objects) }()
		g.Eventually(log).Should(gbytes.Say("applying Thing"))
		cancel()
		g.Eventually(ended).Should(Receive(&err))
		g.Expect(err).To(MatchError(context.Canceled))
		g.Expect(err).To(MatchError(ContainSubstring("1 of 2 are not there yet")))
		g.Expect(err).To(MatchError(ContainSubstring("applying Thing x of a.yaml")))
		client, err := connect()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(client.Get(t.Context(), "/api/v1/namespaces/default/configmaps/"+name, nil)).To(Succeed())
	})
}

func TestLoad(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"When the folder has no manifest it should name the flag":      {nil, "--resources-path"},
		"When a document has no name it should say which one":          {map[string]string{"a.yaml": "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\nkind: B"}, "document 2: apiVersion, kind and metadata.name must be set"},
		"When a document is no YAML it should say so":                  {map[string]string{"a.yaml": "\t{"}, "parsing document 1"},
		"When a document is a list it should say that it is no object": {map[string]string{"a.yaml": "[1]"}, "parsing document 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(folder(t, tc.files))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(manifests))
	f.Add([]byte("---\n---\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		objects, err := parse(raw, "f")
		if err == nil {
			for _, o := range objects {
				if o.Kind == "" || len(o.raw) == 0 {
					t.Fatalf("an object without content: %+v", o)
				}
			}
		}
	})
}
