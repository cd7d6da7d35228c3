package store

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestAzure(t *testing.T) {
	whole := bytes.Repeat([]byte("snapshot "), 2<<20) // in three parts
	a := newAccount(t)
	s := a.open(a.options())
	put := func(name string, content []byte) error { return s.Put(t.Context(), name, bytes.NewReader(content)) }
	t.Run("When a file is written it should be read and listed as it is", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(put("clusters/demo/1.db.enc", whole)).To(Succeed())
		g.Expect(put("clusters/demo/1.json", []byte("manifest"))).To(Succeed())
		g.Expect(put("clusters/demo2/1.json", nil)).To(Succeed())
		r, size, err := s.Get(t.Context(), "clusters/demo/1.db.enc")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(size).To(BeEquivalentTo(len(whole)))
		got, err := io.ReadAll(r)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bytes.Equal(got, whole)).To(BeTrue(), "what was read is not what was stored")
		items, err := s.List(t.Context(), "clusters/demo/", 10)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(items).To(HaveLen(2))
		g.Expect(items[1].Bytes).To(BeEquivalentTo(8))
		g.Expect(s.List(t.Context(), "clusters/", 1)).To(HaveLen(1))
		g.Expect(s.URL(items[0].Name)).To(Equal(a.URL + "/backups/clusters/demo/1.db.enc"))
	})
	t.Run("When a name is taken it should be left alone", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(put("clusters/demo/1.db.enc", []byte("evil"))).To(MatchError(ErrExists))
		g.Expect(a.blobs["clusters/demo/1.db.enc"].content).To(HaveLen(len(whole)))
	})
	t.Run("When a file is deleted it should be gone, and again be no error", func(t *testing.T) {
		g := NewWithT(t)
		for range 2 {
			g.Expect(s.Delete(t.Context(), "clusters/demo2/1.json")).To(Succeed())
		}
		_, _, err := s.Get(t.Context(), "clusters/demo2/1.json")
		g.Expect(err).To(MatchError(ErrNotFound))
	})
	t.Run("When an encryption scope is named everything that is written should ask for it", func(t *testing.T) {
		g := NewWithT(t)
		o := a.options()
		o.Scope = "mykeys"
		a.seen = nil
		g.Expect(a.open(o).Put(t.Context(), "clusters/demo/2.db.enc", bytes.NewReader(whole))).To(Succeed())
		g.Expect(len(a.seen)).To(BeNumerically(">", 3))
		for _, r := range a.seen {
			g.Expect(r.Header.Get("X-Ms-Encryption-Scope")).To(Equal("mykeys"), r.URL.RawQuery)
		}
	})
}

// TestAzureFaults plays what a storage and the way to it can do.
func TestAzureFaults(t *testing.T) {
	content := bytes.Repeat([]byte("snapshot "), 10_000)
	// first is true once.
	first := func() func() bool {
		var n atomic.Int32
		return func() bool { return n.Add(1) == 1 }
	}
	t.Run("When the storage is busy for a moment the file should arrive", func(t *testing.T) {
		g, a, once := NewWithT(t), newAccount(t), first()
		a.before = func(w http.ResponseWriter, _ *http.Request) bool {
			if !once() {
				return false
			}
			refuse(w, http.StatusServiceUnavailable, "ServerBusy")
			return true
		}
		g.Expect(a.open(a.options()).Put(t.Context(), "1.db", bytes.NewReader(content))).To(Succeed())
		g.Expect(bytes.Equal(a.blobs["1.db"].content, content)).To(BeTrue())
	})
	t.Run("When the storage wants to be asked again after an hour it should be given up", func(t *testing.T) {
		g, a := NewWithT(t), newAccount(t)
		a.before = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "3600")
			refuse(w, http.StatusServiceUnavailable, "ServerBusy")
			return true
		}
		g.Expect(a.open(a.options()).Put(t.Context(), "1.db", bytes.NewReader(content))).To(MatchError(ContainSubstring("ServerBusy (the storage is busy")))
	})
	t.Run("When the last answer is lost the file should be known as ours, and one of somebody else's not", func(t *testing.T) {
		g, a, once := NewWithT(t), newAccount(t), first()
		a.after = func(r *http.Request) bool { return last(r) && once() }
		s := a.open(a.options())
		g.Expect(s.Put(t.Context(), "1.db", bytes.NewReader(content))).To(Succeed())
		g.Expect(s.Put(t.Context(), "1.db", bytes.NewReader(content))).To(MatchError(ErrExists))
	})
	t.Run("When a part is changed on its way it should be refused, and nothing be there", func(t *testing.T) {
		g, a := NewWithT(t), newAccount(t)
		a.before = func(_ http.ResponseWriter, r *http.Request) bool {
			r.Header.Set("X-Ms-Content-Crc64", crcOf([]byte("something else")))
			return false
		}
		g.Expect(a.open(a.options()).Put(t.Context(), "1.db", bytes.NewReader(content))).To(MatchError(ContainSubstring("Crc64Mismatch (the data was changed in transit")))
		g.Expect(a.blobs).To(BeEmpty())
	})
	t.Run("When reading what is written breaks nothing should be there", func(t *testing.T) {
		g, a := NewWithT(t), newAccount(t)
		err := a.open(a.options()).Put(t.Context(), "1.db", io.MultiReader(bytes.NewReader(content), failing{fmt.Errorf("the disk broke")}))
		g.Expect(err).To(MatchError(ContainSubstring("the disk broke")))
		g.Expect(a.blobs).To(BeEmpty())
	})
	t.Run("When the connection breaks in the middle it should go on where it broke, with the same blob", func(t *testing.T) {
		g, a, once := NewWithT(t), newAccount(t), first()
		s := a.open(a.options())
		g.Expect(s.Put(t.Context(), "1.db", bytes.NewReader(content))).To(Succeed())
		a.before = func(w http.ResponseWriter, r *http.Request) bool {
			if !once() {
				return false
			}
			w.Header().Set("ETag", a.blobs["1.db"].etag)
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(content[:50_000])
			return true // net/http ends the connection of an answer that is too short
		}
		body, _, err := s.Get(t.Context(), "1.db")
		g.Expect(err).NotTo(HaveOccurred())
		got, err := io.ReadAll(body)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bytes.Equal(got, content)).To(BeTrue(), "what was read is not what was stored")
		g.Expect(a.seen[len(a.seen)-1].Header.Get("X-Ms-Range")).To(Equal("bytes=50000-"))
	})
	t.Run("When the blob is replaced while it is read it should be said", func(t *testing.T) {
		g, a, once := NewWithT(t), newAccount(t), first()
		s := a.open(a.options())
		g.Expect(s.Put(t.Context(), "1.db", bytes.NewReader(content))).To(Succeed())
		a.before = func(w http.ResponseWriter, _ *http.Request) bool {
			if !once() {
				return false
			}
			w.Header().Set("ETag", `"another"`)
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(content[:50_000])
			return true
		}
		body, _, err := s.Get(t.Context(), "1.db")
		g.Expect(err).NotTo(HaveOccurred())
		_, err = io.ReadAll(body)
		g.Expect(err).To(MatchError(And(ContainSubstring("from byte 50000"), ContainSubstring("the file was replaced while it was read"))))
	})
	for _, tc := range []struct {
		status     int
		code, want string
		kind       error
	}{
		{403, "AuthorizationPermissionMismatch", "Storage Blob Data Contributor", ErrForbidden},
		{404, "ContainerNotFound", "correct spec.storage.azureBlob.container", nil},
		{403, "AuthenticationFailed", "the key of the account in the Secret is wrong", nil},
		{409, "EncryptionScopeNotFound", "correct key encryption-scope", nil},
		{418, "SomethingNew", "SomethingNew", nil},
	} {
		t.Run("When Azure says "+tc.code+" it should say what to do, and no ID or key", func(t *testing.T) {
			g, a := NewWithT(t), newAccount(t)
			a.before = func(w http.ResponseWriter, _ *http.Request) bool { refuse(w, tc.status, tc.code); return true }
			s := a.open(a.options())
			err := s.Put(t.Context(), "1.db", bytes.NewReader(content))
			_, _, reading := s.Get(t.Context(), "1.db")
			for _, err := range []error{err, reading} {
				g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
				g.Expect(err.Error()).NotTo(Or(ContainSubstring("1111"), ContainSubstring("MDEy"), ContainSubstring("\n")))
				if tc.kind != nil {
					g.Expect(err).To(MatchError(tc.kind))
				}
			}
		})
	}
}

// authority has the account be a Microsoft Entra ID, too, which answers as told.
func (a *account) authority(token func(r *http.Request) (string, int)) {
	a.before = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration"):
			fmt.Fprintf(w, `{"token_endpoint":"%s/tenant/oauth2/v2.0/token","authorization_endpoint":"%s/tenant/oauth2/v2.0/authorize","issuer":"%s/tenant/v2.0"}`, a.URL, a.URL, a.URL)
		case strings.HasSuffix(r.URL.Path, "/token"):
			text, status := token(r)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		case r.Header.Get("Authorization") != "Bearer good":
			refuse(w, http.StatusUnauthorized, "NoAuthenticationInformation")
		default:
			return false
		}
		return true
	}
}

func TestAzureIdentities(t *testing.T) {
	const good = `{"access_token":"good","expires_in":3600,"token_type":"Bearer"}`
	federated := "a.federated.token"
	for name, tc := range map[string]struct {
		credentials map[string]string // nil: a federated token
		asks        string            // a field of the request for a token, and its value
	}{
		"a client's secret":                {map[string]string{"tenantId": "tenant", "clientId": "client", "clientSecret": "hunter2"}, "client_secret=hunter2"},
		"a managed identity's certificate": {map[string]string{"tenant_id": "tenant", "client_id": "client", "client_secret": certificate(t)}, "client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		"a ServiceAccount's token":         {nil, "client_assertion=" + federated},
	} {
		t.Run("When credentials are "+name+" they should be proved to Microsoft Entra ID, and the token to the storage", func(t *testing.T) {
			g, a := NewWithT(t), newAccount(t)
			asked := atomic.Bool{}
			a.authority(func(r *http.Request) (string, int) {
				field, value, _ := strings.Cut(tc.asks, "=")
				asked.Store(true)
				if r.PostFormValue("client_id") != "client" || r.PostFormValue(field) != value || r.PostFormValue("scope") == "" {
					return `{"error":"invalid_client"}`, http.StatusBadRequest
				}
				return good, http.StatusOK
			})
			var o Options
			if tc.credentials != nil {
				tc.credentials["activeDirectoryEndpointUrl"], tc.credentials["authentication_endpoint"] = a.URL, a.URL
				o = a.with(tc.credentials)
			} else {
				t.Setenv("AZURE_FEDERATED_TOKEN_FILE", a.file("token", []byte(federated)))
				t.Setenv("AZURE_CLIENT_ID", "client")
				t.Setenv("AZURE_TENANT_ID", "tenant")
				t.Setenv("AZURE_AUTHORITY_HOST", a.URL)
				o = Options{Account: "mine", Bucket: "backups", Endpoint: a.URL, CABundle: a.bundle()}
			}
			g.Expect(a.open(o).Put(t.Context(), "1.db", strings.NewReader("content"))).To(Succeed())
			g.Expect(asked.Load()).To(BeTrue())
			g.Expect(string(a.blobs["1.db"].content)).To(Equal("content"))
		})
	}
	t.Run("When Microsoft Entra ID refuses it should say why, and show no secret", func(t *testing.T) {
		g, a := NewWithT(t), newAccount(t)
		a.authority(func(*http.Request) (string, int) {
			return `{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret provided. hunter2 Trace ID: 1111"}`, http.StatusUnauthorized
		})
		err := a.open(a.with(map[string]string{"tenantId": "tenant", "clientId": "client", "clientSecret": "hunter2", "activeDirectoryEndpointUrl": a.URL})).Put(t.Context(), "1.db", strings.NewReader("content"))
		g.Expect(err).To(MatchError(ContainSubstring("AADSTS7000215 (the secret of the client is wrong")))
		g.Expect(err.Error()).NotTo(Or(ContainSubstring("hunter2"), ContainSubstring("1111")))
	})
	t.Run("When the pod has no federated token it should say what is missing", func(t *testing.T) {
		_, err := Open(t.Context(), Options{Account: "mine", Bucket: "backups"})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("AZURE_FEDERATED_TOKEN_FILE")))
	})
	t.Run("When the endpoint is not encrypted a token should not be sent to it", func(t *testing.T) {
		g, a := NewWithT(t), newAccount(t)
		a.authority(func(*http.Request) (string, int) { return good, http.StatusOK })
		o := a.with(map[string]string{"tenantId": "tenant", "clientId": "client", "clientSecret": "hunter2", "activeDirectoryEndpointUrl": a.URL})
		o.Endpoint = "http" + strings.TrimPrefix(a.URL, "https")
		g.Expect(a.open(o).Put(t.Context(), "1.db", strings.NewReader("content"))).To(MatchError(ContainSubstring("https")))
	})
}

// certificate is that of a managed identity, as its file has it.
func certificate(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048) // tokens for Entra ID are signed by RSA
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "identity"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	private, err := x509.MarshalPKCS8PrivateKey(key)
	g.Expect(err).NotTo(HaveOccurred())
	return base64.StdEncoding.EncodeToString(append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...))
}

func TestOpenURL(t *testing.T) {
	a := newAccount(t)
	own := a.options()
	raw, err := json.Marshal(map[string]string{"accountKey": "MDEy"})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	azures := Options{Credentials: a.file("azure", raw)}
	for name, tc := range map[string]struct {
		url  string
		o    Options
		want string // URL of the file; empty: it is refused
	}{
		"When it is Azure's it should lead there":                    {"https://mine.blob.core.windows.net/backups/demo/1.db.enc", azures, "https://mine.blob.core.windows.net/backups/demo/1.db.enc"},
		"When it is of a cloud of Azure's it should lead there":      {"https://mine.blob.core.usgovcloudapi.net/backups/1.db.enc", azures, "https://mine.blob.core.usgovcloudapi.net/backups/1.db.enc"},
		"When it is the credentials' endpoint it should lead there":  {a.URL + "/backups/1.db.enc", own, a.URL + "/backups/1.db.enc"},
		"When it is another host it should be refused":               {"https://blob.core.windows.net.example.com/backups/1.db.enc", azures, ""},
		"When it is a host with a port it should be refused":         {"https://mine.blob.core.windows.net:444/backups/1.db.enc", azures, ""},
		"When it has a user it should be refused":                    {"https://mine.blob.core.windows.net@example.com/backups/1.db.enc", azures, ""},
		"When it is signed it should be refused":                     {"https://mine.blob.core.windows.net/backups/1.db.enc?sig=x", azures, ""},
		"When it is not encrypted it should be refused":              {"http://mine.blob.core.windows.net/backups/1.db.enc", azures, ""},
		"When it begins as the endpoint does it should be refused":   {a.URL + "0/backups/1.db.enc", own, ""},
		"When it names no file it should be refused":                 {"https://mine.blob.core.windows.net/backups", azures, ""},
		"When it is S3's it should lead there, whatever is in Azure": {"s3://backups/demo/1.db.enc", Options{Region: "us-east-1"}, "s3://backups/demo/1.db.enc"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s, name, err := OpenURL(t.Context(), tc.url, tc.o)
			if tc.want == "" {
				g.Expect(err).To(MatchError(ContainSubstring("is no URL of a backup in Azure")))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.URL(name)).To(Equal(tc.want))
		})
	}
}
