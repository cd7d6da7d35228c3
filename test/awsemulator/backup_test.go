//go:build aws

package awsemulator

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/etcdbackup/upload"
)

// snapshotOf is a file that begins and ends as a snapshot of etcd does.
func snapshotOf(t *testing.T, size int) (path string, content []byte) {
	t.Helper()
	content = make([]byte, size)
	_, _ = rand.Read(content) // never fails
	binary.LittleEndian.PutUint32(content[16:], 0xED0CDAED)
	sum := sha256.Sum256(content)
	content = append(content, sum[:]...)
	path = filepath.Join(t.TempDir(), "snapshot.db")
	NewWithT(t).Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	return path, content
}

func TestBackup(t *testing.T) {
	e := Start(t)
	e.Use(t)
	g := NewWithT(t)
	cfg, err := awsconfig.LoadDefaultConfig(t.Context(), awsconfig.WithRegion("us-east-1"))
	g.Expect(err).NotTo(HaveOccurred())
	client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	_, err = client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("backups")})
	g.Expect(err).NotTo(HaveOccurred())
	// As in the Secret: keys and the endpoint, and nothing of it in the environment.
	credentials := filepath.Join(t.TempDir(), "credentials")
	g.Expect(os.WriteFile(credentials, []byte("[default]\naws_access_key_id = a\naws_secret_access_key = b\nendpoint_url = "+e.URL+"\n"), 0o600)).To(Succeed())
	t.Setenv("AWS_ENDPOINT_URL", "")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	second := int64(1764000000)
	put := func(t *testing.T, path string, change func(*upload.Upload)) (string, error) {
		second++
		now := time.Unix(second, 0)
		u := upload.Upload{Path: path, StorageType: "S3", Bucket: "backups", Region: "us-east-1", Credentials: credentials, KeyPrefix: "demo/",
			Result: filepath.Join(t.TempDir(), "result"), Now: func() time.Time { return now }}
		if change != nil {
			change(&u)
		}
		var out bytes.Buffer
		err := u.Run(t.Context(), &out, io.Discard)
		if err == nil {
			told, err := os.ReadFile(u.Result)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(string(told) + "\n").To(Equal(out.String()))
		}
		return strings.TrimSpace(out.String()), err
	}
	stored := func(t *testing.T, url string) []byte {
		got, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("backups"), Key: aws.String(strings.TrimPrefix(url, "s3://backups/"))})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		defer got.Body.Close()
		raw, err := io.ReadAll(got.Body)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return raw
	}
	for name, size := range map[string]int{"small": 1 << 20, "in parts": 40 << 20} {
		t.Run("When a snapshot is "+name+" it should arrive as it is", func(t *testing.T) {
			g := NewWithT(t)
			path, content := snapshotOf(t, size)
			url, err := put(t, path, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(url).To(MatchRegexp(`^s3://backups/demo/17640000\d\d\.db$`))
			g.Expect(bytes.Equal(stored(t, url), content)).To(BeTrue())
		})
	}
	for name, size := range map[string]int{"small": 1 << 20, "in parts": 20 << 20} {
		t.Run("When a key is named and a snapshot is "+name+" it should be stored as encrypted with it", func(t *testing.T) {
			g := NewWithT(t)
			const key = "arn:aws:kms:us-east-1:123456789012:key/a"
			path, content := snapshotOf(t, size)
			url, err := put(t, path, func(u *upload.Upload) { u.KMSKey = key })
			g.Expect(err).NotTo(HaveOccurred())
			head, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String("backups"), Key: aws.String(strings.TrimPrefix(url, "s3://backups/"))})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(head.ServerSideEncryption)).To(Equal("aws:kms"))
			g.Expect(aws.ToString(head.SSEKMSKeyId)).To(Equal(key))
			g.Expect(bytes.Equal(stored(t, url), content)).To(BeTrue())
		})
	}
	t.Run("When the storage is busy for a while it should arrive all the same", func(t *testing.T) {
		g := NewWithT(t)
		path, content := snapshotOf(t, 20<<20)
		e.Fail(Fault{Service: "s3", Times: 3, Code: "SlowDown", Status: 503})
		defer e.Heal()
		url, err := put(t, path, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bytes.Equal(stored(t, url), content)).To(BeTrue())
	})
	path, _ := snapshotOf(t, 1<<20)
	for name, tc := range map[string]struct {
		fault  Fault
		change func(*upload.Upload)
		want   []string
	}{
		"When there is no bucket it should say so":           {change: func(u *upload.Upload) { u.Bucket = "none" }, want: []string{"NoSuchBucket", "create the bucket, or correct spec.storage.s3.bucket"}},
		"When the credentials may not it should name rights": {fault: Fault{Service: "s3", Code: "AccessDenied", Status: 403}, want: []string{"AccessDenied", "s3:PutObject"}},
		"When an object is there it should be left alone":    {fault: Fault{Service: "s3", Code: "PreconditionFailed", Status: 412}, want: []string{"two clusters must not share a keyPrefix"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if tc.fault.Code != "" {
				e.Fail(tc.fault)
				defer e.Heal()
			}
			_, err := put(t, path, tc.change)
			for _, want := range tc.want {
				g.Expect(err).To(MatchError(ContainSubstring(want)))
			}
			g.Expect(err.Error()).NotTo(ContainSubstring("aws_secret"))
		})
	}
}
