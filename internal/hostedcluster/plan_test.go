package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"hcp.internal/platform/internal/hostedcluster/hostedclustertest"
	"hcp.internal/platform/internal/hostedcluster/sources"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
)

const (
	image135 = "reg.example.com/release:1.35.4"
	image136 = "reg.example.com/release:1.36.3"
)

func releaseOf(image string) *release.Release {
	version := image[strings.LastIndex(image, ":")+1:]
	return &release.Release{Image: image, Digest: "sha256:" + strings.Repeat("0", 64), Version: version, Kubernetes: true, KubernetesVersion: version, Arch: "AMD64",
		Images: map[string]string{"kube-apiserver": "reg.example.com/bundle@sha256:0"}}
}

// seen is the world of a healthy, new HostedCluster.
func seen(mutate ...func(*state.Observed)) *state.Observed {
	obs := &state.Observed{
		HC:             hostedclustertest.Example("clusters", image135),
		Sources:        sources.Set{{Kind: sources.Secret, Name: "pull"}: {Data: map[string][]byte{names.DockerConfigKey: []byte(`{"auths":{}}`)}}},
		Target:         releaseOf(image135),
		UserRelease:    releaseOf(image135),
		OperatorImage:  "reg.example.com/operator:1",
		OperatorLabels: map[string]string{},
		UID:            1001,
	}
	obs.Platform, _ = platform.For(hyperv1.NonePlatform)
	obs.HC.UID, obs.HC.Generation = "uid", 3
	obs.HC.Spec.InfraID = "demo-abcde"
	for _, m := range mutate {
		m(obs)
	}
	return obs
}

func TestUpgradeAllowed(t *testing.T) {
	upgrade := func(upgradeable metav1.ConditionStatus, more ...func(*state.Observed)) *state.Observed {
		obs := seen(func(obs *state.Observed) {
			obs.HC.Spec.Release.Image = image136
			obs.Target, obs.UserRelease = releaseOf(image136), releaseOf(image136)
			obs.HC.Status.Version = &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Image: image135, Version: "1.35.4"}}
			conditions.Set(&obs.HC.Status.Conditions, noon, conditions.New(hyperv1.ClusterVersionUpgradeable, upgradeable, "X", "etcd is sick"))
			obs.HCP = &hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: image135}}
			obs.HCP.Status.VersionStatus = obs.HC.Status.Version.DeepCopy()
			obs.HCP.Status.Conditions = slices.Clone(obs.HC.Status.Conditions)
		})
		for _, m := range more {
			m(obs)
		}
		return obs
	}
	annotate := func(image string) func(*state.Observed) {
		return func(obs *state.Observed) { obs.HC.Annotations[hyperv1.ForceUpgradeToAnnotation] = image }
	}
	for name, tc := range map[string]struct {
		obs  *state.Observed
		says string
	}{
		"When the cluster is upgradeable it should be allowed":              {obs: upgrade(metav1.ConditionTrue)},
		"When nothing is known it should be allowed":                        {obs: upgrade(metav1.ConditionUnknown)},
		"When it is not upgradeable it should say why, and how to force it": {obs: upgrade(metav1.ConditionFalse), says: "not upgradeable from 1.35.4 to 1.36.3: etcd is sick (to upgrade all the same, set annotation hypershift.openshift.io/force-upgrade-to"},
		"When it is forced to this image it should be allowed":              {obs: upgrade(metav1.ConditionFalse, annotate(image136))},
		"When it is forced to another image it should be refused":           {obs: upgrade(metav1.ConditionFalse, annotate("other")), says: `names "other", but the wanted release is`},
		"When it is a patch it should be allowed": {obs: upgrade(metav1.ConditionFalse, func(obs *state.Observed) {
			obs.HC.Status.Version.Desired.Version = "1.36.1"
		})},
		"When the upgrade has begun it should go on": {obs: upgrade(metav1.ConditionFalse, func(obs *state.Observed) {
			obs.HCP = &hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: image136}}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := upgradeAllowed(tc.obs)
			if tc.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
			g.Expect(planFor(tc.obs, setStatus(tc.obs, noon), noon, options{}).steps).To(BeEmpty())
			c := conditions.Get(tc.obs.HC.Status.Conditions, hyperv1.HostedClusterProgressing)
			g.Expect(c.Reason).To(Equal(hyperv1.BlockedReason))
			g.Expect(c.Message).To(ContainSubstring(tc.says))
		})
	}
}

func TestVersionStatus(t *testing.T) {
	t.Run("When the control plane reports a version it should be that", func(t *testing.T) {
		g := NewWithT(t)
		reported := &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Image: image136, Version: "1.36.3"}}
		obs := seen(func(obs *state.Observed) {
			obs.HCP = &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{VersionStatus: reported}}
		})
		g.Expect(versionStatus(obs, noon)).To(Equal(reported))
	})
	t.Run("When the image changes before there is a control plane it should put the new one first", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen()
		obs.HC.Status.Version = versionStatus(obs, noon)
		obs.HC.Spec.Release.Image = image136
		obs.Target, obs.UserRelease = releaseOf(image136), releaseOf(image136)
		got := versionStatus(obs, noon.Add(time.Hour))
		g.Expect(got.Desired.Image).To(Equal(image136))
		g.Expect(got.History).To(HaveLen(2))
		g.Expect(got.History[0].Version).To(Equal("1.36.3"))
		g.Expect(got.History[1].Version).To(Equal("1.35.4"))
	})
	t.Run("When a downgrade is asked for it should be refused, and the old version stay", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen(func(obs *state.Observed) {
			obs.HCP = &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{VersionStatus: &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Image: image136, Version: "1.36.3"}}}}
		})
		setStatus(obs, noon)
		c := conditions.Get(obs.HC.Status.Conditions, hyperv1.ValidReleaseImage)
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(c.Message).To(ContainSubstring("downgrading from 1.36.3 to 1.35.4 is not supported"))
		g.Expect(obs.HC.Status.Version.Desired.Image).To(Equal(image136))
	})
}

func TestPause(t *testing.T) {
	t.Run("When a cluster is paused it should pass on nothing but the pause, and come back when it ends", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen(func(obs *state.Observed) {
			obs.HC.Spec.PausedUntil = ptr.To("2026-01-02T13:00:00Z")
			obs.HC.Spec.Channel = "changed"
			obs.HCP = &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}, Spec: hyperv1.HostedControlPlaneSpec{Channel: "as-it-was"}}
		})
		p := planFor(obs, setStatus(obs, noon), noon, options{})
		g.Expect(p.recheckAfter).To(BeNumerically("~", time.Hour, 2*time.Second))
		g.Expect(p.steps).To(HaveLen(1))
		hcp := p.steps[0].apply[0].(*hyperv1.HostedControlPlane)
		g.Expect(hcp.Spec.PausedUntil).To(HaveValue(Equal("2026-01-02T13:00:00Z")))
		g.Expect(hcp.Spec.Channel).To(Equal("as-it-was"))
	})
}

func TestHostedControlPlane(t *testing.T) {
	// Fields that the two kinds share have the same name; what is renamed or left out on purpose is listed.
	renamed := map[string]string{"Release": "ReleaseImage", "ControlPlaneRelease": "ControlPlaneReleaseImage"}
	t.Run("When a field exists in both kinds it should be copied", func(t *testing.T) {
		g := NewWithT(t)
		target := reflect.TypeFor[hyperv1.HostedControlPlaneSpec]()
		for i := range reflect.TypeFor[hyperv1.HostedClusterSpec]().NumField() {
			field := reflect.TypeFor[hyperv1.HostedClusterSpec]().Field(i)
			name := field.Name
			if r, ok := renamed[name]; ok {
				name = r
			}
			_, ok := target.FieldByName(name)
			g.Expect(ok).To(BeTrue(), "HostedControlPlane has no %s", name)
			obs := seen()
			before := hostedControlPlane(obs).Spec
			fill(reflect.ValueOf(&obs.HC.Spec).Elem().Field(i))
			after := hostedControlPlane(obs).Spec
			if name == "PullSecret" {
				continue // always the name of the copy
			}
			g.Expect(reflect.DeepEqual(reflect.ValueOf(before).FieldByName(name).Interface(), reflect.ValueOf(after).FieldByName(name).Interface())).To(BeFalse(), "%s is not copied", name)
		}
	})
	t.Run("When a mirrored annotation is removed it should go from the HostedControlPlane, too", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen(func(obs *state.Observed) {
			obs.HC.Annotations = map[string]string{hyperv1.KubeAPIServerGOGCAnnotation: "50", "resource-request-override.hypershift.openshift.io/etcd.etcd": "cpu=1", "other": "x"}
		})
		g.Expect(hostedControlPlane(obs).Annotations).To(Equal(map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo", hyperv1.KubeAPIServerGOGCAnnotation: "50",
			"resource-request-override.hypershift.openshift.io/etcd.etcd": "cpu=1", hyperv1.DisableClusterAutoscalerAnnotation: "true"}))
		obs.HC.Annotations = nil
		g.Expect(hostedControlPlane(obs).Annotations).NotTo(HaveKey(hyperv1.KubeAPIServerGOGCAnnotation))
	})
	t.Run("When the validity of certificates is set it should reach who makes them", func(t *testing.T) {
		obs := seen(func(obs *state.Observed) {
			obs.HC.Annotations = map[string]string{pki.ValidityAnnotation: "2160h", pki.RenewalAnnotation: "0.3"}
		})
		NewWithT(t).Expect(hostedControlPlane(obs).Annotations).To(And(HaveKeyWithValue(pki.ValidityAnnotation, "2160h"), HaveKeyWithValue(pki.RenewalAnnotation, "0.3")))
	})
	t.Run("When a restart is ordered it should be passed on once, so that a later one stays", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen(func(obs *state.Observed) { obs.HC.Annotations[hyperv1.RestartDateAnnotation] = "one" })
		obs.HCP = hostedControlPlane(obs)
		g.Expect(obs.HCP.Annotations).To(And(HaveKeyWithValue(hyperv1.RestartDateAnnotation, "one"), HaveKeyWithValue(hyperv1.PreviousRestartDateAnnotation, "one")))
		obs.HCP.Annotations[hyperv1.RestartDateAnnotation] = "by-certificate"
		obs.HCP = hostedControlPlane(obs)
		g.Expect(obs.HCP.Annotations).To(HaveKeyWithValue(hyperv1.RestartDateAnnotation, "by-certificate"))
		obs.HC.Annotations[hyperv1.RestartDateAnnotation] = "two"
		g.Expect(hostedControlPlane(obs).Annotations).To(HaveKeyWithValue(hyperv1.RestartDateAnnotation, "two"))
	})
	t.Run("When encryption and audit are taken out of the spec they should stay", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen(func(obs *state.Observed) {
			obs.HCP = &hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{AuditWebhook: &corev1.LocalObjectReference{Name: "a"}, SecretEncryption: &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC}}}
		})
		g.Expect(hostedControlPlane(obs).Spec.AuditWebhook).To(HaveValue(Equal(corev1.LocalObjectReference{Name: "a"})))
		g.Expect(hostedControlPlane(obs).Spec.SecretEncryption).NotTo(BeNil())
	})
}

// fill makes a value different from what it was.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.String:
		v.SetString(v.String() + "filled")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k"), reflect.ValueOf("v"))
	case reflect.Struct:
		for i := range v.NumField() {
			switch v.Field(i).Kind() {
			case reflect.String, reflect.Slice, reflect.Pointer:
				fill(v.Field(i))
				return
			}
		}
		if v.NumField() > 0 {
			fill(v.Field(0))
		}
	}
}

type recorder struct {
	fails map[string]bool
	ran   []string
}

func (r *recorder) execute(_ context.Context, s step) error {
	r.ran = append(r.ran, s.name)
	if r.fails[s.name] {
		return errors.New("boom")
	}
	return nil
}

func TestRunSteps(t *testing.T) {
	all := []step{{name: "c1", class: critical}, {name: "s1", class: supporting}, {name: "b1", class: blockable}, {name: "c2", class: critical}, {name: "b2", class: blockable}}
	for name, tc := range map[string]struct {
		fails []string
		ran   string
		err   string
	}{
		"When all is well it should run all":                                            {ran: "c1 s1 b1 c2 b2"},
		"When a supporting step fails it should run all and say so":                     {fails: []string{"s1"}, ran: "c1 s1 b1 c2 b2", err: "s1: boom"},
		"When a critical step fails it should block what depends, and return only that": {fails: []string{"c1", "s1"}, ran: "c1 s1 c2", err: "c1: boom\nblocked by this: b1, b2"},
		"When a later critical step fails it should block only what comes after":        {fails: []string{"c2", "b1"}, ran: "c1 s1 b1 c2", err: "c2: boom\nblocked by this: b2"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := &recorder{fails: map[string]bool{}}
			for _, f := range tc.fails {
				r.fails[f] = true
			}
			err := runSteps(t.Context(), r, all)
			g.Expect(strings.Join(r.ran, " ")).To(Equal(tc.ran))
			if tc.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(tc.err))
			}
		})
	}
}

// No gate that is closed lets anything be written but the mark on the user's own objects.
func TestClosedGatesWriteNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obs := seen()
		broken := false
		for _, b := range []func(){
			func() { obs.HC.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "10.132.0.0/16"}} },
			func() { _, obs.PlatformErr = platform.For("Moon"); obs.Platform = nil },
			func() {
				obs.ReleaseErr = fmt.Errorf("x: %w", release.ErrNotFound)
				obs.Target, obs.UserRelease = nil, nil
			},
			func() { obs.Target, obs.UserRelease = releaseOf("x:1.20.0"), releaseOf("x:1.20.0") },
			func() {
				obs.Sources[sources.Key{Kind: sources.Secret, Name: "pull"}] = sources.Object{Missing: true}
				obs.Target, obs.UserRelease = nil, nil
				obs.ReleaseErr = errors.New("no secret")
			},
			func() { obs.Namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo"}} },
		} {
			if rapid.Bool().Draw(t, "broken") {
				b()
				broken = true
			}
		}
		p := planFor(obs, setStatus(obs, noon), noon, options{})
		writes := slices.ContainsFunc(p.steps, func(s step) bool { return s.create != nil || len(s.apply)+len(s.delete) > 0 })
		if writes == broken {
			t.Fatalf("broken: %v, writes: %v", broken, writes)
		}
		again := planFor(obs, setStatus(obs, noon), noon, options{})
		if !reflect.DeepEqual(p.steps, again.steps) {
			t.Fatal("the plan is not the same twice")
		}
	})
}

func TestInfraID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,60}[a-z0-9])?`).Draw(t, "name")
		id := infraIDFor(name, "abcde")
		if len(id) > maxInfraID || strings.Contains(id, "--") || strings.Contains(id, ".") || !strings.HasSuffix(id, "-abcde") {
			t.Fatalf("%s gives %s", name, id)
		}
	})
}

func TestPodSecurity(t *testing.T) {
	override := func(o *state.Observed, level string) {
		o.HC.Annotations[hyperv1.PodSecurityAdmissionLabelOverrideAnnotation] = level
	}
	local := func(o *state.Observed) { o.HC.Spec.Platform.Type = hyperv1.LocalPlatform }
	for name, tc := range map[string]struct {
		world func(*state.Observed)
		want  string
	}{
		"When nobody says anything it should be restricted":                           {world: func(*state.Observed) {}, want: "restricted"},
		"When the operator's image is not ours it should be restricted all the same":  {world: func(o *state.Observed) { o.OperatorLabels = map[string]string{} }, want: "restricted"},
		"When machines are pods of the namespace it should be privileged":             {world: local, want: "privileged"},
		"When the annotation names a level it should be that":                         {world: func(o *state.Observed) { override(o, "baseline") }, want: "baseline"},
		"When the annotation names no level it should be restricted":                  {world: func(o *state.Observed) { override(o, "none") }, want: "restricted"},
		"When the annotation and the platform disagree it should be the annotation's": {world: func(o *state.Observed) { local(o); override(o, "restricted") }, want: "restricted"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(podSecurity(seen(tc.world).HC)).To(HaveKeyWithValue(hyperv1.PodSecurityEnforceLabel, tc.want))
		})
	}
}
