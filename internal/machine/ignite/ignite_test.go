package ignite

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	types "github.com/coreos/ignition/v2/config/v3_5/types"
	. "github.com/onsi/gomega"
)

func quiet(string, ...any) {}

// dataURL is content as a source.
func dataURL(content string) string {
	return "data:;base64," + base64.StdEncoding.EncodeToString([]byte(content))
}

func object(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i].(string)] = pairs[i+1]
	}
	return out
}

func config(pairs ...any) map[string]any {
	cfg := object(pairs...)
	if cfg["ignition"] == nil {
		cfg["ignition"] = object("version", "3.2.0")
	}
	return cfg
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// pointer is user data that names a config at a TLS server, as NodePools have it.
func pointer(server *httptest.Server, path string) map[string]any {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return config("ignition", object(
		"version", "3.2.0",
		"config", object("merge", []any{object("source", server.URL+path, "httpHeaders", []any{object("name", "Authorization", "value", "Bearer abc")})}),
		"security", object("tls", object("certificateAuthorities", []any{object("source", dataURL(string(ca)))})),
	))
}

func tlsServer(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestRender(t *testing.T) {
	whole := config("storage", object("files", []any{object("path", "/etc/a", "contents", object("source", dataURL("a")))}))
	t.Run("When user data names a config it should fetch it with headers and authority, and merge it", func(t *testing.T) {
		g := NewWithT(t)
		var seen http.Header
		server := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
			seen = r.Header
			_, _ = w.Write(encode(t, whole))
		})
		user := pointer(server, "/ignition")
		user["storage"] = object("files", []any{object("path", "/etc/b")})
		cfg, err := (&Renderer{Say: quiet}).Render(t.Context(), encode(t, user))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cfg.Storage.Files).To(HaveLen(2))
		g.Expect(seen.Get("Authorization")).To(Equal("Bearer abc"))
		g.Expect(seen.Get("Accept")).To(HavePrefix("application/vnd.coreos.ignition+json;version=3."))
	})
	t.Run("When the server's authority is not named it should refuse", func(t *testing.T) {
		g := NewWithT(t)
		server := tlsServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(encode(t, whole)) })
		user := pointer(server, "/")
		delete(user["ignition"].(map[string]any), "security")
		_, err := (&Renderer{Say: quiet}).Render(t.Context(), encode(t, user))
		g.Expect(err).To(MatchError(ContainSubstring("certificate")))
	})
	t.Run("When the server refuses it should tell the status, and nothing of what the server says", func(t *testing.T) {
		g := NewWithT(t)
		server := tlsServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNetworkAuthenticationRequired)
			_, _ = w.Write([]byte("hostile text"))
		})
		_, err := (&Renderer{Say: quiet}).Render(t.Context(), encode(t, pointer(server, "/")))
		var status *StatusError
		g.Expect(errors.As(err, &status)).To(BeTrue())
		g.Expect(status.Code).To(Equal(511))
		g.Expect(err.Error()).NotTo(Or(ContainSubstring("hostile"), ContainSubstring("abc")))
	})
	t.Run("When configs name each other without end it should stop", func(t *testing.T) {
		g := NewWithT(t)
		var server *httptest.Server
		n := 0
		server = tlsServer(t, func(w http.ResponseWriter, _ *http.Request) {
			n++
			_, _ = w.Write(encode(t, pointer(server, "/again")))
		})
		_, err := (&Renderer{Say: quiet}).Render(t.Context(), encode(t, pointer(server, "/")))
		g.Expect(err).To(MatchError(ContainSubstring("more than 8 deep")))
		g.Expect(n).To(BeNumerically("<", 12))
	})
	t.Run("When many configs are named it should stop", func(t *testing.T) {
		g := NewWithT(t)
		var merge []any
		for i := range maxConfigs + 1 {
			merge = append(merge, object("source", dataURL(string(encode(t, config()))+strings.Repeat(" ", i))))
		}
		_, err := (&Renderer{Say: quiet}).Render(t.Context(), encode(t, config("ignition", object("version", "3.2.0", "config", object("merge", merge)))))
		g.Expect(err).To(MatchError(ContainSubstring("more than 32 configs")))
	})
	t.Run("When a config never ends it should stop reading", func(t *testing.T) {
		g := NewWithT(t)
		server := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
			chunk := bytes.Repeat([]byte(" "), 1<<20)
			for r.Context().Err() == nil {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		})
		_, err := (&Renderer{Say: quiet}).Render(t.Context(), encode(t, pointer(server, "/")))
		g.Expect(err).To(MatchError(ContainSubstring("more than the 33554432 bytes")))
	})
	t.Run("When a compressed config is a bomb it should stop", func(t *testing.T) {
		g := NewWithT(t)
		var bomb bytes.Buffer
		z := gzip.NewWriter(&bomb)
		zeros := make([]byte, 1<<20)
		for range 64 {
			_, _ = z.Write(zeros)
		}
		_ = z.Close()
		ref := object("source", dataURL(bomb.String()), "compression", "gzip")
		_, err := (&Renderer{Say: quiet}).Render(t.Context(), encode(t, config("ignition", object("version", "3.2.0", "config", object("merge", []any{ref})))))
		g.Expect(err).To(MatchError(ContainSubstring("more than the")))
	})
	for name, tc := range map[string]struct{ user, err string }{
		"When user data is no JSON it should say so":     {user: "#cloud-config", err: "parsing the user data"},
		"When its version is unknown it should say so":   {user: `{"ignition":{"version":"9.9.0"}}`, err: "parsing the user data"},
		"When a path is relative it should refuse":       {user: `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"etc/x"}]}}`, err: "path not absolute"},
		"When disks are to be prepared it should refuse": {user: `{"ignition":{"version":"3.2.0"},"storage":{"disks":[{"device":"/dev/sda","wipeTable":true}]}}`, err: "storage.disks"},
		"When a source has a foreign scheme it should refuse": {
			user: `{"ignition":{"version":"3.2.0","config":{"merge":[{"source":"tftp://x/y"}]}}}`, err: `scheme "tftp"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&Renderer{Say: quiet}).Render(t.Context(), []byte(tc.user))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.err)))
		})
	}
}

func write(t *testing.T, root string, cfg map[string]any) (*Result, error) {
	t.Helper()
	parsed, err := (&Renderer{Say: quiet}).Render(t.Context(), encode(t, cfg))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return (&Writer{Root: root, Say: quiet}).Write(context.Background(), parsed)
}

func TestWrite(t *testing.T) {
	t.Run("When a config has everything it should write it with modes and names", func(t *testing.T) {
		g := NewWithT(t)
		root := t.TempDir()
		sum := sha512.Sum512([]byte("checked"))
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		_, _ = z.Write([]byte("small"))
		_ = z.Close()
		result, err := write(t, root, config(
			"storage", object(
				"directories", []any{object("path", "/d/inner", "mode", 0o700), object("path", "/d", "mode", 0o1777)},
				"files", []any{
					object("path", "/d/inner/secret", "mode", 0o600, "contents", object("source", dataURL("s3cret"))),
					object("path", "/usr/bin/tool", "mode", 0o4755, "contents", object("source", dataURL("checked"), "verification", object("hash", "sha512-"+hex.EncodeToString(sum[:])))),
					object("path", "/zipped", "contents", object("source", dataURL(zipped.String()), "compression", "gzip"), "append", []any{object("source", dataURL("+more"))}),
				},
				"links", []any{object("path", "/d/link", "target", "../zipped"), object("path", "/d/hard", "target", "/zipped", "hard", true)},
			),
			"systemd", object("units", []any{
				object("name", "a.service", "enabled", true, "contents", "[Service]\nExecStart=/bin/true\n", "dropins", []any{object("name", "10.conf", "contents", "[Service]\n")}),
				object("name", "m.service", "mask", true, "enabled", true),
				object("name", "b.service", "enabled", false, "contents", "x"),
			}),
		))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.Units).To(Equal([]string{"a.service"}))
		for file, want := range map[string]string{"d/inner/secret": "s3cret", "usr/bin/tool": "checked", "zipped": "small+more", "d/link": "small+more", "d/hard": "small+more", "etc/systemd/system/a.service.d/10.conf": "[Service]\n"} {
			data, err := os.ReadFile(filepath.Join(root, file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(data)).To(Equal(want), file)
		}
		for file, want := range map[string]fs.FileMode{"d": fs.ModeDir | fs.ModeSticky | 0o777, "d/inner": fs.ModeDir | 0o700, "d/inner/secret": 0o600, "usr/bin/tool": fs.ModeSetuid | 0o755, "zipped": 0o644} {
			info, err := os.Stat(filepath.Join(root, file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(info.Mode()).To(Equal(want), file)
		}
		g.Expect(os.Readlink(filepath.Join(root, "etc/systemd/system/m.service"))).To(Equal("/dev/null"))
	})
	t.Run("When content has another hash it should write nothing there, and work at the next attempt", func(t *testing.T) {
		g := NewWithT(t)
		root := t.TempDir()
		content := "wrong"
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(content)) }))
		t.Cleanup(server.Close)
		sum := sha512.Sum512([]byte("right"))
		parsed, err := (&Renderer{Say: quiet}).Render(t.Context(), encode(t, config("storage", object("files", []any{
			object("path", "/first", "contents", object("source", dataURL("1"))),
			object("path", "/f", "contents", object("source", server.URL, "verification", object("hash", "sha512-"+hex.EncodeToString(sum[:])))),
		}))))
		g.Expect(err).NotTo(HaveOccurred())
		w := &Writer{Root: root, Say: quiet}
		_, err = w.Write(t.Context(), parsed)
		g.Expect(err).To(MatchError(ContainSubstring("file /f: the content has another hash")))
		g.Expect(filepath.Join(root, "f")).NotTo(BeAnExistingFile())
		content = "right"
		_, err = w.Write(t.Context(), parsed)
		g.Expect(err).NotTo(HaveOccurred(), "the first file is there already, but it is ours")
	})
	t.Run("When content is compressed its hash should be that of what is written", func(t *testing.T) {
		g := NewWithT(t)
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		_, _ = z.Write([]byte("small"))
		_ = z.Close()
		with := func(hashed []byte) map[string]any {
			sum := sha512.Sum512(hashed)
			return config("storage", object("files", []any{object("path", "/f", "contents",
				object("source", dataURL(zipped.String()), "compression", "gzip", "verification", object("hash", "sha512-"+hex.EncodeToString(sum[:]))))}))
		}
		root := t.TempDir()
		_, err := write(t, root, with([]byte("small")))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.ReadFile(filepath.Join(root, "f"))).To(BeEquivalentTo("small"))
		root = t.TempDir()
		_, err = write(t, root, with(zipped.Bytes()))
		g.Expect(err).To(MatchError(ContainSubstring("another hash than the config says")))
		g.Expect(filepath.Join(root, "f")).NotTo(BeAnExistingFile())
	})
	t.Run("When a link leads out of the root it should not follow it", func(t *testing.T) {
		g := NewWithT(t)
		root, outside := t.TempDir(), t.TempDir()
		g.Expect(os.Symlink(outside, filepath.Join(root, "out"))).To(Succeed())
		_, err := write(t, root, config("storage", object("files", []any{object("path", "/out/f", "contents", object("source", dataURL("x")))})))
		g.Expect(err).To(HaveOccurred())
		g.Expect(filepath.Join(outside, "f")).NotTo(BeAnExistingFile())
	})
	t.Run("When something is there already it should be replaced only on demand", func(t *testing.T) {
		g := NewWithT(t)
		root := t.TempDir()
		g.Expect(os.WriteFile(filepath.Join(root, "f"), []byte("old"), 0o600)).To(Succeed())
		file := object("path", "/f", "contents", object("source", dataURL("new")))
		_, err := write(t, root, config("storage", object("files", []any{file})))
		g.Expect(err).To(MatchError(ContainSubstring("overwrite is not set")))
		file["overwrite"] = true
		_, err = write(t, root, config("storage", object("files", []any{file})))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.ReadFile(filepath.Join(root, "f"))).To(Equal([]byte("new")))
	})
	t.Run("When something is in the way the next attempt should refuse it as well", func(t *testing.T) {
		g := NewWithT(t)
		a := newAttempts(t, "files", []any{object("path", "/f", "contents", object("source", dataURL("new")))})
		a.put("f", "old")
		for range 3 {
			g.Expect(a.write()).To(MatchError(ContainSubstring("overwrite is not set")))
			g.Expect(a.get("f")).To(Equal("old"))
		}
	})
	t.Run("When a folder was there before an attempt its content should be there after the next", func(t *testing.T) {
		g := NewWithT(t)
		a := newAttempts(t, "directories", []any{object("path", "/d")})
		a.put("d/theirs", "old")
		a.failOnce()
		g.Expect(a.get("d/theirs")).To(Equal("old"))
	})
	t.Run("When a folder was made by an attempt the next should keep it", func(t *testing.T) {
		g := NewWithT(t)
		a := newAttempts(t, "directories", []any{object("path", "/d", "overwrite", true, "mode", 0o700)})
		a.put("d/before", "old")
		g.Expect(a.write()).NotTo(Succeed())
		g.Expect(filepath.Join(a.Root, "d/before")).NotTo(BeAnExistingFile())
		a.put("d/meanwhile", "new")
		a.mend()
		g.Expect(a.write()).To(Succeed())
		g.Expect(a.get("d/meanwhile")).To(Equal("new"))
		info, err := os.Stat(filepath.Join(a.Root, "d"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(Equal(fs.FileMode(0o700)))
	})
	t.Run("When an attempt has appended to a file the next should append to what was there before", func(t *testing.T) {
		g := NewWithT(t)
		a := newAttempts(t, "files", []any{object("path", "/f", "append", []any{object("source", dataURL("+1")), object("source", dataURL("+2"))})})
		a.put("f", "old")
		a.failOnce()
		g.Expect(a.get("f")).To(Equal("old+1+2"))
	})
	t.Run("When something can't be appended to a file what was there before should stay", func(t *testing.T) {
		g := NewWithT(t)
		a := newAttempts(t)
		a.config = config("storage", object("files", []any{object("path", "/f", "append", []any{object("source", dataURL("+1")), a.checked()})}))
		a.put("f", "old")
		g.Expect(a.write()).NotTo(Succeed())
		g.Expect(a.get("f")).To(HavePrefix("old"))
		a.mend()
		g.Expect(a.write()).To(Succeed())
		g.Expect(a.get("f")).To(Equal("old+1right"))
	})
	t.Run("When something can't be appended to a file of the config the next attempt should write all of it", func(t *testing.T) {
		g := NewWithT(t)
		a := newAttempts(t)
		a.config = config("storage", object("files", []any{object("path", "/f", "contents", object("source", dataURL("1")), "append", []any{object("source", dataURL("+2")), a.checked()})}))
		g.Expect(a.write()).NotTo(Succeed())
		a.mend()
		g.Expect(a.write()).To(Succeed())
		g.Expect(a.get("f")).To(Equal("1+2right"))
	})
	t.Run("When an owner is named it should be looked up in the machine's own files", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can give files away")
		}
		g := NewWithT(t)
		root := t.TempDir()
		g.Expect(os.MkdirAll(filepath.Join(root, "etc"), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(root, "etc/passwd"), []byte("root:x:0:0::/:/bin/sh\ncore:x:1234:1::/:/bin/sh\n"), 0o644)).To(Succeed())
		_, err := write(t, root, config("storage", object("files", []any{object("path", "/f", "user", object("name", "core"), "group", object("id", 77))})))
		g.Expect(err).NotTo(HaveOccurred())
		info, err := os.Stat(filepath.Join(root, "f"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect([]uint32{info.Sys().(*syscall.Stat_t).Uid, info.Sys().(*syscall.Stat_t).Gid}).To(Equal([]uint32{1234, 77}))
		_, err = write(t, root, config("storage", object("files", []any{object("path", "/g", "user", object("name", "nobody-here"))})))
		g.Expect(err).To(MatchError(ContainSubstring("nobody-here is not in /etc/passwd")))
	})
}

// attempts are those of one Writer with one config, whose last file has the wrong content until it is mended.
type attempts struct {
	Writer
	t      *testing.T
	config map[string]any
	source string
	mended atomic.Bool
}

func newAttempts(t *testing.T, storage ...any) *attempts {
	a := &attempts{t: t, Writer: Writer{Root: t.TempDir(), Say: quiet}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(map[bool]string{false: "wrong", true: "right"}[a.mended.Load()]))
	}))
	t.Cleanup(server.Close)
	a.source = server.URL
	all := object(storage...)
	files, _ := all["files"].([]any)
	last := object("path", "/zz", "contents", a.checked())
	all["files"] = append(files, last)
	a.config = config("storage", all)
	return a
}

// checked is a resource that has the right content once it is mended.
func (a *attempts) checked() map[string]any {
	sum := sha512.Sum512([]byte("right"))
	return object("source", a.source, "verification", object("hash", "sha512-"+hex.EncodeToString(sum[:])))
}

func (a *attempts) mend() { a.mended.Store(true) }

func (a *attempts) write() error {
	a.t.Helper()
	parsed, err := (&Renderer{Say: quiet}).Render(a.t.Context(), encode(a.t, a.config))
	NewWithT(a.t).Expect(err).NotTo(HaveOccurred())
	_, err = a.Write(a.t.Context(), parsed)
	return err
}

// failOnce is an attempt that fails at the last file, and one that doesn't.
func (a *attempts) failOnce() {
	a.t.Helper()
	g := NewWithT(a.t)
	g.Expect(a.write()).To(MatchError(ContainSubstring("file /zz")))
	a.mend()
	g.Expect(a.write()).To(Succeed())
}

func (a *attempts) put(file, content string) {
	a.t.Helper()
	g := NewWithT(a.t)
	g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(a.Root, file)), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(a.Root, file), []byte(content), 0o644)).To(Succeed())
}

func (a *attempts) get(file string) string {
	a.t.Helper()
	data, err := os.ReadFile(filepath.Join(a.Root, file))
	NewWithT(a.t).Expect(err).NotTo(HaveOccurred())
	return string(data)
}

func TestCheckCounts(t *testing.T) {
	g := NewWithT(t)
	cfg := types.Config{}
	for i := range maxEntries + 1 {
		cfg.Storage.Files = append(cfg.Storage.Files, types.File{Node: types.Node{Path: fmt.Sprintf("/f%d", i)}})
	}
	g.Expect(check(cfg)).To(MatchError(ContainSubstring("more than 10000")))
}

func TestExcluded(t *testing.T) {
	for rule, want := range map[string]bool{"*": true, "api.example.com": true, ".example.com": true, "example.com": true, "ample.com": false, "10.0.0.0/8": false, "": false} {
		NewWithT(t).Expect(excluded("api.example.com", rule)).To(Equal(want), rule)
	}
	NewWithT(t).Expect(excluded("10.1.2.3", "10.0.0.0/8")).To(BeTrue())
}

func FuzzRender(f *testing.F) {
	f.Add(`{"ignition":{"version":"3.2.0","config":{"merge":[{"source":"data:,%7B%22ignition%22%3A%7B%22version%22%3A%223.1.0%22%7D%7D"}]}},"storage":{"files":[{"path":"/a/../b","contents":{"source":"data:,x"}}]}}`)
	f.Fuzz(func(t *testing.T, data string) {
		if strings.Contains(data, "http") {
			return // fuzzing asks nobody
		}
		cfg, err := (&Renderer{Say: quiet}).Render(t.Context(), []byte(data))
		if err != nil {
			return
		}
		if b, err := json.Marshal(cfg); err == nil && strings.Contains(string(b), "http") {
			return
		}
		root := t.TempDir()
		_, _ = (&Writer{Root: filepath.Join(root), Say: quiet}).Write(t.Context(), cfg)
	})
}
