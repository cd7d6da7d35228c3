package create

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/testenv"
)

// What can be refused is refused before anything is made in the account: a network costs money, and whoever gets an error has to find and remove it.
func TestNothingIsMadeForACommandThatIsRefused(t *testing.T) {
	env := testenv.Start(t)
	c := env.Client(t, connect.Scheme())
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	NewWithT(t).Expect(os.WriteFile(kubeconfig, env.Kubeconfig(t), 0o600)).To(Succeed())

	namespace := env.Namespace(t)
	leaving := testenv.HostedCluster(namespace, "leaving")
	leaving.Finalizers = []string{"example.com/keep"}
	NewWithT(t).Expect(c.Create(t.Context(), leaving)).To(Succeed())
	NewWithT(t).Expect(c.Delete(t.Context(), leaving)).To(Succeed())

	other := testenv.HostedCluster(namespace, "other")
	NewWithT(t).Expect(c.Create(t.Context(), other)).To(Succeed())
	docs := execute(NewWithT(t), slices.Concat(awsArgs, commonArgs, []string{"--name", "there", "--namespace", namespace, "--infra-id", "there-xyz89"})...)
	there := &unstructured.Unstructured{Object: printed(NewWithT(t), docs)["HostedCluster"][0]}
	NewWithT(t).Expect(c.Create(t.Context(), there)).To(Succeed())

	var calls atomic.Int32
	account := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusForbidden) // is not tried again
		_, _ = io.WriteString(w, `<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error></Errors></Response>`)
	}))
	defer account.Close()
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": account.URL, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull} {
		t.Setenv(name, value)
	}

	base := []string{"cluster", "aws", "--infra-id", "demo-abc23", "--namespace", namespace, "--base-domain", "example.com"}
	name := []string{"--name", "demo"}
	cluster := []string{"--kubeconfig", kubeconfig}
	secret := []string{"--pull-secret", "testdata/in/pull-secret.json"}
	release := []string{"--release-image", "registry.example.com/ocp/release:4.22"}
	issuer := []string{"--oidc-issuer-url", "https://issuer.example.com"}
	iam := []string{"--iam-json", "testdata/in/iam-aws.json"}
	for title, tc := range map[string]struct {
		args   []string
		want   string
		called bool
	}{
		"When there is no pull secret it should name the flag": {
			args: slices.Concat(name, cluster, release, issuer), want: "--pull-secret is required"},
		"When a size is none it should show one": {
			args: slices.Concat(name, cluster, secret, release, issuer, []string{"--etcd-storage-size", "much"}), want: "--etcd-storage-size"},
		"When the name is none it should name the flag": {
			args: slices.Concat([]string{"--name", "de.mo"}, cluster, secret, release, issuer), want: "--name"},
		"When nobody names a release and the installation offers none it should name the flag": {
			args: slices.Concat(name, cluster, secret, issuer), want: "--release-image is required"},
		"When there is no management cluster it should say so": {
			args: slices.Concat(name, nowhere, secret, release, issuer), want: "no such file"},
		"When the cluster is being deleted it should say so": {
			args: slices.Concat([]string{"--name", leaving.Name}, cluster, secret, release, issuer), want: "is being deleted"},
		"When the cluster is there with other infrastructure it should name that": {
			args: slices.Concat([]string{"--name", there.GetName()}, cluster, secret, release, issuer), want: "give --infra-id there-xyz89"},
		"When the cluster is there on another platform it should name that": {
			args: slices.Concat([]string{"--name", other.Name}, cluster, secret, release, issuer), want: "uses platform None"},
		"When the issuer isn't https it should say so": {
			args: slices.Concat(name, cluster, secret, release, []string{"--oidc-issuer-url", "http://issuer.example.com"}), want: "must begin with https://"},
		"When nobody knows where OIDC documents are it should name the flag": {
			args: slices.Concat(name, cluster, secret, release), want: "--oidc-issuer-url"},
		"When the operator's version is to be checked and there is none it should say so": {
			args: slices.Concat(name, cluster, secret, release, issuer, []string{"--version-check"}), want: "version"},
		"When only the network is to be made it should check as well": {
			args: slices.Concat(name, cluster, iam, release), want: "--pull-secret is required"},
		"When a format doesn't go with a dry run it should say so": {
			args: slices.Concat(name, cluster, secret, release, issuer, []string{"-o", "yaml", "--dry-run"}), want: "--dry-run"},
		"When all is well it should begin": {
			args: slices.Concat(name, cluster, secret, release, issuer), want: "UnauthorizedOperation", called: true},
	} {
		t.Run(title, func(t *testing.T) {
			g := NewWithT(t)
			calls.Store(0)
			cmd := Command()
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SilenceUsage = true
			cmd.SetArgs(slices.Concat(base, tc.args))
			g.Expect(cmd.ExecuteContext(t.Context())).To(MatchError(ContainSubstring(tc.want)))
			if tc.called {
				g.Expect(calls.Load()).NotTo(BeZero())
				return
			}
			g.Expect(calls.Load()).To(BeZero(), "something was asked of the account")
		})
	}
	t.Run("When documents of OIDC have a bucket it should begin", func(t *testing.T) {
		g := NewWithT(t)
		calls.Store(0)
		note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "oidc-storage-provider-s3-config"}, Data: map[string]string{"name": "documents", "region": "eu-west-1"}}
		_, err := connect.Apply(t.Context(), c, note)
		g.Expect(err).NotTo(HaveOccurred())
		cmd := Command()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SilenceUsage = true
		cmd.SetArgs(slices.Concat(base, name, cluster, secret, release))
		g.Expect(cmd.ExecuteContext(t.Context())).To(MatchError(ContainSubstring("UnauthorizedOperation")))
		g.Expect(calls.Load()).NotTo(BeZero())
		g.Expect(c.Delete(t.Context(), note)).To(Succeed())
	})
}
