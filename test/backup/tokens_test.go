//go:build backup

package backup

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	azcontainer "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/contract/backups"
)

const tenant, clientSecret = "11111111-2222-3333-4444-555555555555", "hunter2"

// entra is a Microsoft Entra ID that gives tokens to who knows the secret. Azurite looks at what they say, and not at their signature.
type entra struct {
	*httptest.Server
	given atomic.Int32
}

func newEntra(t *testing.T) *entra {
	t.Helper()
	e := &entra{}
	e.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration"):
			fmt.Fprintf(w, `{"token_endpoint":"%[1]s/%[2]s/oauth2/v2.0/token","authorization_endpoint":"%[1]s/%[2]s/oauth2/v2.0/authorize","issuer":"%[1]s/%[2]s/v2.0"}`, e.URL, tenant)
		case r.PostFormValue("client_secret") != clientSecret:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret provided."}`)
		default:
			e.given.Add(1)
			fmt.Fprintf(w, `{"access_token":%q,"expires_in":3600,"token_type":"Bearer"}`, token())
		}
	}))
	t.Cleanup(e.Close)
	return e
}

func token() string {
	now := time.Now()
	claims, _ := json.Marshal(map[string]any{ // of what can be encoded
		"aud": "https://storage.azure.com", "iss": "https://sts.windows.net/" + tenant + "/", "nbf": now.Add(-time.Minute).Unix(), "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "ver": "1.0", "oid": tenant, "tid": tenant,
	})
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + part(claims) + "." + part([]byte("signed"))
}

// TestTokens has Azurite ask for tokens, over TLS, instead of the account's key.
func TestTokens(t *testing.T) {
	e := newEntra(t)
	w := newWorld(t, func(w *world) {
		g := NewWithT(w.T)
		certificate := filepath.Join(w.secret, backups.CABundleKey)
		private, err := x509.MarshalPKCS8PrivateKey(e.TLS.Certificates[0].PrivateKey)
		g.Expect(err).NotTo(HaveOccurred())
		key := filepath.Join(w.dir, "tls.key")
		w.write(certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.Certificate().Raw})))
		w.write(key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
		endpoint := "https://" + w.startAzurite("--cert", certificate, "--key", key, "--oauth", "basic") + "/" + accountName
		w.options.Bucket, w.options.Account, w.options.CABundle = bucketName, accountName, certificate
		w.args = []string{"--storage-type", "AzureBlob", "--azure-container", bucketName, "--azure-storage-account", accountName, "--ca-bundle-file", certificate}
		w.verifyArgs = []string{"--ca-bundle-file", certificate}
		w.credentials(e, endpoint, clientSecret)
		makeContainer(w.T, endpoint, &azcontainer.ClientOptions{ClientOptions: policy.ClientOptions{Transport: e.Client()}})
	})
	w.fill(20 << 20) // in parts
	file, _ := w.save()
	t.Run("When credentials are a client's secret a backup should be made, read and restored by tokens", func(t *testing.T) {
		g := NewWithT(t)
		out, err := w.upload(file, "tokens", 0)
		g.Expect(err).NotTo(HaveOccurred())
		url, sum := told(t, out)
		g.Expect(sum.Verified).To(BeTrue())
		g.Expect(url).To(And(HavePrefix("https://"), HaveSuffix(".db.enc")))
		_, err = w.verify(url)
		g.Expect(err).NotTo(HaveOccurred())
		compare(t, w, startEtcd(t, w.restore(t, url, "")), sum.Revision)
		g.Expect(e.given.Load()).To(BeNumerically(">=", 3), "each program asks for a token of its own")
	})
	t.Run("When the secret is wrong it should say so, and show none", func(t *testing.T) {
		g := NewWithT(t)
		w.credentials(e, "https://127.0.0.1:1/"+accountName, "other-secret")
		_, err := w.upload(file, "wrong", 0)
		g.Expect(err).To(MatchError(ContainSubstring("AADSTS7000215 (the secret of the client is wrong")))
		g.Expect(err.Error()).NotTo(ContainSubstring("other-secret"))
	})
}

func (w *world) credentials(e *entra, endpoint, secret string) {
	w.Helper()
	w.write(w.options.Credentials, fmt.Sprintf(`{"tenantId":%q,"clientId":%q,"clientSecret":%q,"activeDirectoryEndpointUrl":%q,"blobEndpoint":%q}`, tenant, "client", secret, e.URL, endpoint))
}
