package nodepool

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capiadmission"
	"hcp.internal/platform/internal/contract/nodeconfig"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/hostedcluster"
)

var update = flag.Bool("update", os.Getenv("UPDATE") == "true", "rewrite the golden files")

// goldenPools are one for each set of features that changes what is made.
var goldenPools = map[string]func(*observed){
	"replace": func(*observed) {},
	"replace-everything": func(o *observed) {
		spec := &o.pool.Spec
		spec.NodeLabels = map[string]string{"example.com/zone": "a", "disk": "fast"}
		spec.Taints = []hyperv1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}, {Key: "batch", Effect: corev1.TaintEffectNoExecute}}
		spec.NodeDrainTimeout, spec.NodeVolumeDetachTimeout = &metav1.Duration{Duration: 90 * time.Second}, &metav1.Duration{Duration: time.Minute}
		spec.Management.AutoRepair = true
		spec.Management.Replace = &hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyRollingUpdate, RollingUpdate: &hyperv1.RollingUpdate{
			MaxSurge: ptr.To(intstr.FromString("25%")), MaxUnavailable: ptr.To(intstr.FromInt32(1))}}
		o.userConfig = []nodeconfig.Source{{Name: `ConfigMap "tuning"`, Data: machineConfig("/etc/motd", "data:,hello")}}
	},
	"replace-on-delete": func(o *observed) {
		o.pool.Spec.Management.Replace = &hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyOnDelete}
	},
	"in-place": func(o *observed) {
		o.pool.Spec.Management = hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeInPlace, AutoRepair: true, InPlace: &hyperv1.InPlaceUpgrade{MaxUnavailable: ptr.To(intstr.FromString("50%"))}}
		o.pool.Spec.Replicas = ptr.To[int32](4)
	},
	"autoscaled": func(o *observed) {
		o.pool.Spec.Replicas, o.pool.Spec.AutoScaling = nil, &hyperv1.NodePoolAutoScaling{Min: ptr.To[int32](0), Max: 5}
	},
}

// TestGolden compares everything that passes make until a pool has its machines, in the form in which it is written.
func TestGolden(t *testing.T) {
	scheme, err := hostedcluster.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range goldenPools {
		t.Run("When a pool is "+name+" it should be made of these objects", func(t *testing.T) {
			dir := filepath.Join("testdata", name)
			obs := example(t, change)
			first := planFor(obs, noon, "00000000-0000-4000-8000-000000000000")
			second := planFor(settled(obs, first), noon, "unused")
			objs := append([]client.Object{first.createToken, first.createTemplate}, first.apply...)
			if first.createSet != nil {
				objs = append(objs, first.createSet)
			} else {
				objs = append(objs, first.workload)
			}
			objs = append(objs, second.after...)
			want := map[string]bool{}
			for _, obj := range objs {
				text, kind := golden(t, scheme, obj)
				_, problems := capiadmission.Admit(t.Context(), obj)
				NewWithT(t).Expect(problems).To(BeEmpty(), "Cluster API's webhooks take it")
				defaulted := obj.DeepCopyObject()
				scheme.Default(defaulted)
				NewWithT(t).Expect(defaulted).To(BeComparableTo(obj), "Cluster API's webhooks change nothing but the spelling of the version")
				file := fmt.Sprintf("%s_%s.yaml", strings.ToLower(kind), obj.GetName())
				want[file] = true
				compare(t, filepath.Join(dir, file), text)
			}
			files, _ := os.ReadDir(dir)
			for _, f := range files {
				if !want[f.Name()] && *update {
					_ = os.Remove(filepath.Join(dir, f.Name()))
				} else if !want[f.Name()] {
					t.Errorf("%s is made no more; run the test with -update to remove the file", f.Name())
				}
			}
		})
	}
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("no golden file: %v; run the test with -update", err)
		return
	}
	NewWithT(t).Expect(got).To(Equal(string(want)), "%s differs; run the test with -update if that is meant", path)
}

// golden is an object as a person reads it: Secrets as text, without the packed configuration of machines.
func golden(t *testing.T, scheme *runtime.Scheme, obj client.Object) (text, kind string) {
	t.Helper()
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		t.Fatal(err)
	}
	content["apiVersion"], content["kind"] = gvk.GroupVersion().String(), gvk.Kind
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	if secret, ok := obj.(*corev1.Secret); ok {
		delete(content, "data")
		data := map[string]any{}
		for k, v := range secret.Data {
			data[k] = string(v)
		}
		if len(secret.Data[token.ConfigKey]) > 0 {
			data[token.ConfigKey] = "(packed)"
		}
		content["stringData"] = data
	}
	raw, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), gvk.Kind
}
