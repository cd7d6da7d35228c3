package upload

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestUploadRefused(t *testing.T) {
	half := filepath.Join(t.TempDir(), "snapshot.db")
	NewWithT(t).Expect(os.WriteFile(half, []byte("half of it"), 0o600)).To(Succeed())
	for want, u := range map[string]Upload{
		"is incomplete": {StorageType: "S3", Bucket: "b", Region: "r", Path: half},
		`unsupported storage type: "GCS" (must be S3 or AzureBlob)`:      {StorageType: "GCS"},
		"--azure-container is required for storage type AzureBlob":       {StorageType: "AzureBlob"},
		"--azure-storage-account is required for storage type AzureBlob": {StorageType: "AzureBlob", Container: "c"},
		"--aws-bucket is required for storage type S3":                   {StorageType: "S3"},
		"--aws-region is required for storage type S3":                   {StorageType: "S3", Bucket: "b"},
		"snapshot file not accessible: stat /none/such":                  {StorageType: "S3", Bucket: "b", Region: "r", Path: "/none/such"},
	} {
		t.Run("When it can't work it should say: "+want, func(t *testing.T) {
			NewWithT(t).Expect(u.Run(t.Context(), os.Stdout, os.Stderr)).To(MatchError(ContainSubstring(want)))
		})
	}
}

func TestKey(t *testing.T) {
	t.Run("When the prefix ends with a slash there should be one", func(t *testing.T) {
		u := Upload{Path: "/a/snapshot.db", KeyPrefix: "demo/", Now: func() time.Time { return time.Unix(1764000000, 0) }}
		NewWithT(t).Expect(u.objectName()).To(Equal("demo/1764000000.db"))
	})
}
