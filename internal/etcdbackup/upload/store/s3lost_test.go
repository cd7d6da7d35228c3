package store

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

// lossy is a bucket for one object. It keeps what it is given, and the answer to the request that made it gets lost.
type lossy struct {
	mu sync.Mutex
	// begun are the headers that the object is to have, made those that it has; nil: there is none.
	begun, made http.Header
	removed     bool
	// again is what it says when the request that made the object comes again.
	again string
	// blind: nobody may look at the object. unencrypted: it isn't encrypted as it was asked to be.
	blind, unencrypted bool
}

func (l *lossy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // what it says doesn't matter
	l.mu.Lock()
	defer l.mu.Unlock()
	q := r.URL.Query()
	w.Header().Set("ETag", `"one"`)
	copied := func(from http.Header) {
		for _, name := range []string{"X-Amz-Meta-Upload", "X-Amz-Server-Side-Encryption", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"} {
			if v := from.Get(name); v != "" && (name == "X-Amz-Meta-Upload" || !l.unencrypted) {
				w.Header().Set(name, v)
			}
		}
	}
	switch {
	case r.Method == http.MethodHead && l.blind:
		w.WriteHeader(http.StatusForbidden)
	case r.Method == http.MethodHead:
		copied(l.made)
	case r.Method == http.MethodDelete:
		l.removed = l.removed || !q.Has("uploadId") // parts that are given up are no object
	case q.Has("uploads"):
		l.begun = r.Header
		copied(r.Header)
		fmt.Fprint(w, `<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>`)
	case q.Has("partNumber"):
	case l.made != nil:
		w.WriteHeader(map[string]int{"PreconditionFailed": http.StatusPreconditionFailed, "NoSuchUpload": http.StatusNotFound}[l.again])
		fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", l.again)
	default:
		l.made = r.Header
		if q.Has("uploadId") {
			l.made = l.begun
		}
		panic(http.ErrAbortHandler) // net/http ends the connection
	}
}

func TestLostAnswerOfS3(t *testing.T) {
	const key, inParts = "arn:aws:kms:eu-west-1:123456789012:key/a", 2*partSize + 1
	for name, c := range map[string]struct {
		bucket  *lossy
		key     string
		size    int
		want    string // of the error; empty: there is none
		removed bool
	}{
		"When the answer to a small file is lost the file should be known as ours":                  {&lossy{again: "PreconditionFailed"}, "", 10, "", false},
		"When the answer to a file in parts is lost the file should be known as ours":               {&lossy{again: "PreconditionFailed"}, "", inParts, "", false},
		"When the parts have been put together and are no more the file should be known as ours":    {&lossy{again: "NoSuchUpload"}, "", inParts, "", false},
		"When the file is encrypted with the key it should be known as ours":                        {&lossy{again: "PreconditionFailed"}, key, 10, "", false},
		"When the file was not encrypted with the key it should be refused, and removed":            {&lossy{again: "PreconditionFailed", unencrypted: true}, key, 10, "does not encrypt with " + key, true},
		"When nobody may look whose file it is it should be refused, and left alone":                {&lossy{again: "PreconditionFailed", blind: true}, "", 10, "two clusters must not share a keyPrefix", false},
		"When somebody else's file has the name it should be refused, and left alone":               {&lossy{again: "PreconditionFailed", made: http.Header{}}, "", 10, "two clusters must not share a keyPrefix", false},
		"When somebody else's file has the name of one in parts it should be refused, and not ours": {&lossy{again: "PreconditionFailed", made: http.Header{"X-Amz-Meta-Upload": {"another"}}}, "", inParts, "two clusters must not share a keyPrefix", false},
	} {
		t.Run(name, func(t *testing.T) {
			g, l := NewWithT(t), c.bucket
			b := endpoint(t, l.ServeHTTP).(bucket)
			b.kms = c.key
			err := b.Put(t.Context(), "demo/1.db.enc", bytes.NewReader(make([]byte, c.size)))
			if c.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(And(HavePrefix("writing s3://backups/demo/1.db.enc: "), ContainSubstring(c.want))))
			}
			if c.want != "" && c.key == "" {
				g.Expect(err).To(MatchError(ErrExists))
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			g.Expect(l.removed).To(Equal(c.removed))
		})
	}
}
