//go:build e2e && backup

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	storageAddress = "10.244.0.1:9000"
	backupTime     = 6 * time.Minute
	restoreTime    = 15 * time.Minute
)

// TestBackup saves a hosted cluster while it is written to, destroys it, makes it again of what was saved, and makes another one beside it.
func TestBackup(t *testing.T) {
	noCluster(t)
	b := &saving{acked: map[string]ack{}, end: t.Cleanup} // steps are subtests, and the storage has to outlive them
	inOrder(t, []step{
		{"When backups are a part of the installation a hosted cluster should have a worker and be written to", b.start},
		{"When it is saved all of it should be in the storage, sealed, and be read back", b.save},
		{"When a schedule is made it should say when the next backup is", b.schedule},
		{"When a backup is restored over a living cluster it should be refused, and nothing be written", b.refused},
		{"When the backup is verified it should be restored for a trial", b.verify},
		{"When the storage is a volume it should be saved there, and be verified", b.volume},
		{"When the backup is restored in place all that was acknowledged before it should be there, and workers and their pods go on", b.inPlace},
		{"When another cluster is made of it, it should have the data and an identity of its own", b.clone},
		{"When the cluster is destroyed and restored all that was acknowledged before the backup should be there", b.restore},
	})
}

// ack is what the API server said of a write.
type ack struct {
	uid      string
	revision int64
}

type saving struct {
	mu    sync.Mutex
	acked map[string]ack
	stop  context.CancelFunc
	url   string
	// revision is the newest in the backup.
	revision   int64
	kubeconfig string
	end        func(func())
	// highly is true for a control plane of which everything runs three times.
	highly bool
}

// times is how many members an etcd has, and API servers there are.
func (b *saving) times() int {
	if b.highly {
		return 3
	}
	return 1
}

func (b *saving) start(t *testing.T) {
	run(t, 25*time.Minute, "hypershift", "local", "up", "--state-dir", stateDir, "--skip-install", "--skip-demo")
	if out, err := install(t, "--tech-preview-no-upgrade"); err != nil {
		t.Fatalf("install: %v\n%s", err, out)
	}
	server := exec.Command(filepath.Join(root(t), "bin", "s3server"), "-listen", storageAddress)
	server.Stdout, server.Stderr = os.Stderr, os.Stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	b.end(func() { _ = errors.Join(server.Process.Kill(), server.Wait()) })
	management().applyYAML(t, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: backup-bucket, namespace: hypershift}
stringData:
  encryption-key: 0123456789abcdef0123456789abcdef
  credentials: |
    [default]
    aws_access_key_id = test
    aws_secret_access_key = test
    endpoint_url = http://%s
`, storageAddress))
	manifest := filepath.Join(t.TempDir(), "saved.yaml")
	policy := map[bool]string{false: "SingleReplica", true: "HighlyAvailable"}[b.highly]
	run(t, time.Minute, "hypershift", "create", "cluster", "local", "--name", "saved", "--release-image", releaseImage, "--node-pool-replicas", "1", "--control-plane-availability-policy", policy,
		kubeconfigFlag(), "--render", "--render-sensitive", "--render-into", manifest)
	content, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	// There is no flag for a shard. It is small, since the machine is.
	sharded := strings.Replace(string(content), "\n    managed:\n", fmt.Sprintf(`
    managed:
      shards:
      - {name: leases, replicas: %d, resources: [{apiGroup: coordination.k8s.io, resource: leases}]}
`, b.times()), 1)
	const request = "    resource-request-override.hypershift.openshift.io/etcd-leases.etcd: cpu=20m,memory=128Mi\n"
	if sharded == string(content) {
		t.Fatalf("the manifest has no managed etcd:\n%s", content)
	}
	if annotated := strings.Replace(sharded, "\n  annotations:\n    resource-request", "\n  annotations:\n"+request+"    resource-request", 1); annotated != sharded {
		sharded = annotated
	} else {
		sharded = strings.Replace(sharded, "kind: HostedCluster\nmetadata:\n", "kind: HostedCluster\nmetadata:\n  annotations:\n"+request, 1)
	}
	management().applyYAML(t, sharded)
	eventually(t, workersStart, "the hosted cluster", func() error {
		got, err := management().try(t, "get", "hostedcluster", "-n", "clusters", "saved", "-o", "jsonpath={.status.conditions[?(@.type=='Available')]}")
		if err != nil || !strings.Contains(got, `"status":"True"`) {
			return fmt.Errorf("Available is %s (%w)", got, err)
		}
		return nil
	})
	k := hostedKubectl(t, "saved")
	awaitNodes(t, k, 1)
	if members := management().run(t, "get", "pods", "-n", "clusters-saved", "-l", "app=etcd-leases", "-o", "name"); len(strings.Fields(members)) != b.times() {
		t.Fatalf("the shard has the members %q, want %d", members, b.times())
	}
	b.lease(t, k, "before")
	b.kubeconfig = k.kubeconfig
	b.write(t)
}

// lease writes an object into the shard.
func (b *saving) lease(t *testing.T, k kubectl, name string) {
	t.Helper()
	k.applyYAML(t, fmt.Sprintf(`
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: %s, namespace: default}
spec: {holderIdentity: %s}
`, name, name))
}

// leases looks at what the shard has after a restore: what it had before the backup, and nothing of after it.
func (b *saving) leases(t *testing.T, k kubectl) {
	t.Helper()
	if got := k.run(t, "get", "leases", "-n", "default", "-o", "jsonpath={.items[*].spec.holderIdentity}"); got != "before" {
		t.Errorf("the shard has the leases %q, want the one of before the backup", got)
	}
}

// write creates objects all the time, and notes each that was acknowledged.
func (b *saving) write(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", b.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.stop = cancel
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			name := fmt.Sprintf("written-%06d", i)
			m, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"name": name}}, metav1.CreateOptions{})
			if err != nil {
				continue
			}
			revision, _ := strconv.ParseInt(m.ResourceVersion, 10, 64) // it is etcd's
			b.mu.Lock()
			b.acked[name] = ack{string(m.UID), revision}
			b.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond): // a tenant, not a flood
			}
		}
	}()
}

var savedAt = regexp.MustCompile(`saved at (s3://\S+)`)
var atRevision = regexp.MustCompile(`revision (\d+), (\d+) keys`)

func (b *saving) save(t *testing.T) {
	start := time.Now()
	out := run(t, backupTime, "hypershift", "create", "backup", "saved", "--bucket", "backups", "--credentials", "backup-bucket", kubeconfigFlag())
	t.Logf("the backup took %s:\n%s", time.Since(start).Round(time.Second), out)
	url, revision := savedAt.FindStringSubmatch(out), atRevision.FindStringSubmatch(out)
	if url == nil || revision == nil {
		t.Fatalf("it does not say what was saved:\n%s", out)
	}
	b.url = url[1]
	b.revision, _ = strconv.ParseInt(revision[1], 10, 64) // digits
	if list := run(t, time.Minute, "hypershift", "get", "backups", "saved", kubeconfigFlag()); !strings.Contains(list, "BackupReadBack") || !strings.Contains(list, b.url) {
		t.Errorf("get backups says\n%s", list)
	}
	if !strings.Contains(out, "with its shards leases") {
		t.Errorf("it does not say that the shard was saved:\n%s", out)
	}
	b.lease(t, hostedKubectl(t, "saved"), "after")
	// The Job has gone, and with it what it was given.
	if left := management().run(t, "get", "role,rolebinding,networkpolicy", "-n", "clusters-saved", "-o", "name"); strings.Contains(left, "etcd-backup") {
		t.Errorf("left open: %s", left)
	}
}

func (b *saving) schedule(t *testing.T) {
	run(t, time.Minute, "hypershift", "create", "schedule", "saved", "--schedule", "@daily", "--keep", "3", "--bucket", "backups", "--credentials", "backup-bucket", kubeconfigFlag())
	eventually(t, 2*time.Minute, "the next time", func() error {
		got, err := management().try(t, "get", "hcpetcdbackup", "-n", "clusters-saved", "scheduled", "-o", `jsonpath={.status.conditions[?(@.type=="BackupScheduled")].message}`)
		if err != nil || !strings.Contains(got, "the next at") {
			return errors.Join(errors.New(got), err)
		}
		return nil
	})
	management().run(t, "delete", "hcpetcdbackup", "-n", "clusters-saved", "scheduled")
}

func (b *saving) refused(t *testing.T) {
	out, err := try(t, time.Minute, "hypershift", "restore", "--from", b.url, "--credentials", "backup-bucket", kubeconfigFlag())
	if err == nil || !strings.Contains(out, "HostedCluster clusters/saved exists") || !strings.Contains(out, "nothing was written") {
		t.Errorf("it ended with %v:\n%s", err, out)
	}
	out, err = try(t, time.Minute, "hypershift", "restore", "--from", b.url, "--credentials", "backup-bucket", "--encryption-key-file", filepath.Join(root(t), "go.mod"), kubeconfigFlag())
	if err == nil || !strings.Contains(out, "key must be 32 bytes") {
		t.Errorf("with a wrong key it ended with %v:\n%s", err, out)
	}
}

// volume saves into a claim of the operator's namespace.
func (b *saving) volume(t *testing.T) {
	management().applyYAML(t, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: backups, namespace: hypershift}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Secret
metadata: {name: backup-volume, namespace: hypershift}
stringData: {encryption-key: 0123456789abcdef0123456789abcdef, volume-claim: backups}
`)
	run(t, backupTime, "hypershift", "create", "backup", "saved", "--backup-name", "on-a-volume", "--bucket", "disk", "--credentials", "backup-volume", kubeconfigFlag())
	b.verified(t, "on-a-volume")
	management().run(t, "delete", "pvc", "-n", "hypershift", "backups", "--wait=false")
}

func (b *saving) verify(t *testing.T) {
	b.verified(t, strings.TrimSpace(management().run(t, "get", "hcpetcdbackup", "-n", "clusters-saved", "-o", "jsonpath={.items[0].metadata.name}")))
}

// verified has a backup restored for a trial.
func (b *saving) verified(t *testing.T, name string) {
	t.Helper()
	management().run(t, "annotate", "hcpetcdbackup", "-n", "clusters-saved", name, "hypershift.openshift.io/backup-verify=now")
	eventually(t, backupTime, "the verification", func() error {
		got, err := management().try(t, "get", "hcpetcdbackup", "-n", "clusters-saved", name, "-o", `jsonpath={.status.conditions[?(@.type=="BackupVerified")]}`)
		if err != nil || !strings.Contains(got, "BackupRestorable") {
			return errors.Join(errors.New(got), err)
		}
		return nil
	})
}

// inPlace replaces the data under a worker that goes on.
func (b *saving) inPlace(t *testing.T) {
	b.stop()
	k := hostedKubectl(t, "saved")
	machines := func() string {
		return management().run(t, "get", "machines", "-n", "clusters-saved", "-o", `jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {end}`)
	}
	nodes := func() string {
		return k.run(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {.status.nodeInfo.bootID} {end}`)
	}
	// What runs on the worker when the backup is made should run on: the containers are compared.
	pods := func() string {
		return k.run(t, "get", "pods", "-A", "-o", `jsonpath={range .items[?(@.status.phase=="Running")]}{.metadata.name} {.status.containerStatuses[*].containerID}{"\n"}{end}`)
	}
	machinesBefore, nodesBefore, podsBefore := machines(), nodes(), pods()
	args := []string{"restore", "--from", b.url, "--credentials", "backup-bucket", "--in-place", kubeconfigFlag()}
	if out, err := try(t, time.Minute, "hypershift", args...); err == nil || !strings.Contains(out, "add --yes") {
		t.Errorf("without --yes it ended with %v:\n%s", err, out)
	}
	start := time.Now()
	out := run(t, restoreTime, "hypershift", append(args, "--yes")...)
	t.Logf("the restore in place took %s:\n%s", time.Since(start).Round(time.Second), out)
	// At its end the control plane is started anew.
	eventually(t, restoreTime, "a kube-apiserver that was started anew", func() error {
		out, err := management().try(t, "get", "deployment", "-n", "clusters-saved", "kube-apiserver", "-o", "jsonpath={.spec.template.metadata.annotations} {.metadata.generation}={.status.observedGeneration} {.status.updatedReplicas}/{.status.readyReplicas}/{.status.replicas}")
		if err != nil || !strings.Contains(out, "hypershift.openshift.io/restart-date") || !strings.HasSuffix(out, strings.Replace(" N/N/N", "N", fmt.Sprint(b.times()), 3)) {
			return errors.Join(errors.New(out), err)
		}
		_, err = k.try(t, "get", "namespace", "default", "-o", "name")
		return err
	})
	b.compare(t, k)
	b.leases(t, k)
	// Leases of the backup are older: a new one is word of a kubelet that has met its API server again.
	eventually(t, restoreTime, "the worker's lease", func() error {
		out := k.run(t, "get", "leases", "-n", "kube-node-lease", "-o", "jsonpath={.items[*].spec.renewTime}")
		if renewed, err := time.Parse(time.RFC3339Nano, out); err != nil || renewed.Before(start) {
			return errors.Join(fmt.Errorf("renewed at %q, and the restore began at %s", out, start.UTC().Format(time.RFC3339)), err)
		}
		return nil
	})
	awaitNodes(t, k, 1)
	t.Logf("the worker is Ready after %s", time.Since(start).Round(time.Second))
	if got := machines(); got != machinesBefore {
		t.Errorf("machines were %s and are %s", machinesBefore, got)
	}
	if got := nodes(); got != nodesBefore {
		t.Errorf("nodes were %s and are %s", nodesBefore, got)
	}
	same, all := 0, 0
	now := pods()
	for line := range strings.Lines(podsBefore) {
		all++
		if strings.Contains(now, strings.TrimSpace(line)) {
			same++
		}
	}
	t.Logf("%d of %d pods have the same containers", same, all)
	if same == 0 && podsBefore != "" {
		t.Errorf("pods were\n%s\nand are\n%s", podsBefore, now)
	}
	for _, left := range []string{"secret/etcd-restore", "networkpolicy/etcd-restore", "pod/etcd-alone", "pod/etcd-leases-alone", "pod/etcd-prepare", "pod/etcd-leases-prepare"} {
		if out, err := management().try(t, "get", "-n", "clusters-saved", left); err == nil {
			t.Errorf("%s is left: %s", left, out)
		}
	}
}

func (b *saving) clone(t *testing.T) {
	start := time.Now()
	out := run(t, restoreTime, "hypershift", "clone", "--from", b.url, "--credentials", "backup-bucket", "--name", "copy", "--without-node-pools", kubeconfigFlag())
	t.Logf("the clone took %s:\n%s", time.Since(start).Round(time.Second), out)
	k := hostedKubectl(t, "copy")
	b.compare(t, k)
	b.leases(t, k)
	ca := func(name string) string {
		return management().run(t, "get", "secret", "-n", "clusters-"+name, "root-ca", "-o", "jsonpath={.data.ca\\.crt}")
	}
	if ca("copy") == ca("saved") {
		t.Errorf("the clone has the authority of the other cluster")
	}
	// Credentials of the other cluster are not taken here.
	if out, err := k.try(t, "--client-certificate", b.credential(t, "tls.crt"), "--client-key", b.credential(t, "tls.key"), "auth", "whoami"); err == nil {
		t.Errorf("the clone takes a certificate of the other cluster: %s", out)
	}
	if nodes := k.run(t, "get", "nodes", "-o", "name"); nodes != "" {
		t.Errorf("the clone has nodes of the other cluster: %s", nodes)
	}
	run(t, 5*time.Minute, "hypershift", "destroy", "cluster", "local", "--name", "copy", kubeconfigFlag())
}

// credential writes a part of the administrator's certificate of the saved cluster into a file.
func (b *saving) credential(t *testing.T, key string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), key)
	config, err := clientcmd.BuildConfigFromFlags("", b.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	content := config.CertData
	if key == "tls.key" {
		content = config.KeyData
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (b *saving) restore(t *testing.T) {
	run(t, 5*time.Minute, "hypershift", "destroy", "cluster", "local", "--name", "saved", kubeconfigFlag())
	dry := run(t, 2*time.Minute, "hypershift", "restore", "--from", b.url, "--credentials", "backup-bucket", "--dry-run", kubeconfigFlag())
	t.Log(dry)
	if out, err := management().try(t, "get", "hostedcluster", "-n", "clusters", "saved"); err == nil {
		t.Errorf("a dry run has written: %s", out)
	}
	start := time.Now()
	out := run(t, restoreTime, "hypershift", "restore", "--from", b.url, "--credentials", "backup-bucket", kubeconfigFlag())
	t.Logf("the restore took %s:\n%s", time.Since(start).Round(time.Second), out)
	k := hostedKubectl(t, "saved")
	b.compare(t, k)
	b.leases(t, k)
	awaitNodes(t, k, 1)
	// Who has an administrator's certificate from before goes on.
	if out, err := k.try(t, "--client-certificate", b.credential(t, "tls.crt"), "--client-key", b.credential(t, "tls.key"), "auth", "whoami"); err != nil {
		t.Errorf("a certificate from before is refused: %v\n%s", err, out)
	}
	if out, err := management().try(t, "get", "secret", "-n", "clusters-saved", "etcd-restore"); err == nil {
		t.Errorf("the key of the backup is left: %s", out)
	}
}

// compare looks for each object that was acknowledged up to the revision of the backup.
func (b *saving) compare(t *testing.T, k kubectl) {
	t.Helper()
	got := map[string]ack{}
	for line := range strings.Lines(k.run(t, "get", "configmaps", "-n", "default", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.metadata.resourceVersion} {.data.name}{"\n"}{end}`)) {
		fields := strings.Fields(line)
		if len(fields) != 4 || fields[0] != fields[3] {
			continue // one that isn't ours
		}
		revision, _ := strconv.ParseInt(fields[2], 10, 64) // it is etcd's
		got[fields[0]] = ack{fields[1], revision}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := 0
	for name, a := range b.acked {
		have, there := got[name]
		switch {
		case a.revision > b.revision:
			if there {
				t.Errorf("%s, of revision %d, is there, and the backup ends at %d", name, a.revision, b.revision)
			}
			continue
		case !there:
			t.Errorf("%s, acknowledged at revision %d, is lost; the backup ends at %d", name, a.revision, b.revision)
		case have != a:
			t.Errorf("%s was %v, is %v", name, a, have)
		}
		before++
	}
	t.Logf("%d objects were acknowledged up to revision %d, and %d after it", before, b.revision, len(b.acked)-before)
	if before == 0 {
		t.Error("nothing was written before the backup")
	}
}
