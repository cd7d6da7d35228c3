package session

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

// TestToken is for credentials as operators in a control plane have them: a file that names a role and a token, which somebody else writes when it can.
func TestToken(t *testing.T) {
	g := NewWithT(t)
	var mu sync.Mutex
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		mu.Lock()
		asked = append(asked, string(raw))
		mu.Unlock()
		_, _ = io.WriteString(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>
			<SessionToken>s</SessionToken><SecretAccessKey>k</SecretAccessKey><Expiration>2099-01-01T00:00:00Z</Expiration><AccessKeyId>ASIA</AccessKeyId>
			</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`)
	}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	token, file := filepath.Join(dir, "token"), filepath.Join(dir, "credentials")
	g.Expect(os.WriteFile(file, fmt.Appendf(nil, "[default]\nrole_arn = arn:aws:iam::123456789012:role/r\nweb_identity_token_file = %s\nsts_regional_endpoints = regional\nregion = eu-central-1\n", token), 0o600)).To(Succeed())
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_CONFIG_FILE", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	t.Setenv("AWS_ENDPOINT_URL", s.URL)
	t.Setenv("AWS_SDK_LOAD_CONFIG", "true")
	cfg, err := Load(t.Context(), Options{Agent: "test", Region: "eu-central-1"})
	g.Expect(err).NotTo(HaveOccurred())
	t.Run("When there is no token yet it should fail, and succeed once there is", func(t *testing.T) {
		g := NewWithT(t)
		_, err := cfg.Credentials.Retrieve(t.Context())
		g.Expect(err).To(HaveOccurred())
		g.Expect(os.WriteFile(token, []byte("jwt"), 0o600)).To(Succeed())
		c, err := cfg.Credentials.Retrieve(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.AccessKeyID).To(Equal("ASIA"))
		mu.Lock()
		defer mu.Unlock()
		g.Expect(asked).To(HaveLen(1))
		g.Expect(asked[0]).To(ContainSubstring("WebIdentityToken=jwt"))
	})
}
