package testenv

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

const apiServer = "kube-apiserver"

var others atomic.Int32

// StartOther starts another API server, for tests of what works between two clusters. It has only Kubernetes' own kinds, and ends with
// the test.
func StartOther(t testing.TB) *Env {
	t.Helper()
	return startBeside(t, (*Env).startServers)
}

// StartOwn starts another API server with the definitions that Start's has, for one test alone, with which it ends. Its etcd gets etcdFlags besides the usual ones.
func StartOwn(t testing.TB, etcdFlags ...string) *Env {
	t.Helper()
	return startBeside(t, func(e *Env) error {
		e.etcdFlags = etcdFlags
		return e.setUp(seedFolder(e.binary))
	})
}

func startBeside(t testing.TB, start func(*Env) error) *Env {
	t.Helper()
	binary := KubeBinary(t)
	dir, err := workDir()
	if err != nil {
		t.Fatal(err)
	}
	env := &Env{binary: binary, dir: filepath.Join(dir, fmt.Sprintf("other-%d", others.Add(1)))}
	if err := os.MkdirAll(env.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(env.stop)
	if err := start(env); err != nil {
		t.Fatalf("starting another API server: %v", err)
	}
	return env
}

// KillServer ends the API server at once, as a crash does. Its etcd keeps running.
func (e *Env) KillServer() {
	i := slices.IndexFunc(e.processes, func(p *Process) bool { return filepath.Base(p.LogFile) == apiServer+".log" })
	if i < 0 {
		return
	}
	e.processes[i].Kill()
	e.processes = slices.Delete(e.processes, i, i+1)
}

// RestartServer starts the API server again, at the same address, and waits until it is ready.
func (e *Env) RestartServer(t testing.TB) {
	t.Helper()
	if err := e.run(apiServer, e.commands[apiServer]...); err != nil {
		t.Fatal(err)
	}
	if err := e.waitReady(); err != nil {
		t.Fatal(err)
	}
}

// Compact makes etcd forget all that was before, so that whoever wants to go on from there is told that it is gone.
func (e *Env) Compact(t testing.TB) {
	t.Helper()
	var status struct{ Header struct{ Revision string } }
	for _, ask := range []struct {
		path, body string
	}{{"/v3/maintenance/status", "{}"}, {"/v3/kv/compaction", `{"revision": "%s", "physical": true}`}} {
		body := ask.body
		if strings.Contains(body, "%s") {
			body = fmt.Sprintf(body, status.Header.Revision)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.etcdURL+ask.path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("etcd answers %s with %s", ask.path, resp.Status)
		}
		if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
			t.Fatal(err)
		}
	}
}
