//go:build e2e && backup

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	azcontainer "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// Azurite stands for a storage account of Azure, at an address that pods and this machine reach. The account is in the path of its URL.
const (
	blobAddress   = "10.244.0.1:10000"
	blobAccount   = "mine"
	blobContainer = "backups"
	blobEndpoint  = "https://" + blobAddress + "/" + blobAccount
	// sealedWith is what files are encrypted with before they leave the Job.
	sealedWith = "fedcba9876543210fedcba9876543210"
)

var (
	blobKey  = base64.StdEncoding.EncodeToString([]byte("the key of the account of Azurite"))
	inAzure  = regexp.MustCompile(`saved at (https://\S+)`)
	toCreate = []string{"create", "backup", "saved", "--storage-account", blobAccount, "--credentials"}
)

// TestBackupAzure saves a hosted cluster in Azure Blob Storage by Jobs, has a Job read what was saved, destroys the cluster, and makes it again.
func TestBackupAzure(t *testing.T) {
	noCluster(t)
	b := &savingInAzure{test: t}
	inOrder(t, []step{
		{"When backups are a part of the installation there should be a storage account of Azure, and a hosted cluster", b.start},
		{"When the storage refuses a backup it should be said why, and what to do", b.refused},
		{"When it is saved all of it should be in the container, sealed, and be read back", b.save},
		{"When the backup is verified it should be restored for a trial", b.verify},
		{"When all is over no key should be in a log or in an object that isn't a Secret", b.silent},
		{"When the cluster is destroyed and restored it should have what it had at the backup, and nothing of after it", b.restore},
	})
}

type savingInAzure struct {
	saving
	// test outlives the steps, and so does the storage.
	test      *testing.T
	container *azcontainer.Client
	url       string
	before    string // UID of what was written before the backup
}

func (b *savingInAzure) start(t *testing.T) {
	run(t, 25*time.Minute, "hypershift", "local", "up", "--state-dir", stateDir, "--skip-install", "--skip-demo")
	if out, err := install(t, "--tech-preview-no-upgrade"); err != nil {
		t.Fatalf("install: %v\n%s", err, out)
	}
	authority := b.startAzurite(t)
	for name, key := range map[string]string{"backup-container": blobKey, "wrong-key": base64.StdEncoding.EncodeToString([]byte("another key"))} {
		management().applyYAML(t, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: hypershift}
stringData:
  encryption-key: %s
  credentials: '{"accountKey": %q, "blobEndpoint": %q}'
data:
  ca-bundle.crt: %s
`, name, sealedWith, key, blobEndpoint, base64.StdEncoding.EncodeToString(authority)))
	}
	run(t, workersStart, "hypershift", "create", "cluster", "local", "--name", "saved", "--release-image", releaseImage, "--node-pool-replicas", "0", "--wait", kubeconfigFlag())
	b.before = b.write(t, "before")
}

// startAzurite runs Azurite as a storage that is trusted by a certificate of its own, and makes the container. `make backup-storages` installs it.
func (b *savingInAzure) startAzurite(t *testing.T) (authority []byte) {
	t.Helper()
	script := filepath.Join(root(t), "bin", "azurite", "node_modules", "azurite", "dist", "src", "blob", "main.js")
	if _, err := os.Stat(script); err != nil {
		t.Fatalf("Azurite is not installed; make backup-storages installs it: %v", err)
	}
	dir := b.test.TempDir()
	host, port, _ := net.SplitHostPort(blobAddress) // it is ours
	authority, key := servingCertificate(t, host)
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if err := errors.Join(os.WriteFile(certFile, authority, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
		t.Fatal(err)
	}
	// It knows neither the newest version of the API nor sums of CRC-64, which it is to overlook.
	server := exec.Command("node", script, "--blobHost", host, "--blobPort", port, "--location", filepath.Join(dir, "blobs"), "--cert", certFile, "--key", keyFile,
		"--silent", "--skipApiVersionCheck", "--loose", "--disableTelemetry")
	server.Env = append(os.Environ(), "AZURITE_ACCOUNTS="+blobAccount+":"+blobKey)
	server.Stdout, server.Stderr = os.Stderr, os.Stderr
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	b.test.Cleanup(func() { _ = errors.Join(server.Process.Kill(), server.Wait()) })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	credential, err := blob.NewSharedKeyCredential(blobAccount, blobKey)
	if err != nil {
		t.Fatal(err)
	}
	trusting := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	b.container, err = azcontainer.NewClientWithSharedKeyCredential(blobEndpoint+"/"+blobContainer, credential,
		&azcontainer.ClientOptions{ClientOptions: policy.ClientOptions{Transport: trusting, Retry: policy.RetryOptions{MaxRetries: -1}}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the container in Azurite", func() error {
		_, err := b.container.Create(t.Context(), nil)
		return err
	})
	return authority
}

// write makes an object in the hosted cluster, and gives its UID.
func (b *savingInAzure) write(t *testing.T, name string) string {
	t.Helper()
	k := hostedKubectl(t, "saved")
	k.run(t, "create", "configmap", "-n", "default", name)
	return k.run(t, "get", "configmap", "-n", "default", name, "-o", "jsonpath={.metadata.uid}")
}

// create asks for a backup, and waits for its end.
func (b *savingInAzure) create(t *testing.T, secret, container, name string) (string, error) {
	t.Helper()
	return try(t, backupTime, "hypershift", append(slices.Clone(toCreate), secret, "--container", container, "--backup-name", name, kubeconfigFlag())...)
}

func (b *savingInAzure) refused(t *testing.T) {
	for _, c := range []struct{ secret, container, name, want string }{
		{"backup-container", "elsewhere", "no-container", "create the container, or correct spec.storage.azureBlob.container"},
		// Azure says AuthenticationFailed, and Azurite this.
		{"wrong-key", blobContainer, "wrong-key", "AuthorizationFailure (the firewall of the storage account refuses this network, or the identity may not do this"},
	} {
		out, err := b.create(t, c.secret, c.container, c.name)
		if err == nil || !strings.Contains(out, "BackupFailed") || !strings.Contains(out, c.want) {
			t.Errorf("%s ended with %v:\n%s\nwant BackupFailed, and %q", c.name, err, out, c.want)
		}
	}
	if blobs := b.blobs(t); len(blobs) > 0 {
		t.Errorf("backups that failed have left %q", blobs)
	}
}

func (b *savingInAzure) save(t *testing.T) {
	start := time.Now()
	out, err := b.create(t, "backup-container", blobContainer, "in-azure")
	if err != nil {
		t.Fatalf("it ended with %v:\n%s", err, out)
	}
	t.Logf("the backup took %s:\n%s", time.Since(start).Round(time.Second), out)
	url := inAzure.FindStringSubmatch(out)
	if url == nil || !strings.HasPrefix(url[1], blobEndpoint+"/"+blobContainer+"/clusters/saved/") || !strings.Contains(out, "sealed with key ") {
		t.Fatalf("it doesn't say that it was saved in the container, sealed:\n%s", out)
	}
	b.url = url[1]
	if list := run(t, time.Minute, "hypershift", "get", "backups", "saved", kubeconfigFlag()); !strings.Contains(list, "BackupReadBack") || !strings.Contains(list, b.url) {
		t.Errorf("get backups says\n%s", list)
	}
	if said := management().run(t, "get", "hostedcluster", "-n", "clusters", "saved", "-o", "jsonpath={.status.lastSuccessfulEtcdBackupURL}"); said != b.url {
		t.Errorf("the HostedCluster says that its newest backup is at %q, want %q", said, b.url)
	}
	stem := strings.TrimSuffix(strings.TrimPrefix(b.url, blobEndpoint+"/"+blobContainer+"/"), ".db.enc")
	if blobs := b.blobs(t); !slices.Equal(blobs, []string{stem + ".db.enc", stem + ".json", stem + ".objects"}) {
		t.Errorf("the container has %q, want a snapshot, its manifest and the objects of %s", blobs, stem)
	}
	b.write(t, "after")
}

// blobs are the names of what is in the container, sorted.
func (b *savingInAzure) blobs(t *testing.T) []string {
	t.Helper()
	var names []string
	for pages := b.container.NewListBlobsFlatPager(nil); pages.More(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Segment.BlobItems {
			names = append(names, *item.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (b *savingInAzure) verify(t *testing.T) { b.verified(t, "in-azure") }

// silent looks for keys where people read: the Jobs and their pods are still there.
func (b *savingInAzure) silent(t *testing.T) {
	texts := map[string]string{
		"an object":                      management().run(t, "get", "hcpetcdbackups,jobs,pods,events", "-A", "-o", "yaml"),
		"the log of a Job that saves":    management().run(t, "logs", "-n", "hypershift", "-l", "app=etcd-backup", "--all-containers", "--tail=-1"),
		"the log of a Job that verifies": management().run(t, "logs", "-n", "hypershift", "-l", "app=etcd-verify", "--all-containers", "--tail=-1"),
		"the log of the operator":        management().run(t, "logs", "-n", "hypershift", "deployment/operator", "--all-containers", "--tail=-1"),
	}
	for where, text := range texts {
		for _, key := range []string{blobKey, sealedWith, base64.StdEncoding.EncodeToString([]byte(sealedWith))} {
			if strings.Contains(text, key) {
				t.Errorf("%s has the key %s", where, key)
			}
		}
	}
	if !strings.Contains(texts["an object"], b.url) {
		t.Error("there is no object that names the backup: what was looked at is not what is there")
	}
}

func (b *savingInAzure) restore(t *testing.T) {
	run(t, 5*time.Minute, "hypershift", "destroy", "cluster", "local", "--name", "saved", kubeconfigFlag())
	start := time.Now()
	out := run(t, restoreTime, "hypershift", "restore", "--from", b.url, "--credentials", "backup-container", kubeconfigFlag())
	t.Logf("the restore took %s:\n%s", time.Since(start).Round(time.Second), out)
	k := hostedKubectl(t, "saved")
	if got := k.run(t, "get", "configmap", "-n", "default", "before", "-o", "jsonpath={.metadata.uid}"); got != b.before {
		t.Errorf("the UID of what was written before the backup is %q, want %q", got, b.before)
	}
	if got := k.run(t, "get", "configmap", "-n", "default", "after", "--ignore-not-found", "-o", "name"); got != "" {
		t.Errorf("%s, which was written after the backup, is there", got)
	}
	for _, left := range []string{"secret/etcd-restore", "networkpolicy/etcd-restore"} {
		if got := management().run(t, "get", "-n", "clusters-saved", left, "--ignore-not-found", "-o", "name"); got != "" {
			t.Errorf("%s is left", got)
		}
	}
}
