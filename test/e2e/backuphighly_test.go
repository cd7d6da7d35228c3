//go:build e2e && backup

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestBackupHighlyAvailable is about a control plane with three members of etcd, three of a shard, and three API servers: its data is replaced in place, under a worker that goes on.
func TestBackupHighlyAvailable(t *testing.T) {
	noCluster(t)
	b := &saving{acked: map[string]ack{}, end: t.Cleanup, highly: true}
	inOrder(t, []step{
		{"When backups are a part of the installation a highly available hosted cluster should have a worker and be written to", b.start},
		{"When it is saved all of it should be in the storage, sealed, and be read back", b.save},
		{"When the snapshot of the shard can't be read all members should go on with the data of before, and nothing be left beside it", b.givenUp},
		{"When the backup is restored in place all members should have what was acknowledged before it, and workers and their pods go on", b.inPlace},
		{"When it is over each etcd should have three members that agree", b.members},
	})
}

// givenUp has the storage lose the shard's part of another backup, while it is restored.
func (b *saving) givenUp(t *testing.T) {
	b.stop()
	k := hostedKubectl(t, "saved")
	held := k.run(t, "get", "configmaps", "-n", "default", "-o", "jsonpath={.items[*].metadata.name}")
	done := make(chan struct{})
	var out string
	var err error
	go func() {
		defer close(done)
		out, err = try(t, restoreTime, "hypershift", "restore", "--from", b.url, "--credentials", "backup-bucket", "--in-place", "--yes", kubeconfigFlag())
	}()
	// The command reads the backup before it writes anything: what fails is what the pods read.
	eventually(t, restoreTime, "members that are stopped", func() error {
		got, err := management().try(t, "get", "statefulset", "-n", "clusters-saved", "etcd", "-o", "jsonpath={.spec.replicas}")
		if err != nil || got != "0" {
			return errors.Join(fmt.Errorf("%s members are wanted", got), err)
		}
		return nil
	})
	b.storage(t, http.MethodPost, "kind=flip&match=.etcd-leases.db.enc&times=100")
	<-done
	b.storage(t, http.MethodDelete, "")
	t.Logf("it ended with %v:\n%s", err, out)
	if err == nil || !strings.Contains(out, "the previous data is unchanged") {
		t.Fatalf("it should have been given up")
	}
	eventually(t, restoreTime, "the data of before", func() error {
		now, err := k.try(t, "get", "configmaps", "-n", "default", "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil || now != held {
			return errors.Join(errors.New("other objects are there"), err)
		}
		return nil
	})
	for _, etcd := range []string{"etcd", "etcd-leases"} {
		if left := b.folders(t, etcd); left != "data" {
			t.Errorf("on the volume of %s-0 are %s, want data alone", etcd, left)
		}
	}
}

// storage asks the server of S3 for faults.
func (b *saving) storage(t *testing.T, method, query string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+storageAddress+"/-/fault?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // there is nothing in it
}

// folders are what the volume of the first member of an etcd has.
func (b *saving) folders(t *testing.T, etcd string) string {
	t.Helper()
	volume := management().run(t, "get", "pvc", "-n", "clusters-saved", "data-"+etcd+"-0", "-o", "jsonpath={.spec.volumeName}")
	path := management().run(t, "get", "pv", volume, "-o", "jsonpath={.spec.local.path}{.spec.hostPath.path}{.spec.csi.volumeAttributes.path}")
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatalf("the volume of %s: %v", etcd, err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// members looks whether every member of every etcd serves.
func (b *saving) members(t *testing.T) {
	for _, etcd := range []string{"etcd", "etcd-leases"} {
		eventually(t, restoreTime, "three members of "+etcd, func() error {
			got, err := management().try(t, "get", "statefulset", "-n", "clusters-saved", etcd, "-o", "jsonpath={.spec.replicas}/{.status.readyReplicas}/{.status.updatedReplicas}")
			if err != nil || got != "3/3/3" {
				return errors.Join(fmt.Errorf("wanted, ready and up to date are %s", got), err)
			}
			return nil
		})
	}
}
