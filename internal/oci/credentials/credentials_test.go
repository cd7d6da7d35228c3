package credentials_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"hcp.internal/platform/internal/oci/credentials"
)

// holding is the content of a pull secret with a user for each key, who is called like the key.
func holding(keys ...string) []byte {
	auths := map[string]any{}
	for _, k := range keys {
		auths[k] = map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(k + ":secret"))}
	}
	raw, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		panic(err)
	}
	return raw
}

// users are those that are tried for a repository; "" is anonymous.
func users(k credentials.Keyring, repository string) []string {
	var out []string
	for _, a := range k.For(repository) {
		config, err := a.Authorization()
		if err != nil {
			panic(err)
		}
		user, _, _ := strings.Cut(config.Username, ":")
		out = append(out, user)
	}
	return out
}

func TestFor(t *testing.T) {
	for name, tc := range map[string]struct {
		keys       []string
		repository string
		want       []string
	}{
		"When the registry is the same it should fit":                           {keys: []string{"quay.io"}, repository: "quay.io/a/b", want: []string{"quay.io", ""}},
		"When a key is a parent path it should fit":                             {keys: []string{"quay.io/a"}, repository: "quay.io/a/b", want: []string{"quay.io/a", ""}},
		"When a registry of one word has another port it should not fit":        {keys: []string{"reg:5000"}, repository: "reg:5001/a", want: []string{""}},
		"When nothing fits it should ask anonymously":                           {keys: []string{"quay.io"}, repository: "ghcr.io/a", want: []string{""}},
		"When several fit it should begin with the most specific":               {keys: []string{"quay.io", "quay.io/org", "quay.io/org/app"}, repository: "quay.io/org/app", want: []string{"quay.io/org/app", "quay.io/org", "quay.io", ""}},
		"When a path only begins alike it should not fit":                       {keys: []string{"quay.io/org"}, repository: "quay.io/organization/app", want: []string{""}},
		"When a key is a pattern it should fit one part of a name":              {keys: []string{"*.example.com"}, repository: "a.example.com/x", want: []string{"*.example.com", ""}},
		"When a pattern has fewer parts it should not fit":                      {keys: []string{"*.example.com"}, repository: "a.b.example.com/x", want: []string{""}},
		"When a port differs it should not fit":                                 {keys: []string{"quay.io:443"}, repository: "quay.io:5000/x", want: []string{""}},
		"When a key is one of Docker's it should fit the library's name for it": {keys: []string{"docker.io"}, repository: "index.docker.io/library/nginx", want: []string{"docker.io", ""}},
		"When a key is no pattern at all it should not fit":                     {keys: []string{"[quay.io"}, repository: "quay.io/x", want: []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			k, err := credentials.Parse(holding(tc.keys...))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(users(k, tc.repository)).To(Equal(tc.want))
		})
	}
	t.Run("When a key has a scheme and a version of the API it should fit without", func(t *testing.T) {
		k, err := credentials.Parse([]byte(`{"auths":{"https://index.docker.io/v1/":{"username":"u","password":"p"}}}`))
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(users(k, "index.docker.io/library/nginx")).To(Equal([]string{"u", ""}))
	})
	t.Run("When an entry is empty it should be anonymous, and no other be tried first", func(t *testing.T) {
		k, err := credentials.Parse([]byte(`{"auths":{"quay.io/a":{},"quay.io":{"username":"u","password":"p"}}}`))
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(users(k, "quay.io/a")).To(Equal([]string{"", "u", ""}))
	})
}

func TestAdd(t *testing.T) {
	secret := func(kind corev1.SecretType, key string, data []byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pull"}, Type: kind, Data: map[string][]byte{key: data}}
	}
	t.Run("When secrets of both types are added it should know what both hold", func(t *testing.T) {
		g := NewWithT(t)
		var k credentials.Keyring
		g.Expect(k.Add(secret(corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, holding("quay.io")))).To(Succeed())
		g.Expect(k.Add(secret(corev1.SecretTypeDockercfg, corev1.DockerConfigKey, []byte(`{"quay.io/org":{"username":"old","password":"p"}}`)))).To(Succeed())
		g.Expect(k.Add(secret(corev1.SecretTypeOpaque, "x", []byte("y")))).To(Succeed())
		g.Expect(users(k, "quay.io/org/app")).To(Equal([]string{"old", "quay.io", ""}))
	})
	for name, content := range map[string]string{
		"no JSON":                           "hunter2",
		"JSON without auths":                `{"quay.io":{"auth":"aHVudGVyMg=="}}`,
		"an auth that is no base64":         `{"auths":{"quay.io":{"auth":"hunter2!"}}}`,
		"an auth that is no user with word": `{"auths":{"quay.io":{"auth":"aHVudGVyMg=="}}}`,
		"more than a Secret can":            `{"auths":{"hunter2":{"username":"` + strings.Repeat("x", 1<<20) + `"}}}`,
	} {
		t.Run("When a secret holds "+name+" it should name it and the remedy, and nothing of its content", func(t *testing.T) {
			g := NewWithT(t)
			k, err := credentials.Parse(holding("quay.io"))
			g.Expect(err).NotTo(HaveOccurred())
			err = k.Add(secret(corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, []byte(content)))
			g.Expect(err).To(MatchError(credentials.ErrMalformed))
			g.Expect(err).To(MatchError(And(HavePrefix("Secret ns/pull: malformed pull secret: "), HaveSuffix(credentials.Remedy))))
			g.Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
			g.Expect(err.Error()).NotTo(ContainSubstring("aHVudGVyMg"))
			g.Expect(users(k, "quay.io/a")).To(Equal([]string{"quay.io", ""}), "what was known stays")
			g.Expect(credentials.Validate([]byte(content))).To(MatchError(credentials.ErrMalformed))
		})
	}
}

type repository string

func (r repository) String() string      { return string(r) }
func (r repository) RegistryStr() string { return strings.SplitN(string(r), "/", 2)[0] }

// TestProperties holds for whatever keys there are: the order of keys and secrets is of no matter, the choice is the longest that fits, and a key is
// never tried for another registry.
func TestProperties(t *testing.T) {
	host := rapid.SampledFrom([]string{"quay.io", "a.example.com", "b.example.com", "*.example.com", "localhost:5000"})
	part := rapid.SampledFrom([]string{"", "/org", "/org/app", "/organization"})
	rapid.Check(t, func(rt *rapid.T) {
		var keys []string
		for i := range rapid.IntRange(0, 6).Draw(rt, "keys") {
			keys = append(keys, host.Draw(rt, fmt.Sprint("host", i))+part.Draw(rt, fmt.Sprint("path", i)))
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)
		target := strings.ReplaceAll(host.Draw(rt, "target"), "*", "c") + rapid.SampledFrom([]string{"/org/app", "/organization/app", "/other"}).Draw(rt, "repository")

		whole, err := credentials.Parse(holding(keys...))
		if err != nil {
			rt.Fatal(err)
		}
		var parts credentials.Keyring
		for _, key := range rapid.Permutation(keys).Draw(rt, "order") {
			s := &corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: holding(key)}}
			if err := parts.Add(s); err != nil {
				rt.Fatal(err)
			}
		}
		// A user's name ends at the first colon, as the port of a key does.
		got := users(whole, target)
		if !slices.Equal(got, users(parts, target)) {
			rt.Fatalf("%v in one secret, %v in several", got, users(parts, target))
		}
		if got[len(got)-1] != "" {
			rt.Fatal("anonymous is not the last")
		}
		first, err := whole.Resolve(repository(target))
		if err != nil {
			rt.Fatal(err)
		}
		if a, _ := first.Authorization(); (a.Username == "") != (len(got) == 1) || a.Username != "" && a.Username != got[0] {
			rt.Fatalf("resolved %q of %v", a.Username, got)
		}
		for i, user := range got[:len(got)-1] {
			h, p, _ := strings.Cut(user, "/")
			targetHost, targetPath, _ := strings.Cut(target, "/")
			if i > 0 && len(user) > len(got[i-1]) && !strings.HasPrefix(target, "localhost") {
				rt.Fatalf("%v is not sorted", got)
			}
			if h != targetHost && h != "localhost" && h != "*.example.com" || p != "" && p != targetPath && !strings.HasPrefix(targetPath, p+"/") {
				rt.Fatalf("%q was tried for %s", user, target)
			}
		}
	})
}

// FuzzParse reads arbitrary secrets: an error never repeats them.
func FuzzParse(f *testing.F) {
	f.Add(holding("quay.io"))
	f.Add([]byte(`{"auths":{"a":{"auth":"!"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := credentials.Parse(data)
		if err != nil {
			if len(err.Error()) > 120 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		if all := k.For("quay.io/a"); all[len(all)-1] != authn.Anonymous {
			t.Error("anonymous is not the last")
		}
	})
}
