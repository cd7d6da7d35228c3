//go:build aws

package awsemulator

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/etcdbackup/upload"
	"hcp.internal/platform/internal/etcdbackup/upload/store"
	"hcp.internal/platform/internal/testenv"
)

// Headers that ask S3 for encryption, and that it answers with.
const (
	sseHeader    = "X-Amz-Server-Side-Encryption"
	sseKeyHeader = "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"
)

// Secrets that must be seen nowhere.
const (
	sealingKey = "0123456789abcdef0123456789abcdef"
	secretKey  = "the-secret-access-key"
)

// savings has what the last container of a backup's Job is given: snapshots of an etcd, which is sent in parts, and of a shard, and sealed objects.
type savings struct {
	*testing.T
	e   *Emulator
	s3  *s3.Client
	dir string
	// seen is all that programs have said, and sent what was in the addresses and headers of requests.
	seen, sent strings.Builder
}

func newSavings(t *testing.T) *savings {
	t.Helper()
	g := NewWithT(t)
	e := Start(t)
	s := &savings{T: t, e: e, dir: t.TempDir(), s3: s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: &e.URL, UsePathStyle: true, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})}
	s.etcd("snapshot.db", 20<<20)
	s.etcd("etcd-events.db", 1<<10)
	s.write("key", sealingKey)
	s.write("meta", `{"backup":"clusters-demo/one","cluster":{"namespace":"clusters","name":"demo","uid":"1"},"shards":[{"name":"events"}]}`)
	objects, err := bundle.Objects{HostedCluster: &hyperv1.HostedCluster{}}.Seal(bundle.Key(sealingKey), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	s.write("objects", string(objects))
	s.credentials(e.URL)
	return s
}

func (s *savings) write(name, content string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
		s.Fatal(err)
	}
}

// credentials are as in the Secret, for an endpoint.
func (s *savings) credentials(endpoint string) {
	s.write("credentials", "[default]\naws_access_key_id = a\naws_secret_access_key = "+secretKey+"\nendpoint_url = "+endpoint+"\n")
}

// etcd saves one that holds so many bytes.
func (s *savings) etcd(file string, size int) {
	s.Helper()
	g := NewWithT(s.T)
	ports, err := testenv.FreePorts(1)
	g.Expect(err).NotTo(HaveOccurred())
	address := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	p, err := testenv.StartProcess(testenv.KubeBinary(s.T), s.TempDir(), "etcd", nil, "--name=etcd-0", "--data-dir="+filepath.Join(s.TempDir(), "data"),
		"--listen-client-urls="+address, "--advertise-client-urls="+address, "--listen-peer-urls=http://127.0.0.1:0", "--log-level=warn")
	g.Expect(err).NotTo(HaveOccurred())
	defer p.Kill()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop()})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = c.Close() }()
	value := make([]byte, min(size, 1<<20))
	for i := range size / len(value) {
		_, _ = rand.Read(value) // never fails
		g.Eventually(func() error {
			ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
			defer cancel()
			_, err := c.Put(ctx, fmt.Sprint("/filled/", i), string(value))
			return err
		}).WithTimeout(time.Minute).Should(Succeed(), p.Tail)
	}
	r, err := c.Snapshot(s.Context())
	g.Expect(err).NotTo(HaveOccurred())
	content, err := io.ReadAll(r)
	g.Expect(err).NotTo(HaveOccurred())
	s.write(file, string(content))
}

// bucket makes one that encrypts by itself as told; nil: as moto does.
func (s *savings) bucket(t *testing.T, name string, by *s3types.ServerSideEncryptionByDefault) {
	t.Helper()
	g := NewWithT(t)
	_, err := s.s3.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name})
	g.Expect(err).NotTo(HaveOccurred())
	if by != nil {
		_, err = s.s3.PutBucketEncryption(t.Context(), &s3.PutBucketEncryptionInput{Bucket: &name, ServerSideEncryptionConfiguration: &s3types.ServerSideEncryptionConfiguration{
			Rules: []s3types.ServerSideEncryptionRule{{ApplyServerSideEncryptionByDefault: by}}}})
		g.Expect(err).NotTo(HaveOccurred())
	}
	s.forget()
}

// forget has the next calls be the first ones.
func (s *savings) forget() {
	for _, c := range s.e.Calls() {
		fmt.Fprintln(&s.sent, c, c.Params, c.Header)
	}
	s.e.Forget()
}

// upload does what the Job's last container does.
func (s *savings) upload(t *testing.T, bucket, key string) (url string, _ bundle.Summary, _ error) {
	t.Helper()
	at := func(name string) string { return filepath.Join(s.dir, name) }
	u := upload.Upload{Path: at("snapshot.db"), StorageType: "S3", Bucket: bucket, Region: "us-east-1", KMSKey: key, Credentials: at("credentials"), KeyFile: at("key"), Meta: at("meta"), Objects: at("objects"),
		KeyPrefix: "clusters/demo", Result: filepath.Join(t.TempDir(), "result"), Now: time.Now}
	var out bytes.Buffer
	err := u.Run(t.Context(), io.MultiWriter(&out, &s.seen), &s.seen)
	fmt.Fprintln(&s.seen, err)
	url, rest, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	sum := bundle.Summary{}
	if err == nil {
		err = json.Unmarshal([]byte(rest), &sum)
	}
	return url, sum, err
}

// verify does what the Job does that reads a backup.
func (s *savings) verify(t *testing.T, url string) error {
	t.Helper()
	v := upload.Verification{Store: store.Options{Region: "us-east-1", Credentials: filepath.Join(s.dir, "credentials")}, URL: url, KeyFile: filepath.Join(s.dir, "key"), Scratch: t.TempDir(), Result: filepath.Join(t.TempDir(), "result")}
	err := v.Run(t.Context(), &s.seen)
	fmt.Fprintln(&s.seen, err)
	return err
}

// stored are the names in a bucket with what S3 says that each is encrypted with.
func (s *savings) stored(t *testing.T, bucket string) map[string]string {
	t.Helper()
	g := NewWithT(t)
	list, err := s.s3.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	g.Expect(err).NotTo(HaveOccurred())
	out := map[string]string{}
	for _, o := range list.Contents {
		head, err := s.s3.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: o.Key})
		g.Expect(err).NotTo(HaveOccurred())
		out[*o.Key] = strings.TrimSpace(string(head.ServerSideEncryption) + " " + aws.ToString(head.SSEKMSKeyId))
	}
	open, err := s.s3.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &bucket})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(open.Uploads).To(BeEmpty(), "parts of a file are left, and cost money")
	return out
}

// asked are what the writes since Forget asked for, by action: the distinct values, sorted.
func asked(calls []Call) map[string][]string {
	out := map[string][]string{}
	for _, c := range calls {
		if c.Service != "s3" || !c.Mutating {
			continue
		}
		action, wish := c.Action, strings.TrimSpace(c.Header.Get(sseHeader)+" "+c.Header.Get(sseKeyHeader))
		if c.Header.Get("X-Amz-Copy-Source") != "" {
			action = "CopyObject"
		}
		if !slices.Contains(out[action], wish) {
			out[action] = append(out[action], wish)
		}
	}
	return out
}

// filesOf are those of a backup, each with the same encryption.
func filesOf(url, encryption string) map[string]string {
	_, name, _ := bundle.SplitURL(url) // its end shows whether it is one
	stem := strings.TrimSuffix(name, ".db.enc")
	out := map[string]string{}
	for _, end := range []string{".db.enc", ".etcd-events.db.enc", ".objects", ".json"} {
		out[stem+end] = encryption
	}
	return out
}

// newKey makes a key in moto's KMS.
func newKey(t *testing.T, e *Emulator) string {
	t.Helper()
	client := kms.New(kms.Options{Region: "us-east-1", BaseEndpoint: &e.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
	made, err := client.CreateKey(t.Context(), &kms.CreateKeyInput{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return *made.KeyMetadata.Arn
}

// TestBackupEncryption saves an etcd, with a shard and objects, in buckets that encrypt in all ways that the API can ask for: with a key of AWS KMS, or as the bucket has it.
func TestBackupEncryption(t *testing.T) {
	s := newSavings(t)
	key, other := newKey(t, s.e), newKey(t, s.e)
	byS3 := &s3types.ServerSideEncryptionByDefault{SSEAlgorithm: s3types.ServerSideEncryptionAes256}
	byOther := &s3types.ServerSideEncryptionByDefault{SSEAlgorithm: s3types.ServerSideEncryptionAwsKms, KMSMasterKeyID: &other}
	for bucket, c := range map[string]struct {
		name      string
		by        *s3types.ServerSideEncryptionByDefault
		key       string
		asks, has string
	}{
		"plain":     {"When the bucket encrypts nothing and a key is named all files should be encrypted with it", nil, key, "aws:kms " + key, "aws:kms " + key},
		"differing": {"When the bucket encrypts with another key and a key is named all files should be encrypted with that", byOther, key, "aws:kms " + key, "aws:kms " + key},
		"by-s3-too": {"When the bucket encrypts by S3 itself and a key is named all files should be encrypted with it", byS3, key, "aws:kms " + key, "aws:kms " + key},
		"by-s3":     {"When the bucket encrypts by S3 itself and no key is named all files should be encrypted so, and nothing be asked for", byS3, "", "", "AES256"},
		"by-key":    {"When the bucket encrypts with a key and no key is named all files should be encrypted so, and nothing be asked for", byOther, "", "", "aws:kms " + other},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			s.bucket(t, bucket, c.by)
			url, sum, err := s.upload(t, bucket, c.key)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(sum.Verified).To(BeTrue(), "it should have been read back")
			// The request that begins a file says how it is encrypted. S3 refuses parts that say it once more, and nothing is copied.
			g.Expect(asked(s.e.Calls())).To(Equal(map[string][]string{"PutObject": {c.asks}, "CreateMultipartUpload": {c.asks}, "UploadPart": {""}, "CompleteMultipartUpload": {""}}))
			g.Expect(s.stored(t, bucket)).To(Equal(filesOf(url, c.has)))
			g.Expect(s.verify(t, url)).To(Succeed())
			s.damaged(t, bucket, url, c.has)
		})
	}
	s.silent(t)
}

// damaged changes a bit of the shard's snapshot behind everybody's back.
func (s *savings) damaged(t *testing.T, bucket, url, encryption string) {
	t.Helper()
	g := NewWithT(t)
	_, name, err := bundle.SplitURL(url)
	g.Expect(err).NotTo(HaveOccurred())
	name = strings.TrimSuffix(name, ".db.enc") + ".etcd-events.db.enc"
	got, err := s.s3.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: &name})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.TrimSpace(string(got.ServerSideEncryption) + " " + aws.ToString(got.SSEKMSKeyId))).To(Equal(encryption))
	content, err := io.ReadAll(got.Body)
	g.Expect(err).NotTo(HaveOccurred())
	content[len(content)/2] ^= 1
	_, err = s.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &name, Body: bytes.NewReader(content)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.verify(t, url)).To(MatchError(ContainSubstring("is damaged: its SHA-256 is")))
}

// silent looks for secrets in all that was said and sent.
func (s *savings) silent(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	s.forget()
	g.Expect(s.seen.String()).To(ContainSubstring("s3://"))
	g.Expect(s.sent.String()).To(ContainSubstring(sseKeyHeader))
	for _, secret := range []string{sealingKey, base64.StdEncoding.EncodeToString([]byte(sealingKey)), secretKey} {
		g.Expect(s.seen.String()).NotTo(ContainSubstring(secret), "a program has said a secret")
		g.Expect(s.sent.String()).NotTo(ContainSubstring(secret), "a request has a secret")
	}
}

// TestBackupKeyRefused has S3 refuse a key, or overlook it.
func TestBackupKeyRefused(t *testing.T) {
	s := newSavings(t)
	key := newKey(t, s.e)
	bucket := func(t *testing.T, name string) string {
		s.bucket(t, name, nil)
		return name
	}
	refusals := map[string]struct {
		status int
		want   string
	}{
		"KMS.NotFoundException":        {400, "the key is not found in the bucket's region: correct spec.storage.s3.kmsKeyARN"},
		"KMS.DisabledException":        {400, "the key is disabled: enable it"},
		"KMS.KMSInvalidStateException": {400, "the key can't be used now: cancel its deletion"},
		"KMS.InvalidKeyUsageException": {400, "the key is not for encryption"},
		"AccessDenied":                 {403, "kms:GenerateDataKey and kms:Decrypt on the key"},
	}
	for code, c := range refusals {
		for action, file := range map[string]string{"CreateMultipartUpload": "the first file", "PutObject": "a later file"} {
			t.Run("When S3 refuses the key of "+file+" with "+code+" it should say what to do, and leave nothing", func(t *testing.T) {
				g := NewWithT(t)
				name := bucket(t, strings.ToLower(strings.ReplaceAll(code+"-"+action, ".", "-")))
				s.e.Fail(Fault{Service: "s3", Action: action, Code: code, Status: c.status})
				defer s.e.Heal()
				_, _, err := s.upload(t, name, key)
				g.Expect(err).To(MatchError(And(ContainSubstring("writing s3://"+name+"/clusters/demo/"), ContainSubstring(code), ContainSubstring(c.want))))
				g.Expect(s.stored(t, name)).To(BeEmpty())
			})
		}
	}
	t.Run("When the storage overlooks the key it should be refused, and leave nothing", func(t *testing.T) {
		g := NewWithT(t)
		name := bucket(t, "overlooked")
		target, err := url.Parse(s.e.URL)
		g.Expect(err).NotTo(HaveOccurred())
		// Moto compares no signatures.
		overlooking := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Host = p.In.Host
			p.Out.Header.Del(sseHeader)
			p.Out.Header.Del(sseKeyHeader)
		}})
		defer overlooking.Close()
		s.credentials(overlooking.URL)
		defer s.credentials(s.e.URL)
		_, _, err = s.upload(t, name, key)
		g.Expect(err).To(MatchError(ContainSubstring("the storage does not encrypt with " + key + ": it says nothing about encryption")))
		g.Expect(s.stored(t, name)).To(BeEmpty())
		_, _, err = s.upload(t, name, "")
		g.Expect(err).NotTo(HaveOccurred(), "where no key is named it may do as it likes")
	})
	s.silent(t)
}
