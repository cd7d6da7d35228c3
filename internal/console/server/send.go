package server

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"hcp.internal/platform/internal/console/assets"
)

// worthIt is from how many bytes on an answer is compressed.
const worthIt = 1 << 10

// send writes an answer, compressed if the browser takes that, or that nothing changed since it asked last.
func send(w http.ResponseWriter, r *http.Request, raw []byte, kind string) {
	h := w.Header()
	tag := tagOf(raw)
	h.Set("ETag", tag)
	h.Set("Vary", "Accept-Encoding, Authorization")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", kind)
	if len(raw) >= worthIt && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		raw = compress(raw, gzip.BestSpeed)
	}
	_, _ = w.Write(raw) // the browser is gone
}

func tagOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

func compress(raw []byte, level int) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, level) // a level that there is
	_, _ = z.Write(raw)                    // memory takes all
	_ = z.Close()
	return b.Bytes()
}

// file is one of the program for the browser.
type file struct {
	raw, packed []byte
	kind, tag   string
}

// static serves the program for the browser. Addresses of pages, which are the browser's business, all lead to index.html.
func static() http.Handler {
	files := map[string]file{}
	err := fs.WalkDir(assets.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(assets.Files, name)
		if err != nil {
			return err
		}
		files["/"+name] = file{raw, compress(raw, gzip.BestCompression), mime.TypeByExtension(path.Ext(name)), tagOf(raw)}
		return nil
	})
	if err != nil {
		panic(err) // of what is embedded
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := files[r.URL.Path]
		if !ok {
			if path.Ext(r.URL.Path) == ".js" || path.Ext(r.URL.Path) == ".css" {
				http.NotFound(w, r)
				return
			}
			f = files["/index.html"]
		}
		h := w.Header()
		h.Set("Cache-Control", "no-cache") // asked for again each time, and answered with a line when it is the same
		h.Set("ETag", f.tag)
		h.Set("Vary", "Accept-Encoding")
		if r.Header.Get("If-None-Match") == f.tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		h.Set("Content-Type", f.kind)
		raw := f.raw
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			raw = f.packed
		}
		_, _ = w.Write(raw) // the browser is gone
	})
}
