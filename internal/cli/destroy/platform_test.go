package destroy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/testenv"
)

func kubeconfigOf(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	NewWithT(t).Expect(os.WriteFile(path, testenv.Start(t).Kubeconfig(t), 0o600)).To(Succeed())
	return path
}

// newAWSFixture is a cluster of platform AWS, held by an operator that the test plays.
func newAWSFixture(t *testing.T, kubeconfig string, args ...string) *fixture {
	t.Helper()
	env := testenv.Start(t)
	g := NewWithT(t)
	namespace := env.Namespace(t)
	f := &fixture{WithWatch: env.Client(t, connect.Scheme()), t: t, key: client.ObjectKey{Namespace: namespace, Name: "demo"}, infraID: namespace}
	f.hcp = &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: names.ControlPlaneNamespace(namespace, "demo"), Name: "demo"}}
	f.opts = NewOptions()
	f.opts.Name, f.opts.Namespace, f.opts.GracePeriod, f.opts.forceWait = f.key.Name, f.key.Namespace, time.Minute, 20*time.Second
	cmd := create.Command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage = true
	in := "../create/testdata/in/"
	cmd.SetArgs(slices.Concat([]string{"cluster", "aws", "--name", "demo", "--namespace", namespace, "--kubeconfig", kubeconfig, "--infra-id", f.infraID,
		"--infra-json", in + "infra-aws.json", "--iam-json", in + "iam-aws.json", "--pull-secret", in + "pull-secret.json", "--release-image", "registry.example.com/ocp/release:4.22"}, args))
	g.Expect(cmd.ExecuteContext(t.Context())).To(Succeed(), out.String())
	hc := f.get(g)
	hc.Finalizers = []string{hyperv1.HostedClusterFinalizer}
	g.Expect(f.Update(t.Context(), hc)).To(Succeed())
	return f
}

// refusing is an account in which nobody may do anything. saw is called with each call.
func refusing(t *testing.T, saw func()) {
	t.Helper()
	account := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		saw()
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusForbidden) // is not tried again
		_, _ = io.WriteString(w, `<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error></Errors></Response>`)
	}))
	t.Cleanup(account.Close)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": account.URL, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull} {
		t.Setenv(name, value)
	}
}

// The HostedCluster says what there is in the account, so it has to stay until that is gone.
func TestAccountIsCleanedFirst(t *testing.T) {
	g, kubeconfig := NewWithT(t), kubeconfigOf(t)
	f := newAWSFixture(t, kubeconfig, "--base-domain-prefix", "none")
	var mu sync.Mutex
	var out bytes.Buffer
	var before string // what had been printed at the first call
	var held [][]string
	refusing(t, func() {
		mu.Lock()
		defer mu.Unlock()
		if before == "" {
			before = out.String()
		}
		hc := &hyperv1.HostedCluster{}
		if err := f.Get(t.Context(), f.key, hc); err != nil {
			held = append(held, []string{err.Error()})
			return
		}
		held = append(held, hc.Finalizers)
	})
	go f.operator(t.Context())
	destroy := func() error {
		cmd := Command()
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"cluster", "aws", "--kubeconfig", kubeconfig, "--namespace", f.key.Namespace, "--name", "demo", "--aws-infra-grace-period", "1s"})
		return cmd.ExecuteContext(t.Context())
	}
	rerun := "--name demo --namespace " + f.key.Namespace + " --infra-id " + f.infraID + " --region eu-central-1 --base-domain example.com --base-domain-prefix none"
	for range 2 { // the second run takes up where the first one ended
		g.Expect(destroy()).To(MatchError(ContainSubstring(rerun)))
		g.Expect(f.get(g).Finalizers).To(Equal([]string{Finalizer}))
	}
	g.Expect(held).NotTo(BeEmpty())
	g.Expect(held).To(HaveEach(Equal([]string{Finalizer})), "at each call the HostedCluster was there, and nobody else's")
	g.Expect(before).To(MatchRegexp(`(?s)` + rerun + `.*deleting HostedCluster`))
}

// What a cluster has in a cloud is removed by the command of its platform, and by no other.
func TestPlatformOfAnother(t *testing.T) {
	kubeconfig := kubeconfigOf(t)
	for name, tc := range map[string]struct {
		arg     string
		fixture func(t *testing.T) *fixture
		want    string
	}{
		"When a cluster on AWS is destroyed as one without machines": {
			arg: "none", fixture: func(t *testing.T) *fixture { return newAWSFixture(t, kubeconfig) }, want: "uses platform AWS: run `hypershift destroy cluster aws demo --namespace "},
		"When a cluster on AWS is destroyed as one on Azure": {
			arg: "azure", fixture: func(t *testing.T) *fixture { return newAWSFixture(t, kubeconfig) }, want: "uses platform AWS: run `hypershift destroy cluster aws demo --namespace "},
		"When a local cluster is destroyed as one on AWS": {arg: "aws", fixture: newFixture, want: "uses platform Local: run `hypershift destroy cluster local demo --namespace "},
	} {
		for _, dry := range []string{"none", "client"} {
			t.Run(name+" it should change nothing and name the command (dry run "+dry+")", func(t *testing.T) {
				g, f := NewWithT(t), tc.fixture(t)
				before := f.get(g)
				cmd := Command()
				var out bytes.Buffer
				cmd.SetOut(&out)
				cmd.SetErr(&out)
				cmd.SilenceErrors, cmd.SilenceUsage = true, true
				cmd.SetArgs([]string{"cluster", tc.arg, "--kubeconfig", kubeconfig, "--namespace", f.key.Namespace, "--name", "demo", "--cluster-grace-period", "1s", "--dry-run=" + dry})
				g.Expect(cmd.ExecuteContext(t.Context())).To(MatchError(ContainSubstring(tc.want + f.key.Namespace)))
				g.Expect(f.get(g)).To(BeComparableTo(before))
			})
		}
	}
}

func TestAccountThatIsNotClean(t *testing.T) {
	for name, fail := range map[string]func(context.CancelFunc) error{
		"When something in the account can't be removed": func(context.CancelFunc) error { return errors.New("a network is left") },
		"When it is killed meanwhile":                    func(kill context.CancelFunc) error { kill(); return context.Canceled },
	} {
		t.Run(name+" the HostedCluster and its Secrets should stay until another run has removed all", func(t *testing.T) {
			t.Parallel()
			g, f := NewWithT(t), newFixture(t)
			go f.operator(t.Context())
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			var out bytes.Buffer
			f.opts.account = func(context.Context) error { return fail(kill) }
			g.Expect(cluster(ctx, f.opts, f, &out)).NotTo(Succeed())
			g.Expect(f.get(g).Finalizers).To(Equal([]string{Finalizer}))
			g.Expect(out.String()).NotTo(Or(ContainSubstring("deleted Secret"), ContainSubstring("is destroyed")))

			var cleaned int
			f.opts.account = func(context.Context) error { cleaned++; return nil }
			g.Expect(cluster(t.Context(), f.opts, f, &out)).To(Succeed())
			g.Expect(cleaned).To(Equal(1))
			f.expectGone(g)
		})
	}
	t.Run("When the HostedCluster is gone already it should clean the account, too", func(t *testing.T) {
		t.Parallel()
		g, f := NewWithT(t), newFixture(t)
		left := f.secret("left", "gone-abcde")
		g.Expect(f.Create(t.Context(), left)).To(Succeed())
		f.opts.Name, f.opts.InfraID = "other", "gone-abcde"
		f.opts.account = func(context.Context) error { return errors.New("a network is left") }
		var out bytes.Buffer
		g.Expect(cluster(t.Context(), f.opts, f, &out)).To(MatchError("a network is left"))
		g.Expect(f.Get(t.Context(), client.ObjectKeyFromObject(left), left)).To(Succeed())
	})
}

func TestAgainWithoutTheHostedCluster(t *testing.T) {
	const always = "hypershift destroy cluster aws --name demo --namespace clusters --infra-id demo-abcde --region eu-west-1 --base-domain example.com"
	for name, tc := range map[string]struct {
		change func(*hyperv1.HostedCluster, *awsAccount)
		want   string
	}{
		"When names have the default prefix it should name none": {func(*hyperv1.HostedCluster, *awsAccount) {}, always},
		"When names have another prefix it should name it": {func(hc *hyperv1.HostedCluster, _ *awsAccount) {
			hc.Spec.DNS.BaseDomainPrefix = ptr.To[hyperv1.BaseDomain]("team")
		}, always + " --base-domain-prefix team"},
		"When names have no prefix it should say so": {func(hc *hyperv1.HostedCluster, _ *awsAccount) {
			hc.Spec.DNS.BaseDomainPrefix = ptr.To[hyperv1.BaseDomain]("")
		}, always + " --base-domain-prefix none"},
		"When flags narrow what goes it should have them": {func(_ *hyperv1.HostedCluster, a *awsAccount) {
			a.preserveIAM, a.infra.PrivateZonesInClusterAccount, a.login.OwnerFile = true, true, "owner"
		}, always + " --private-zones-in-cluster-account --preserve-iam --vpc-owner-aws-creds owner"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
			hc.Spec.InfraID, hc.Spec.DNS.BaseDomain = "demo-abcde", "example.com"
			hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{Region: "eu-west-1"}}
			a, o := &awsAccount{}, NewOptions()
			o.Name, o.Namespace = "demo", "clusters"
			tc.change(hc, a)
			g.Expect(a.prepare(t.Context(), fake.NewClientBuilder().WithScheme(connect.Scheme()).WithObjects(hc).Build(), o)).To(Succeed())
			g.Expect(a.againWithout(o)).To(Equal(tc.want))
		})
	}
}

func TestMadeAgain(t *testing.T) {
	cluster := func(uid, infraID string) *hyperv1.HostedCluster {
		return &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", UID: types.UID(uid)}, Spec: hyperv1.HostedClusterSpec{InfraID: infraID}}
	}
	deleted, o := cluster("1", "demo-abcde"), NewOptions()
	o.InfraID = "demo-abcde"
	for name, tc := range map[string]struct {
		now     *hyperv1.HostedCluster
		refused bool
	}{
		"When the HostedCluster waits for the account it should be cleaned":             {now: deleted},
		"When it is gone it should be cleaned":                                          {},
		"When another one was made with its own infrastructure it should be cleaned":    {now: cluster("2", "demo-fghij")},
		"When another one was made on the same infrastructure that should be left":      {now: cluster("2", "demo-abcde"), refused: true},
		"When another one was made that has no infrastructure yet it should be cleaned": {now: cluster("2", "")},
	} {
		t.Run(name, func(t *testing.T) {
			g, b := NewWithT(t), fake.NewClientBuilder().WithScheme(connect.Scheme())
			if tc.now != nil {
				b = b.WithObjects(tc.now)
			}
			err := checkMadeAgain(t.Context(), b.Build(), o, deleted)
			if tc.refused {
				g.Expect(err).To(MatchError(ContainSubstring("somebody has made it again on infrastructure demo-abcde, which therefore stays")))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}
