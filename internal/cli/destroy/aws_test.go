package destroy

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
)

func TestVPCOfAnotherAccount(t *testing.T) {
	for name, tc := range map[string]struct {
		shared  bool
		file    string
		refused bool
		leaves  bool
	}{
		"When another account has the VPC and nobody says whose it should refuse to begin": {shared: true, refused: true},
		"When its owner's credentials are given it should begin":                           {shared: true, file: "owner"},
		"When its owner's network is to be left it should begin":                           {shared: true, file: "none", leaves: true},
		"When the VPC is the cluster's own nothing more should be needed":                  {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
			hc.Spec.InfraID = "demo-abcde"
			hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{Region: "eu-west-1"}}
			if tc.shared {
				hc.Spec.Platform.AWS.SharedVPC = &hyperv1.AWSSharedVPC{}
			}
			a, o := &awsAccount{}, NewOptions()
			a.login.OwnerFile, o.Name, o.Namespace = tc.file, "demo", "clusters"
			err := a.prepare(t.Context(), fake.NewClientBuilder().WithScheme(connect.Scheme()).WithObjects(hc).Build(), o)
			if tc.refused {
				g.Expect(err).To(MatchError(And(ContainSubstring("HostedCluster clusters/demo"), ContainSubstring("--vpc-owner-aws-creds FILE"), ContainSubstring("--vpc-owner-aws-creds none"), HaveSuffix("nothing was deleted"))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(a.leaveOwner).To(Equal(tc.leaves))
			g.Expect(a.login.OwnerFile == "none").To(BeFalse(), "that is no file")
		})
	}
}

func TestWhatAClusterMadeInACloud(t *testing.T) {
	const looksForNone = "the operator looks for no volumes and load balancers"
	for name, tc := range map[string]struct {
		change func(*hyperv1.HostedCluster)
		want   bool
	}{
		"When the release is one of Kubernetes": {func(hc *hyperv1.HostedCluster) { hc.Status.ControlPlaneVersion.Desired.Version = "1.36.3" }, true},
		"When only the nodes' release is known, and it is one of Kubernetes": {func(hc *hyperv1.HostedCluster) {
			hc.Status.Version = &hyperv1.ClusterVersionStatus{}
			hc.Status.Version.Desired.Version = "1.36.3"
		}, true},
		"When the release is an OpenShift payload": {func(hc *hyperv1.HostedCluster) { hc.Status.ControlPlaneVersion.Desired.Version = "4.22.0" }, false},
		"When no release was ever read":            {func(*hyperv1.HostedCluster) {}, false},
	} {
		t.Run(name+" it should say whether the operator removes what was made in a cloud", func(t *testing.T) {
			hc := &hyperv1.HostedCluster{}
			tc.change(hc)
			NewWithT(t).Expect(ofKubernetes(hc)).To(Equal(tc.want))
		})
	}
	// withRelease is a cluster whose status tells of a release.
	withRelease := func(t *testing.T, version string) *fixture {
		t.Helper()
		g, f := NewWithT(t), newFixture(t)
		hc := f.get(g)
		hc.Status.ControlPlaneVersion.Desired.Version, hc.Status.ControlPlaneVersion.Desired.Image = version, "registry.example.com/release:1"
		g.Expect(f.Status().Update(t.Context(), hc)).To(Succeed())
		f.opts.CloudResources = true
		return f
	}
	for version, says := range map[string]bool{"1.36.3": true, "4.22.0": false} {
		t.Run("When a cluster of release "+version+" is destroyed the note should fit the release", func(t *testing.T) {
			t.Parallel()
			g, f := NewWithT(t), withRelease(t, version)
			go f.operator(t.Context())
			var out bytes.Buffer
			g.Expect(cluster(t.Context(), f.opts, f, &out)).To(Succeed())
			g.Expect(bytes.Contains(out.Bytes(), []byte(looksForNone))).To(Equal(says), out.String())
		})
	}
	t.Run("When a dry run is made of a Kubernetes release's cluster it should not promise what nobody removes", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		for version, promised := range map[string]bool{"1.36.3": false, "4.22.0": true} {
			f := withRelease(t, version)
			f.opts.Connect.DryRun = connect.DryRunClient
			var out bytes.Buffer
			g.Expect(cluster(t.Context(), f.opts, f, &out)).To(Succeed())
			g.Expect(bytes.Contains(out.Bytes(), []byte("what the hosted cluster made in a cloud"))).To(Equal(promised), out.String())
		}
	})
}
