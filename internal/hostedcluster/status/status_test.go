package status

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/statetest"
	"hcp.internal/platform/internal/kube/conditions"
)

func TestVersionStatus(t *testing.T) {
	t.Run("When the control plane reports a version it should be that", func(t *testing.T) {
		g := NewWithT(t)
		reported := &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Image: statetest.Image136, Version: "1.36.3"}}
		obs := statetest.Seen(func(obs *state.Observed) {
			obs.HCP = &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{VersionStatus: reported}}
		})
		g.Expect(versionStatus(obs, statetest.Noon)).To(Equal(reported))
	})
	t.Run("When the image changes before there is a control plane it should put the new one first", func(t *testing.T) {
		g := NewWithT(t)
		obs := statetest.Seen()
		obs.HC.Status.Version = versionStatus(obs, statetest.Noon)
		obs.HC.Spec.Release.Image = statetest.Image136
		obs.Target, obs.UserRelease = statetest.ReleaseOf(statetest.Image136), statetest.ReleaseOf(statetest.Image136)
		got := versionStatus(obs, statetest.Noon.Add(time.Hour))
		g.Expect(got.Desired.Image).To(Equal(statetest.Image136))
		g.Expect(got.History).To(HaveLen(2))
		g.Expect(got.History[0].Version).To(Equal("1.36.3"))
		g.Expect(got.History[1].Version).To(Equal("1.35.4"))
	})
	t.Run("When a downgrade is asked for it should be refused, and the old version stay", func(t *testing.T) {
		g := NewWithT(t)
		obs := statetest.Seen(func(obs *state.Observed) {
			obs.HCP = &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{VersionStatus: &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Image: statetest.Image136, Version: "1.36.3"}}}}
		})
		Set(obs, statetest.Noon)
		c := conditions.Get(obs.HC.Status.Conditions, hyperv1.ValidReleaseImage)
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(c.Message).To(ContainSubstring("downgrading from 1.36.3 to 1.35.4 is not supported"))
		g.Expect(obs.HC.Status.Version.Desired.Image).To(Equal(statetest.Image136))
	})
}

// TestSeparateReleases has the control plane at a release of its own.
func TestSeparateReleases(t *testing.T) {
	const image134, image1359 = "reg.example.com/release:1.34.8", "reg.example.com/release:1.35.9"
	for name, tc := range map[string]struct {
		spec, own  string // spec.release, spec.controlPlaneRelease
		user, runs string // status.version, status.controlPlaneVersion
		skip       bool
		refused    string
	}{
		"When the field is removed the control plane should not go back a minor version": {
			spec: statetest.Image135, user: statetest.Image135, runs: statetest.Image136,
			refused: "the control plane is at 1.36.3, see status.controlPlaneVersion: downgrading from 1.36.3 to 1.35.4 is not supported: set spec.release.image back to a 1.36 release or a later one; spec.controlPlaneRelease.image may name such a release, too",
		},
		"When the field names an older minor version it should be refused": {
			spec: statetest.Image136, own: statetest.Image135, user: statetest.Image136, runs: statetest.Image136, refused: "the control plane is at 1.36.3",
		},
		"When the field is removed the control plane should not skip a minor version": {
			spec: statetest.Image136, user: statetest.Image136, runs: image134, refused: "the control plane is at 1.34.8, see status.controlPlaneVersion: upgrading from 1.34.8 to 1.36.3 skips a minor version",
		},
		"When the field is removed and the hosted cluster goes to that minor version it should be let": {spec: statetest.Image136, user: statetest.Image135, runs: statetest.Image136},
		"When the control plane alone is patched while it is behind it should be let":                  {spec: statetest.Image136, own: image1359, user: statetest.Image136, runs: statetest.Image135},
		"When the control plane stays where it is it should be let":                                    {spec: statetest.Image136, own: statetest.Image135, user: statetest.Image136, runs: statetest.Image135},
		"When the field is removed and the control plane is behind it should be let":                   {spec: statetest.Image136, user: statetest.Image136, runs: statetest.Image135},
		"When versions are not to be checked it should be let":                                         {spec: statetest.Image135, user: statetest.Image135, runs: statetest.Image136, skip: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obs := statetest.Seen(func(obs *state.Observed) {
				version := func(image string) configv1.Release {
					return configv1.Release{Image: image, Version: statetest.ReleaseOf(image).Version}
				}
				obs.HCP = &hyperv1.HostedControlPlane{}
				obs.HCP.Status.VersionStatus = &hyperv1.ClusterVersionStatus{Desired: version(tc.user)}
				runs := version(tc.runs)
				obs.HCP.Status.ControlPlaneVersion = hyperv1.ControlPlaneVersionStatus{Desired: runs, History: []hyperv1.ControlPlaneUpdateHistory{{State: configv1.PartialUpdate, Image: runs.Image, Version: runs.Version}}}
				obs.HC.Spec.Release.Image = tc.spec
				obs.UserRelease = statetest.ReleaseOf(tc.spec)
				obs.Target = obs.UserRelease
				if tc.own != "" {
					obs.HC.Spec.ControlPlaneRelease = &hyperv1.Release{Image: tc.own}
					obs.Target = statetest.ReleaseOf(tc.own)
				}
				if tc.skip {
					obs.HC.Annotations = map[string]string{hyperv1.SkipReleaseImageValidation: "true"}
				}
			})
			gates := Set(obs, statetest.Noon)
			c := conditions.Get(obs.HC.Status.Conditions, hyperv1.ValidReleaseImage)
			if tc.refused == "" {
				g.Expect(c.Status).To(Equal(metav1.ConditionTrue), c.Message)
				return
			}
			g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(c.Reason).To(Equal(hyperv1.InvalidImageReason))
			g.Expect(c.Message).To(HavePrefix(tc.refused))
			g.Expect(gates.Open()).To(BeFalse())
		})
	}
}

func TestIgnitionEndpoint(t *testing.T) {
	running := func(obs *state.Observed) {
		obs.Ignition = &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
			Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: "True"}}}}
		obs.IgnitionEndpoint = "192.0.2.10:30443"
	}
	for name, tc := range map[string]struct {
		world func(*state.Observed)
		want  string
	}{
		"When it serves where machines reach it it should be available": {world: func(*state.Observed) {}, want: "True"},
		"When it has no replicas it should not be":                      {world: func(obs *state.Observed) { obs.Ignition.Spec.Replicas = ptr.To[int32](0) }, want: "False"},
		"When nobody can reach it it should not be":                     {world: func(obs *state.Observed) { obs.IgnitionEndpoint = "" }, want: "False"},
		"When there is none it should not be":                           {world: func(obs *state.Observed) { obs.Ignition = nil }, want: "False"},
		"When it has not said how it is it should be unknown":           {world: func(obs *state.Observed) { obs.Ignition.Status.Conditions = nil }, want: "Unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(string(ignitionEndpoint(statetest.Seen(running, tc.world)).Status)).To(Equal(tc.want))
		})
	}
}
