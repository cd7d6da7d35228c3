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

	t.Run("When the storage doesn't say how long an object is its length should be unknown, and not nothing", func(t *testing.T) {
		g := NewWithT(t)
		s := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush() // what follows comes in chunks
			_, _ = w.Write(whole)
		})
		body, size, err := s.Get(t.Context(), "demo/1.db")
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = body.Close() }() // it is only read
		g.Expect(size).To(BeEquivalentTo(-1))
		got, err := io.ReadAll(body)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bytes.Equal(got, whole)).To(BeTrue(), "what was read is not what was stored")
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
	const key, other = "arn:aws:kms:eu-west-1:123456789012:key/a", "arn:aws:kms:eu-west-1:123456789012:key/b"
	const inParts = 2*partSize + 1 // the library sends smaller files as a whole
	for name, c := range map[string]struct {
		key  string
		size int
		// answered are algorithm and key that the storage says it encrypts with; says is the refusal's text, and removed what then removes the file.
		answered      [2]string
		says, removed string
	}{
		"When there is a key a small file should be encrypted with it":          {key: key, size: 10, answered: [2]string{"aws:kms", key}},
		"When there is a key a file in parts should be encrypted with it":       {key: key, size: inParts, answered: [2]string{"aws:kms", key}},
		"When the storage names the key by its id it should be the same":        {key: key, size: 10, answered: [2]string{"aws:kms", "a"}},
		"When there is no key the storage should encrypt as it does by itself":  {size: 10, answered: [2]string{"aws:kms", other}},
		"When there is no key a file in parts should be as the storage does it": {size: inParts},
		"When the storage overlooks the key a small file should be refused, and removed": {key: key, size: 10, says: "does not encrypt with " + key + ": it says nothing about encryption",
			removed: "DELETE /backups/demo/1.db.enc?x-id=DeleteObject"},
		"When the storage overlooks the key a file in parts should be refused, and given up": {key: key, size: inParts, says: "it says nothing about encryption",
			removed: "DELETE /backups/demo/1.db.enc?uploadId=1&x-id=AbortMultipartUpload"},
		"When the storage has another algorithm the file should be refused": {key: key, size: 10, answered: [2]string{"AES256"}, says: "it says that it encrypts with AES256. Use a storage",
			removed: "DELETE /backups/demo/1.db.enc?x-id=DeleteObject"},
		"When the storage has another key the file should be refused": {key: key, size: 10, answered: [2]string{"aws:kms", other}, says: "it says that it encrypts with aws:kms " + other,
			removed: "DELETE /backups/demo/1.db.enc?x-id=DeleteObject"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var begun, parts atomic.Int32
			var removed atomic.Value
			s := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // what it says doesn't matter
				q := r.URL.Query()
				wish := r.Header.Get("X-Amz-Server-Side-Encryption") + " " + r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id")
				w.Header().Set("ETag", `"one"`)
				switch {
				case r.Method == http.MethodDelete:
					removed.Store(r.Method + " " + r.URL.String())
				case r.Method == http.MethodPost && q.Has("uploads") || r.Method == http.MethodPut && !q.Has("partNumber"):
					// The request that begins a file says how it is encrypted.
					begun.Add(1)
					if want := map[bool]string{true: "aws:kms " + c.key, false: " "}[c.key != ""]; wish != want {
						t.Errorf("asked for encryption with %q", wish)
					}
					for i, name := range []string{"X-Amz-Server-Side-Encryption", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"} {
						if c.answered[i] != "" {
							w.Header().Set(name, c.answered[i])
						}
					}
				case wish != " ":
					t.Errorf("%s %s says that the file is to be encrypted, which S3 refuses: %q", r.Method, r.URL, wish)
				case q.Has("partNumber"):
					parts.Add(1)
				}
				switch {
				case q.Has("uploads"):
					fmt.Fprint(w, `<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>`)
				case r.Method == http.MethodPost:
					fmt.Fprint(w, `<CompleteMultipartUploadResult><ETag>"one"</ETag></CompleteMultipartUploadResult>`)
				}
			})
			b := s.(bucket)
			b.kms = c.key
			err := b.Put(t.Context(), "demo/1.db.enc", bytes.NewReader(make([]byte, c.size)))
			g.Expect(begun.Load()).To(BeEquivalentTo(1))
			if c.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(parts.Load()).To(BeEquivalentTo(map[bool]int32{true: 3, false: 0}[c.size == inParts]))
				g.Expect(removed.Load()).To(BeNil())
				return
			}
			g.Expect(err).To(MatchError(And(HavePrefix("writing s3://backups/demo/1.db.enc: "), ContainSubstring(c.says))))
			g.Expect(removed.Load()).To(Equal(c.removed))
			g.Expect(parts.Load()).To(BeZero(), "no part should be sent that stays unencrypted")
		})
	}
}
