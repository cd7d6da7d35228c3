package store

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"hash/crc64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// crcTable is that of Azure's sums.
var crcTable = crc64.MakeTable(0x9A6C9329AC4BC9B5)

// account is a storage account of Azure with one container, for what Azurite doesn't do: faults, and headers as they were sent. test/backup asks Azurite.
type account struct {
	*testing.T
	*httptest.Server

	mu     sync.Mutex
	blobs  map[string]blobFile
	blocks map[string][]byte
	// before answers a request, when it says that it has.
	before func(w http.ResponseWriter, r *http.Request) (done bool)
	// after is asked when the request has been carried out: true has the connection break before the answer.
	after func(r *http.Request) (lost bool)
	seen  []*http.Request
}

type blobFile struct {
	content []byte
	nonce   string
	etag    string
}

func newAccount(t *testing.T) *account {
	t.Helper()
	a := &account{T: t, blobs: map[string]blobFile{}, blocks: map[string][]byte{}}
	a.Server = httptest.NewTLSServer(a)
	t.Cleanup(a.Close)
	return a
}

// refuse answers as Azure does, with a request ID that no error should show.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Ms-Error-Code", code)
	w.Header().Set("X-Ms-Request-Id", "11111111-2222-3333-4444-555555555555")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code><Message>RequestId:11111111-2222-3333-4444-555555555555</Message></Error>`, code)
}

// ServeHTTP implements http.Handler.
func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(content)) // for who looks at forms
	a.mu.Lock()
	a.seen = append(a.seen, r)
	before, after := a.before, a.after
	a.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	rec := httptest.NewRecorder()
	a.serve(rec, r, content)
	if after != nil && after(r) {
		panic(http.ErrAbortHandler)
	}
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()) // who is gone has no answer
}

func (a *account) serve(w http.ResponseWriter, r *http.Request, content []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/backups/")
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && q.Get("comp") == "list":
		a.list(w, q.Get("prefix"))
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		a.get(w, r, name)
	case r.Method == http.MethodDelete:
		if _, ok := a.blobs[name]; !ok {
			refuse(w, http.StatusNotFound, "BlobNotFound")
			return
		}
		delete(a.blobs, name)
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPut && q.Get("comp") != "blocklist" && r.Header.Get("X-Ms-Content-Crc64") != crcOf(content):
		refuse(w, http.StatusBadRequest, "Crc64Mismatch")
	case q.Get("comp") == "block":
		a.blocks[q.Get("blockid")] = content
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPut && last(r):
		if _, ok := a.blobs[name]; ok && r.Header.Get("If-None-Match") == "*" {
			refuse(w, http.StatusConflict, "BlobAlreadyExists")
			return
		}
		if q.Get("comp") == "" {
			a.put(w, r, name, content)
			return
		}
		var list struct {
			Latest []string `xml:"Latest"`
		}
		if err := xml.Unmarshal(content, &list); err != nil {
			refuse(w, http.StatusBadRequest, "InvalidXmlDocument")
			return
		}
		var whole []byte
		for _, id := range list.Latest {
			whole = append(whole, a.blocks[id]...)
		}
		a.put(w, r, name, whole)
	default:
		refuse(w, http.StatusNotImplemented, "NotImplemented")
	}
}

func (a *account) put(w http.ResponseWriter, r *http.Request, name string, content []byte) {
	a.blobs[name] = blobFile{content: content, nonce: r.Header.Get("X-Ms-Meta-Upload"), etag: fmt.Sprintf(`"%s"`, rand.Text())}
	w.WriteHeader(http.StatusCreated)
}

// last tells the request that makes a blob: that with all of a small one, or with the list of its parts.
func last(r *http.Request) bool {
	return r.URL.Query().Get("comp") == "blocklist" || r.Header.Get("X-Ms-Blob-Type") != ""
}

func crcOf(content []byte) string {
	sum := crc64.Checksum(content, crcTable)
	raw := make([]byte, 8)
	for i := range raw {
		raw[i] = byte(sum >> (8 * i))
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func (a *account) get(w http.ResponseWriter, r *http.Request, name string) {
	f, ok := a.blobs[name]
	if !ok {
		refuse(w, http.StatusNotFound, "BlobNotFound")
		return
	}
	if match := r.Header.Get("If-Match"); match != "" && match != f.etag {
		refuse(w, http.StatusPreconditionFailed, "ConditionNotMet")
		return
	}
	from := 0
	if text := r.Header.Get("X-Ms-Range"); text != "" {
		from, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(text, "bytes="), "-"))
	}
	w.Header().Set("ETag", f.etag)
	w.Header().Set("X-Ms-Meta-Upload", f.nonce)
	w.Header().Set("Content-Length", strconv.Itoa(len(f.content)-from))
	if from > 0 {
		w.WriteHeader(http.StatusPartialContent)
	}
	if r.Method == http.MethodGet {
		_, _ = w.Write(f.content[from:])
	}
}

func (a *account) list(w http.ResponseWriter, prefix string) {
	var names []string
	for name := range a.blobs {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	w.Header().Set("Content-Type", "application/xml")
	fmt.Fprint(w, `<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>`)
	for _, name := range names {
		fmt.Fprintf(w, `<Blob><Name>%s</Name><Properties><Content-Length>%d</Content-Length><Last-Modified>Mon, 02 Nov 2026 10:00:00 GMT</Last-Modified></Properties></Blob>`, name, len(a.blobs[name].content))
	}
	fmt.Fprint(w, `</Blobs></EnumerationResults>`)
}

// options reach the account by its key.
func (a *account) options() Options {
	return a.with(map[string]string{"accountKey": base64.StdEncoding.EncodeToString([]byte("0123456789abcdef"))})
}

// with reaches the account by these credentials.
func (a *account) with(credentials map[string]string) Options {
	a.Helper()
	credentials["blobEndpoint"] = a.URL
	raw, err := json.Marshal(credentials)
	if err != nil {
		a.Fatal(err)
	}
	return Options{Account: "mine", Bucket: "backups", Credentials: a.file("credentials", raw), CABundle: a.bundle()}
}

func (a *account) bundle() string {
	return a.file("ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw}))
}

func (a *account) file(name string, content []byte) string {
	a.Helper()
	file := filepath.Join(a.TempDir(), name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		a.Fatal(err)
	}
	return file
}

// open opens the account.
func (a *account) open(o Options) Store {
	a.Helper()
	s, err := Open(a.Context(), o)
	if err != nil {
		a.Fatal(err)
	}
	return s
}
