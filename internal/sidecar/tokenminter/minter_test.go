package tokenminter

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/sidecar/kubeapi"
	"hcp.internal/platform/internal/testenv"
)

// claims are the parts of a token that its users look at.
type claims struct {
	Audience []string `json:"aud"`
	Subject  string   `json:"sub"`
}

func read(t *testing.T, path string) claims {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(raw), ".")
	if len(parts) != 3 {
		t.Fatalf("not a token: %d parts", len(parts))
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	c := claims{}
	if err := json.Unmarshal(body, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRun(t *testing.T) {
	env := testenv.Start(t)
	connect := func(context.Context) (*kubeapi.Client, error) { return kubeapi.FromKubeconfigBytes(env.Kubeconfig(t)) }
	minter := func(t *testing.T) Minter {
		return Minter{
			Namespace: env.Namespace(t), Name: "cloud", Audience: "openshift", File: filepath.Join(t.TempDir(), "token"),
			Connect: connect, Log: &bytes.Buffer{}, Now: time.Now,
		}
	}
	t.Run("When the account doesn't exist it should create it and write a token for the audience", func(t *testing.T) {
		g := NewWithT(t)
		m := minter(t)
		g.Expect(m.Run(t.Context(), true)).To(Succeed())
		got := read(t, m.File)
		g.Expect(got.Audience).To(Equal([]string{"openshift"}))
		g.Expect(got.Subject).To(Equal("system:serviceaccount:" + m.Namespace + ":cloud"))
		info, err := os.Stat(m.File)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o640)))
		entries, err := os.ReadDir(filepath.Dir(m.File))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).To(HaveLen(1), "no temporary file may stay")
		g.Expect(m.Run(t.Context(), true)).To(Succeed(), "the account exists now")
	})
	t.Run("When the API server comes later it should go on trying, and not log the token", func(t *testing.T) {
		g := NewWithT(t)
		m := minter(t)
		calls := 0
		m.Connect = func(ctx context.Context) (*kubeapi.Client, error) {
			if calls++; calls == 1 {
				return nil, errors.New("connection refused")
			}
			return connect(ctx)
		}
		log := &bytes.Buffer{}
		m.Log = log
		g.Expect(m.Run(t.Context(), true)).To(Succeed())
		g.Expect(log.String()).To(ContainSubstring("no token yet, next try in 500ms: connection refused"))
		raw, err := os.ReadFile(m.File)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(log.String()).NotTo(ContainSubstring(string(raw)))
	})
	t.Run("When told to stop it should end", func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		g.Expect(minter(t).Run(ctx, false)).To(MatchError(context.Canceled))
	})
}

func TestFreshFor(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		expiry time.Time
		want   time.Duration
	}{
		"When a token lives an hour it should be renewed after 48 minutes":       {noon.Add(time.Hour), 48 * time.Minute},
		"When a token is over already it should not ask in a loop":               {noon.Add(-time.Hour), minRenewal},
		"When a token claims to live for ever it should be renewed every day":    {noon.Add(1000 * 24 * time.Hour), maxRenewal},
		"When the server doesn't say when a token ends it should ask again soon": {time.Time{}, minRenewal},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(freshFor(noon, tc.expiry)).To(Equal(tc.want))
		})
	}
}

func TestCommand(t *testing.T) {
	run := func(args ...string) error {
		cmd := Command()
		cmd.SetArgs(args)
		cmd.SetOut(&bytes.Buffer{})
		cmd.SetErr(&bytes.Buffer{})
		return cmd.Execute()
	}
	base := []string{"--token-audience=a", "--service-account-namespace=n", "--service-account-name=s"}
	t.Run("When no cluster is named it should say how", func(t *testing.T) {
		NewWithT(t).Expect(run(base...)).To(MatchError(ContainSubstring("--kubeconfig")))
	})
	t.Run("When a Secret is named without its namespace it should ask for it", func(t *testing.T) {
		NewWithT(t).Expect(run(append(base, "--kubeconfig-secret-name=x")...)).To(MatchError(ContainSubstring("--kubeconfig-secret-namespace")))
	})
	t.Run("When the probe finds a token it should succeed, and fail before", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(t.TempDir(), "token")
		g.Expect(run("check", "--token-file="+file)).To(HaveOccurred())
		g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
		g.Expect(run("check", "--token-file="+file)).To(MatchError(ContainSubstring("is empty")))
		g.Expect(os.WriteFile(file, []byte("x"), 0o600)).To(Succeed())
		g.Expect(run("check", "--token-file="+file)).To(Succeed())
	})
}
