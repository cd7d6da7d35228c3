package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
)

func TestReadingFromS3(t *testing.T) {
	whole := bytes.Repeat([]byte("snapshot "), 10_000)
	sum := sha256.Sum256(whole)

	t.Run("When one bit of a small object is not what was stored it should say that it is damaged, and not ask for more", func(t *testing.T) {
		g := NewWithT(t)
		var asked atomic.Int32
		s := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			other := bytes.Clone(whole)
			other[len(other)/2] ^= 1
			w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
			w.Header().Set("X-Amz-Checksum-Sha256", base64.StdEncoding.EncodeToString(sum[:]))
			_, _ = w.Write(other)
		})
		_, err := read(t, s)
		g.Expect(err).To(MatchError(And(ContainSubstring("s3://backups/demo/1.db is damaged: 90000 of 90000 bytes were received"), ContainSubstring("checksum"))))
		g.Expect(asked.Load()).To(BeEquivalentTo(1))
	})

	t.Run("When the connection breaks in the middle it should go on where it broke, with the same object", func(t *testing.T) {
		g := NewWithT(t)
		var asked atomic.Int32
		s := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"one"`)
			if asked.Add(1) == 1 {
				w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
				_, _ = w.Write(whole[:50_000])
				return // net/http ends the connection of an answer that is too short
			}
			if r.Header.Get("Range") != "bytes=50000-" || r.Header.Get("If-Match") != `"one"` {
				http.Error(w, "asked for something else", http.StatusBadRequest)
				return
			}
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(whole[50_000:])
		})
		got, err := read(t, s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bytes.Equal(got, whole)).To(BeTrue(), "what was read is not what was stored")
		g.Expect(asked.Load()).To(BeEquivalentTo(2))
	})
}

// endpoint is a storage on loopback that answers as told.
func endpoint(t *testing.T, answer http.HandlerFunc) Store {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "credentials")
	text := strings.Join([]string{"[default]", "aws_access_key_id = a", "aws_secret_access_key = b", "endpoint_url = " + server.URL, ""}, "\n")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{Bucket: "backups", Region: "us-east-1", Credentials: file})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t *testing.T, s Store) ([]byte, error) {
	t.Helper()
	body, _, err := s.Get(t.Context(), "demo/1.db")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }() // it is only read
	return io.ReadAll(body)
}

// TestEncryptionByS3: with a key of AWS KMS every file is asked to be encrypted with it, also one that is sent in parts; without one nothing is asked for.
func TestEncryptionByS3(t *testing.T) {
	const key = "arn:aws:kms:eu-west-1:123456789012:key/a"
	for name, c := range map[string]struct {
		key, algorithm string
		size           int
	}{
		"When there is a key a small file should be encrypted with it":          {key, "aws:kms", 10},
		"When there is a key a file in parts should be encrypted with it":       {key, "aws:kms", partSize + 1},
		"When there is no key the storage should encrypt as it does by itself":  {"", "", 10},
		"When there is no key a file in parts should be as the storage does it": {"", "", partSize + 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var begun atomic.Int32
			s := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // what it says doesn't matter
				q := r.URL.Query()
				// The request that begins a file says how it is encrypted; parts don't.
				if r.Method == http.MethodPost && q.Has("uploads") || r.Method == http.MethodPut && !q.Has("partNumber") {
					begun.Add(1)
					if got := r.Header.Get("X-Amz-Server-Side-Encryption") + " " + r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"); got != c.algorithm+" "+c.key {
						t.Errorf("asked for encryption with %q", got)
					}
				}
				w.Header().Set("ETag", `"one"`)
				switch {
				case q.Has("uploads"):
					fmt.Fprint(w, `<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>`)
				case r.Method == http.MethodPost:
					fmt.Fprint(w, `<CompleteMultipartUploadResult><ETag>"one"</ETag></CompleteMultipartUploadResult>`)
				}
			})
			b := s.(bucket)
			b.kms = c.key
			g.Expect(b.Put(t.Context(), "demo/1.db.enc", bytes.NewReader(make([]byte, c.size)))).To(Succeed())
			g.Expect(begun.Load()).To(BeEquivalentTo(1))
		})
	}
}
