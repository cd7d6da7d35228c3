package hostedcluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"hcp.internal/platform/internal/hostedcluster/sources"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/support/supporttest"
)

// decoded is a HostedCluster with a spec as JSON has it.
func decoded(spec map[string]any) (*hyperv1.HostedCluster, bool) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, false
	}
	hc := exampleHostedCluster("clusters", image135)
	hc.Spec = hyperv1.HostedClusterSpec{}
	return hc, json.Unmarshal(raw, &hc.Spec) == nil
}

func exampleSpec(t *testing.T) map[string]any {
	t.Helper()
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&exampleHostedCluster("clusters", image135).Spec)
	if err != nil {
		t.Fatal(err)
	}
	delete(spec, "dns")
	return spec
}

// TestFieldsOfHostedCluster changes every field whose objects this operator is said to copy.
func TestFieldsOfHostedCluster(t *testing.T) {
	unmanaged := exampleSpec(t)
	unmanaged["etcd"] = map[string]any{"managementType": "Unmanaged", "unmanaged": map[string]any{"endpoint": "https://etcd.example.com:2379"}}
	supporttest.Proof{Table: support.Of("HostedCluster"), By: "hostedcluster", Platform: "None",
		Bases: map[string]map[string]any{"example": exampleSpec(t), "unmanaged etcd": unmanaged},
		Render: func(spec map[string]any) (string, bool) {
			hc, ok := decoded(spec)
			if !ok {
				return "", false
			}
			var named []string
			for _, ref := range sources.References(&hc.Spec) {
				named = append(named, ref.Purpose+" "+ref.Field+" "+ref.Name)
			}
			return strings.Join(named, "\n"), true
		}}.Run(t)
}

// index is the place of an element in a list, which a message has and the table has not.
var index = regexp.MustCompile(`\[[0-9]+\]`)

// TestAllFieldsHeeded sets every field for itself and reads what users are told.
func TestAllFieldsHeeded(t *testing.T) {
	table := support.Of("HostedCluster")
	told := func(obs *observed) metav1.Condition { return allFieldsHeeded(obs) }
	for _, leaf := range supporttest.Leaves(t, table.Kind) {
		e, _ := table.Lookup(leaf.Path, "")
		if e.Verdict == support.Heeded || e.Quiet || strings.HasPrefix(leaf.Path, "spec.platform") ||
			leaf.Path == "spec.secretEncryption.kms.ibmcloud.auth.managed" { // it has no fields, so it can't be told from one that is not set
			continue
		}
		t.Run("When "+leaf.Path+" is set it should be told, and refused where the table says so", func(t *testing.T) {
			g := NewWithT(t)
			for _, value := range supporttest.Candidates(leaf) {
				if value == any("") || value == any(false) || fmt.Sprint(value) == e.Default || fmt.Sprint(value) == "map[]" {
					continue
				}
				if special, _ := table.Lookup(leaf.Path, fmt.Sprint(value)); special.Verdict != e.Verdict {
					continue
				}
				spec := exampleSpec(t)
				supporttest.Set(spec, leaf.Path, value)
				hc, ok := decoded(spec)
				if !ok {
					continue
				}
				c := told(seen(func(obs *observed) { obs.hc = hc }))
				g.Expect(c.Status).To(Equal(metav1.ConditionFalse), "%v", value)
				g.Expect(c.Reason).To(Equal(hyperv1.FieldsNotHeededReason))
				g.Expect(index.ReplaceAllString(c.Message, "[]")).To(ContainSubstring(e.Path + ": " + e.Text))
				refused := strings.Join(fieldsAreNotRefused(seen(func(obs *observed) { obs.hc = hc })), "; ")
				g.Expect(strings.Contains(refused, e.Text)).To(Equal(e.Verdict == support.Refused), refused)
				running := seen(func(obs *observed) { obs.hc, obs.hcp = hc, &hyperv1.HostedControlPlane{} })
				g.Expect(fieldsAreNotRefused(running)).To(BeEmpty(), "a cluster that runs goes on")
				return
			}
			t.Errorf("no value of %s could be set", leaf.Path)
		})
	}
	t.Run("When everything is heeded it should say so", func(t *testing.T) {
		g := NewWithT(t)
		hc, ok := decoded(exampleSpec(t))
		g.Expect(ok).To(BeTrue())
		g.Expect(told(seen(func(obs *observed) { obs.hc = hc })).Status).To(Equal(metav1.ConditionTrue))
	})
	t.Run("When an annotation means nothing it should be named", func(t *testing.T) {
		g := NewWithT(t)
		c := told(seen(func(obs *observed) {
			obs.hc.Annotations = map[string]string{hyperv1.PortierisImageAnnotation: "x", hyperv1.RestartDateAnnotation: "x"}
		}))
		g.Expect(c.Message).To(ContainSubstring("metadata.annotations[" + hyperv1.PortierisImageAnnotation + "]"))
		g.Expect(c.Message).NotTo(ContainSubstring(hyperv1.RestartDateAnnotation))
	})
	t.Run("When a field is refused nothing should be written, and the condition name field and remedy", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen(func(obs *observed) { obs.hc.Spec.FIPS = true })
		setStatus(obs, noon)
		c := conditions.Get(obs.hc.Status.Conditions, hyperv1.ValidHostedClusterConfiguration)
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(c.Message).To(HavePrefix("spec.fips: "))
		for _, s := range planFor(obs, setStatus(obs, noon), noon, options{}).steps {
			g.Expect(s.apply).To(BeEmpty())
			g.Expect(s.create).To(BeNil())
		}
	})
}

func TestFlavour(t *testing.T) {
	openShift := func(obs *observed) {
		r := *releaseOf(image135)
		r.Version, r.Kubernetes = "4.20.1", false
		obs.userRelease, obs.target = &r, &r
	}
	t.Run("When the release is one of OpenShift it should be refused before anything is written", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen(openShift)
		setStatus(obs, noon)
		c := conditions.Get(obs.hc.Status.Conditions, hyperv1.SupportedHostedCluster)
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(c.Reason).To(Equal(hyperv1.UnsupportedHostedClusterReason))
		g.Expect(c.Message).To(Equal("spec.release.image: " + image135 + " is release 4.20.1 of OpenShift, which this operator does not host: name a release of Kubernetes 1.34 to 1.36"))
		g.Expect(planFor(obs, setStatus(obs, noon), noon, options{}).steps).To(BeEmpty())
	})
	t.Run("When the registry goes away afterwards it should not forget", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen(openShift)
		setStatus(obs, noon)
		obs.userRelease, obs.target, obs.releaseErr = nil, nil, errors.New("no answer")
		setStatus(obs, noon)
		g.Expect(conditions.IsFalse(obs.hc.Status.Conditions, hyperv1.SupportedHostedCluster)).To(BeTrue())
	})
	t.Run("When another release is named it should be hosted", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen(openShift)
		setStatus(obs, noon)
		obs.hc.Generation++
		obs.userRelease, obs.target = releaseOf(image135), releaseOf(image135)
		setStatus(obs, noon)
		g.Expect(conditions.IsTrue(obs.hc.Status.Conditions, hyperv1.SupportedHostedCluster)).To(BeTrue())
	})
	t.Run("When a developer skips the check it should be tried", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen(openShift, func(obs *observed) {
			obs.hc.Annotations = map[string]string{hyperv1.SkipReleaseImageValidation: "true"}
		})
		setStatus(obs, noon)
		g.Expect(conditions.IsTrue(obs.hc.Status.Conditions, hyperv1.SupportedHostedCluster)).To(BeTrue())
	})
}

func TestIgnitionEndpoint(t *testing.T) {
	running := func(obs *observed) {
		obs.ignition = &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
			Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: "True"}}}}
		obs.ignitionEndpoint = "192.0.2.10:30443"
	}
	for name, tc := range map[string]struct {
		world func(*observed)
		want  string
	}{
		"When it serves where machines reach it it should be available": {world: func(*observed) {}, want: "True"},
		"When it has no replicas it should not be":                      {world: func(obs *observed) { obs.ignition.Spec.Replicas = ptr.To[int32](0) }, want: "False"},
		"When nobody can reach it it should not be":                     {world: func(obs *observed) { obs.ignitionEndpoint = "" }, want: "False"},
		"When there is none it should not be":                           {world: func(obs *observed) { obs.ignition = nil }, want: "False"},
		"When it has not said how it is it should be unknown":           {world: func(obs *observed) { obs.ignition.Status.Conditions = nil }, want: "Unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(string(ignitionEndpoint(seen(running, tc.world)).Status)).To(Equal(tc.want))
		})
	}
}
