package images

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/image"
	"hcp.internal/platform/internal/image/bundle"
)

// distribution is a folder images with the operators and a release that names them.
func distribution(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "images")
	w, err := bundle.NewWriter(dir)
	g.Expect(err).NotTo(HaveOccurred())
	add := func(e bundle.Entry, img v1.Image, err error) v1.Hash {
		g.Expect(err).NotTo(HaveOccurred())
		d, err := w.Image(img)
		g.Expect(err).NotTo(HaveOccurred())
		idx, err := w.Index(d)
		g.Expect(err).NotTo(HaveOccurred())
		w.Add(e, idx)
		return idx.Digest
	}
	l, err := image.NewLayer(image.File{Path: "/program", Data: []byte("x")})
	g.Expect(err).NotTo(HaveOccurred())
	img, err := image.New(image.Config{}, l)
	operators := add(bundle.Entry{Repository: "hypershift/hypershift", Tag: "1.0.0", Kind: bundle.Operator}, img, err)
	img, err = image.Release("1.36.3", map[string]string{"controlplane-operator": bundle.Placeholder + "/hypershift/hypershift@" + operators.String()})
	add(bundle.Entry{Repository: "hypershift/release", Tag: "1.36.3", Kind: bundle.Release, Release: "1.36.3", Needs: []v1.Hash{operators}}, img, err)
	g.Expect(w.Close()).To(Succeed())
	return dir
}

func run(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	cmd := Command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var stdout, stderr bytes.Buffer
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestCommands(t *testing.T) {
	g := NewWithT(t)
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "robot" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	config := t.TempDir()
	t.Setenv("DOCKER_CONFIG", config)
	dir := distribution(t)

	t.Run("When a bundle is listed it should show what is in it", func(t *testing.T) {
		g := NewWithT(t)
		out, _, err := run(t, "list", "--from", dir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(And(ContainSubstring("hypershift/release:1.36.3"), ContainSubstring("release")))
		out, _, err = run(t, "list", "--from", dir, "-o", "json")
		g.Expect(err).NotTo(HaveOccurred())
		var entries []bundle.Entry
		g.Expect(json.Unmarshal([]byte(out), &entries)).To(Succeed())
		g.Expect(entries).To(HaveLen(2))
	})
	t.Run("When nobody is logged in it should say how to, and not tell a password", func(t *testing.T) {
		_, _, err := run(t, "push", "--from", dir, "--to", host)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("log in to the registry")))
	})
	g.Expect(os.WriteFile(filepath.Join(config, "config.json"), []byte(`{"auths":{"`+host+`":{"username":"robot","password":"secret"}}}`), 0o600)).To(Succeed())
	t.Run("When a registry lacks something verify should end with 4", func(t *testing.T) {
		g := NewWithT(t)
		_, _, err := run(t, "verify", "--from", dir, "--to", host)
		g.Expect(exit.Code(err)).To(Equal(exit.NotFound))
		g.Expect(err).To(MatchError(ContainSubstring("is missing")))
	})
	t.Run("When a carried file is pushed with credentials it should say what to do next, and verify should be content", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(t.TempDir(), "carried.tar")
		out, _, err := run(t, "save", "--from", dir, "--release", "1.36", "--bundle", file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(ContainSubstring("carried.tar"))
		out, errs, err := run(t, "push", "--from", file, "--to", host+"/team")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(ContainSubstring("--hypershift-image " + host + "/team/hypershift/hypershift:1.0.0"))
		g.Expect(out).To(ContainSubstring("--release-image " + host + "/team/hypershift/release:1.36.3"))
		g.Expect(errs).To(ContainSubstring("2 pushed, 0 were there"))
		_, errs, err = run(t, "push", "--from", file, "--to", host+"/team")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(errs).To(ContainSubstring("0 pushed, 2 were there"))
		_, _, err = run(t, "verify", "--from", dir, "--to", host+"/team")
		g.Expect(err).NotTo(HaveOccurred())
	})
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"When no bundle is named it should ask for one":           {[]string{"list"}, "--from is required"},
		"When the release is not there it should say which are":   {[]string{"list", "--from", dir, "--release", "1.20"}, "it has 1.36.3"},
		"When the registry is an address it should say how it is": {[]string{"push", "--from", dir, "--to", "https://registry.example.com"}, "--to: "},
		"When no file is named save should ask for one":           {[]string{"save", "--from", dir}, "--bundle is required"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t, tc.args...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestSign(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	to := strings.TrimPrefix(server.URL, "http://") + "/team"
	dist := distribution(t)
	_, _, err := run(t, "push", "--from", dist, "--to", to)
	g.Expect(err).NotTo(HaveOccurred())
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	der, err := x509.MarshalPKCS8PrivateKey(private)
	g.Expect(err).NotTo(HaveOccurred())
	key := filepath.Join(t.TempDir(), "signing.key")
	g.Expect(os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)).To(Succeed())

	t.Run("When a bundle was pushed it should sign all of it, once", func(t *testing.T) {
		g := NewWithT(t)
		out, _, err := run(t, "sign", "--key", key, "--from", dist, "--to", to)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(And(ContainSubstring("signed "+to+"/hypershift/hypershift@sha256:"), ContainSubstring("signed "+to+"/hypershift/release@sha256:")))
		out, _, err = run(t, "sign", "--key", key, to+"/hypershift/release:1.36.3")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(HavePrefix("was signed already: "))
	})
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"When there is no key it should say how to give one":  {[]string{to + "/x:1"}, "--key is required"},
		"When nothing is named it should say what to name":    {[]string{"--key", key}, "name images, or a bundle"},
		"When an image isn't there it should say which":       {[]string{"--key", key, to + "/x:1"}, to + "/x:1"},
		"When a reference is none it should say what one is":  {[]string{"--key", key, "A B"}, "registry/repository:tag"},
		"When the key is none it should say what is expected": {[]string{"--key", filepath.Join(dist, "index.json"), to + "/x:1"}, "PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t, append([]string{"sign"}, tc.args...)...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}
