//go:build backup

package backup

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	azcontainer "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/testenv"
)

// Accounts of storages that are made for a test.
const bucketName, accountName = "backups", "mine"

var accountKey = base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

// start runs a program on a port of the loopback until the test ends, and waits until it listens.
func (w *world) start(program, name string, env []string, args func(port int) []string) (address string) {
	w.Helper()
	g := NewWithT(w.T)
	ports, err := testenv.FreePorts(1)
	g.Expect(err).NotTo(HaveOccurred())
	p, err := testenv.StartProcess(program, w.dir, name, env, args(ports[0])...)
	g.Expect(err).NotTo(HaveOccurred())
	w.Cleanup(p.Kill)
	address = fmt.Sprintf("127.0.0.1:%d", ports[0])
	g.Eventually(func() error {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return err
		}
		return c.Close()
	}).WithTimeout(time.Minute).Should(Succeed(), p.Tail)
	return address
}

// faultsBefore plays faults before a storage, or before one of its own in memory.
func (w *world) faultsBefore(storage string) {
	w.Helper()
	w.storage = "http://" + w.start(filepath.Join(w.programs, "s3server"), "s3server", nil, func(port int) []string {
		return []string{fmt.Sprintf("--listen=127.0.0.1:%d", port), "--before=" + storage}
	})
	NewWithT(w.T).Eventually(func() error { return w.try(http.MethodDelete, nil) }).WithTimeout(time.Minute).Should(Succeed())
}

// s3 says that the storage is one of S3.
func (w *world) s3() {
	w.options.Bucket, w.options.Region = bucketName, "us-east-1"
	w.args = []string{"--storage-type", "S3", "--aws-bucket", bucketName, "--aws-region", "us-east-1"}
	w.verifyArgs = []string{"--aws-region", "us-east-1"}
	w.write(w.options.Credentials, "[default]\naws_access_key_id = test\naws_secret_access_key = test\nendpoint_url = "+w.storage+"\n")
}

// inMemory is gofakes3, in the program that plays faults.
func inMemory(w *world) {
	w.faultsBefore("")
	w.s3()
}

// gateway is versitygw, which keeps files in a folder.
func gateway(w *world) {
	folder := w.TempDir()
	address := w.start(filepath.Join(w.programs, "versitygw"), "versitygw", []string{"ROOT_ACCESS_KEY=test", "ROOT_SECRET_KEY=test"}, func(port int) []string {
		return []string{"--port", fmt.Sprintf("127.0.0.1:%d", port), "--quiet", "posix", folder}
	})
	w.faultsBefore("http://" + address)
	w.s3()
	g := NewWithT(w.T)
	cfg, err := awsconfig.LoadDefaultConfig(w.Context(), awsconfig.WithRegion("us-east-1"), awsconfig.WithSharedCredentialsFiles([]string{w.options.Credentials}),
		awsconfig.WithSharedConfigFiles([]string{w.options.Credentials}))
	g.Expect(err).NotTo(HaveOccurred())
	client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	_, err = client.CreateBucket(w.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucketName)})
	g.Expect(err).NotTo(HaveOccurred())
}

// startAzurite runs Azurite, whose account is in the path of its URL. It knows neither the newest version of the API nor sums of CRC-64, which it is to overlook.
func (w *world) startAzurite(flags ...string) (address string) {
	w.Helper()
	script := filepath.Join(w.programs, "azurite", "node_modules", "azurite", "dist", "src", "blob", "main.js")
	if _, err := os.Stat(script); err != nil {
		w.Fatalf("Azurite is not installed: make backup-storages does that: %v", err)
	}
	folder := w.TempDir()
	return w.start("node", "azurite", append(os.Environ(), "AZURITE_ACCOUNTS="+accountName+":"+accountKey), func(port int) []string {
		return append([]string{script, "--blobHost", "127.0.0.1", "--blobPort", fmt.Sprint(port), "--location", folder, "--silent", "--skipApiVersionCheck", "--loose", "--disableTelemetry"}, flags...)
	})
}

// azurite is Azurite, asked with the key of the account.
func azurite(w *world) {
	w.faultsBefore("http://" + w.startAzurite())
	endpoint := w.storage + "/" + accountName
	w.options.Bucket, w.options.Account = bucketName, accountName
	w.args = []string{"--storage-type", "AzureBlob", "--azure-container", bucketName, "--azure-storage-account", accountName}
	w.write(w.options.Credentials, fmt.Sprintf(`{"accountKey":%q,"blobEndpoint":%q}`, accountKey, endpoint))
	makeContainer(w.T, endpoint, nil)
}

func makeContainer(t *testing.T, endpoint string, options *azcontainer.ClientOptions) {
	t.Helper()
	g := NewWithT(t)
	key, err := blob.NewSharedKeyCredential(accountName, accountKey)
	g.Expect(err).NotTo(HaveOccurred())
	c, err := azcontainer.NewClientWithSharedKeyCredential(endpoint+"/"+bucketName, key, options)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.Create(t.Context(), nil)
	g.Expect(err).NotTo(HaveOccurred())
}
