//go:build e2e && upgrade

package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"
)

// keyChange is how long all API servers may take to know a key, to use it, and everything stored to be written again.
const keyChange = 10 * time.Minute

// changeKey gives the hosted cluster another key for its Secrets, and takes the old one away once nothing is encrypted with it.
func (u *upgrade) changeKey(t *testing.T) {
	const oldKey, newKey = "ha-etcd-encryption-key", "ha-second-key"
	m := management()
	calls := startCaller(t, u.kubeconfig)
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	m.applyYAML(t, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: clusters}\ndata: {key: %s}\n", newKey, base64.StdEncoding.EncodeToString(key)))
	before := u.activeKey(t)
	if before == "" {
		t.Fatal("there is no active key")
	}
	m.run(t, "patch", "hostedcluster", "-n", "clusters", "ha", "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"secretEncryption":{"aescbc":{"activeKey":{"name":%q},"backupKey":{"name":%q}}}}}`, newKey, oldKey))
	start := time.Now()
	eventually(t, keyChange, "everything to be encrypted with the new key", func() error {
		got, err := m.try(t, "get", "hostedcluster", "-n", "clusters", "ha", "-o", `jsonpath={.status.conditions[?(@.type=="EtcdDataEncryptionUpToDate")].status}`)
		if now := u.activeKey(t); err != nil || got != "True" || now == before {
			return errors.Join(fmt.Errorf("EtcdDataEncryptionUpToDate is %q and the active key %q", got, now), err)
		}
		return nil
	})
	t.Logf("the change of the key took %s", time.Since(start).Round(time.Second))
	m.run(t, "patch", "hostedcluster", "-n", "clusters", "ha", "--type=json", "-p", `[{"op":"remove","path":"/spec/secretEncryption/aescbc/backupKey"}]`)
	m.run(t, "delete", "secret", "-n", "clusters", oldKey)
	eventually(t, keyChange, "API servers without the old key", func() error {
		out, err := m.try(t, "get", "hostedcontrolplane", "-n", "clusters-ha", "ha", "-o", "jsonpath={.spec.secretEncryption.aescbc}")
		if want := fmt.Sprintf(`{"activeKey":{"name":%q}}`, newKey); err != nil || out != want {
			return errors.Join(fmt.Errorf("the HostedControlPlane has %s, want %s", out, want), err)
		}
		return nil
	})
	awaitRollouts(t, "clusters-ha", renewalTime)
	if got := u.hosted().run(t, "get", "secret", "hidden", "-o", "jsonpath={.data.token}"); got != base64.StdEncoding.EncodeToString([]byte("kept-too")) {
		t.Errorf("the Secret from before is %q", got)
	}
	calls.expectNoOutage(t, "change of the encryption key")
}

// activeKey identifies the key that all data is encrypted with.
func (u *upgrade) activeKey(t *testing.T) string {
	t.Helper()
	return management().run(t, "get", "hostedcontrolplane", "-n", "clusters-ha", "ha", "-o", "jsonpath={.status.secretEncryption.activeKey}")
}
