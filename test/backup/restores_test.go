//go:build backup

package backup

import (
	"bytes"
	"context"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/snapshot"
	etcdutl "go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/sidecar/etcdrestore"
)

// Variables by which a test has itself started as the program that restores, so that it can be killed.
const (
	restorerURL      = "DRILL_RESTORE_URL"
	restorerFolder   = "DRILL_RESTORE_FOLDER" // the volume
	restorerPrograms = "DRILL_RESTORE_PROGRAMS"
	restorerSecret   = "DRILL_RESTORE_SECRET"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(restorerURL); url != "" {
		if err := restoreHere(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// restoreHere is what the container does that restores in place.
func restoreHere(url string) error {
	volume := os.Getenv(restorerFolder)
	r := etcdrestore.Restore{URL: url, Template: filepath.Join(volume, "..", "etcd.yaml"), DataDir: filepath.Join(volume, "data"), MaxBytes: bundle.MaxSnapshot, Replace: true, Log: io.Discard,
		Fetch: func(ctx context.Context, url, shard, file string) error {
			out, err := exec.CommandContext(ctx, filepath.Join(os.Getenv(restorerPrograms), "hcp-cloud"), "etcd-fetch", "--url", url, "--shard", shard, "--output", file, "--secret-dir", os.Getenv(restorerSecret)).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		}}
	return r.Run(context.Background())
}

// restorer starts a restore into a volume, as a process of its own.
func (w *world) restorer(volume, url string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), restorerURL+"="+url, restorerFolder+"="+volume, restorerPrograms+"="+w.programs, restorerSecret+"="+w.secret)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the program that reads the storage goes with it
	cmd.Stderr = os.Stderr
	return cmd
}

// restoreKills ends restores at any moment. What is left is the data of before or that of the backup, and the next one ends.
func (w *world) restoreKills(url string, sum bundle.Summary, n int) {
	w.Run("When a restore in place is killed at any moment there should be the data of before or all of the backup's, and the next one should end", func(t *testing.T) {
		g := NewWithT(t)
		root := t.TempDir()
		volume := filepath.Join(root, "volume")
		data := filepath.Join(volume, "data")
		mark := filepath.Join(data, "before") // of the data of before
		begin := func() {
			g.Expect(os.RemoveAll(volume)).To(Succeed())
			g.Expect(os.MkdirAll(data, 0o700)).To(Succeed())
			g.Expect(os.WriteFile(mark, nil, 0o600)).To(Succeed())
		}
		g.Expect(os.WriteFile(filepath.Join(root, "etcd.yaml"), []byte("name: etcd-0\ndata-dir: "+data+"\ninitial-cluster: etcd-0=http://127.0.0.1:2380\ninitial-cluster-token: demo\n"), 0o600)).To(Succeed())
		begin()
		start := time.Now()
		g.Expect(w.restorer(volume, url).Run()).To(Succeed())
		length := time.Since(start)
		before, between, after := 0, 0, 0
		for i := range n {
			begin()
			cmd := w.restorer(volume, url)
			g.Expect(cmd.Start()).To(Succeed())
			timer := time.AfterFunc(time.Duration(mathrand.Float64()*1.1*float64(length)), func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) // it may have ended
			_ = cmd.Wait()
			timer.Stop()
			_, err := os.Stat(mark)
			_, whole := os.Stat(filepath.Join(data, "member", "snap", "db"))
			switch {
			case err == nil:
				before++
			case whole == nil:
				after++
			default:
				between++ // between two renames: the next one mends it
			}
			if whole == nil || i%10 == 0 {
				if whole != nil {
					g.Expect(w.restorer(volume, url).Run()).To(Succeed(), "kill point %d", i)
				}
				left, err := os.ReadDir(volume)
				g.Expect(err).NotTo(HaveOccurred())
				if whole != nil && len(left) != 1 {
					t.Errorf("kill point %d: the next restore leaves %v", i, left)
				}
				if i%10 == 0 { // as a test of its own, at whose end etcd ends
					t.Run(fmt.Sprintf("When it was killed %d times it should have every key", i+1), func(t *testing.T) { compare(t, w, startEtcd(t, data), sum.Revision) })
				}
			}
		}
		t.Logf("%d kill points in %s: %d left the data of before, %d nothing in its place, %d the backup's", n, length.Round(time.Millisecond), before, between, after)
	})
}

// compare looks for each key of a revision in another etcd.
func compare(t *testing.T, w *world, target *clientv3.Client, revision int64) {
	t.Helper()
	want, got := contents(t, w.etcd, revision), contents(t, target, 0)
	delete(got, "probe")
	if len(got) != len(want) {
		t.Errorf("there are %d keys, want %d", len(got), len(want))
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s is another one after the restore", k)
			return
		}
	}
}

// cost is what something took.
type cost struct {
	took, cpu time.Duration
	memory    int64 // MiB
}

func (c cost) String() string {
	text := fmt.Sprintf("%8s  %8s of CPU", c.took.Round(time.Millisecond), c.cpu.Round(time.Millisecond))
	if c.memory > 0 {
		text += fmt.Sprintf("  %4d MiB", c.memory)
	}
	return text
}

// costOf runs a program, which may start others.
func costOf(t *testing.T, cmd *exec.Cmd) cost {
	t.Helper()
	said := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = said, said
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	memory := watchMemory(cmd.Process.Pid)
	err := cmd.Wait()
	c := cost{took: time.Since(start), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), memory: memory()}
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return c
}

// watchMemory looks at a process until the function that it returns is called, and tells the most memory that it had, in MiB. Pages of files are left out, of which a
// system takes back what it needs; what wait4 says has them, and what the parent had when it started the process.
func watchMemory(pid int) (end func() int64) {
	most, stop, done := int64(0), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if err != nil {
				return // it has ended
			}
			for line := range strings.Lines(string(raw)) {
				if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "RssAnon:" {
					if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
						most = max(most, kib>>10)
					}
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() int64 { close(stop); <-done; return most }
}

// costHere is of something in this process, whose memory was not new.
func costHere(t *testing.T, do func() error) cost {
	t.Helper()
	runtime.GC()
	usage := func() time.Duration {
		u := syscall.Rusage{}
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	start, before := time.Now(), usage()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	return cost{took: time.Since(start), cpu: usage() - before}
}

// figures prints what a backup and a restore take, beside the code of etcdctl and etcdutl that does as much as they do.
func (w *world) figures(file string) {
	w.Run("When it is measured it should be told beside etcdctl", func(t *testing.T) {
		g := NewWithT(t)
		plain := filepath.Join(t.TempDir(), "plain.db")
		save := costHere(t, func() error {
			_, err := snapshot.SaveWithVersion(t.Context(), zap.NewNop(), clientv3.Config{Endpoints: w.etcd.Endpoints(), Logger: zap.NewNop()}, plain)
			return err
		})
		restore := costHere(t, func() error {
			return etcdutl.NewV3(zap.NewNop()).Restore(etcdutl.RestoreConfig{SnapshotPath: plain, OutputDataDir: filepath.Join(t.TempDir(), "data"), Name: "etcd-0", PeerURLs: []string{"http://127.0.0.1:2380"},
				InitialCluster: "etcd-0=http://127.0.0.1:2380", InitialClusterToken: "demo"})
		})
		upload := costOf(t, w.uploader(file, "measured"))
		w.clear(t, "measured")
		out, err := w.upload(file, "read", 0)
		g.Expect(err).NotTo(HaveOccurred())
		url, _ := told(t, out)
		root := t.TempDir()
		volume := filepath.Join(root, "volume")
		g.Expect(os.Mkdir(volume, 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(root, "etcd.yaml"), []byte("name: etcd-0\ndata-dir: "+filepath.Join(volume, "data")+"\ninitial-cluster: etcd-0=http://127.0.0.1:2380\ninitial-cluster-token: demo\n"), 0o600)).To(Succeed())
		ours := costOf(t, w.restorer(volume, url))
		info, err := os.Stat(file)
		g.Expect(err).NotTo(HaveOccurred())
		t.Logf("%s bytes\netcdctl snapshot save                %s\nseal, upload, read back, compare     %s\netcdutl snapshot restore             %s\nread, open, check, restore           %s",
			strconv.FormatInt(info.Size(), 10), save, upload, restore, ours)
	})
}
