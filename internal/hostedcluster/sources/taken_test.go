package sources

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/pki"
)

// free are names in golden files that users may give to objects of theirs, and why.
var free = map[Key]string{
	{Secret, "api-cert"}:      "the user's own, in an example",
	{Secret, "audit-webhook"}: "the user's own, in an example",
	{ConfigMap, "trusted-ca"}: "nobody makes it: what mounts it does without",
}

// part is what names Secrets and ConfigMaps in a golden file.
type part struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

func (p part) names() []Key {
	var all []Key
	if kind := Kind(p.Kind); kind == Secret || kind == ConfigMap {
		all = append(all, Key{kind, p.Metadata.Name})
	}
	for _, v := range p.Spec.Template.Spec.Volumes {
		sources := []corev1.VolumeProjection{{}}
		if v.Projected != nil {
			sources = v.Projected.Sources
		}
		if v.Secret != nil {
			all = append(all, Key{Secret, v.Secret.SecretName})
		}
		if v.ConfigMap != nil {
			all = append(all, Key{ConfigMap, v.ConfigMap.Name})
		}
		for _, s := range sources {
			if s.Secret != nil {
				all = append(all, Key{Secret, s.Secret.Name})
			}
			if s.ConfigMap != nil {
				all = append(all, Key{ConfigMap, s.ConfigMap.Name})
			}
		}
	}
	return all
}

// rendered are the Secrets and ConfigMaps that components make or mount, in any golden file of a control plane.
func rendered(g Gomega) map[Key]string {
	found, same := map[Key]string{}, map[string]bool{}
	for _, folder := range []string{"golden", "openshift/golden"} {
		g.Expect(filepath.WalkDir(filepath.Join("../../cli/render/testdata", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, text := range strings.Split(string(raw), "\n---\n") {
				if same[text] { // most are in many scenarios
					continue
				}
				same[text] = true
				p := part{}
				if err := yaml.Unmarshal([]byte(text), &p); err != nil {
					return err
				}
				for _, key := range p.names() {
					if key.Name != "" { // of a cloud's credentials, which that scenario doesn't name
						found[key] = path
					}
				}
			}
			return nil
		})).To(Succeed())
	}
	return found
}

// mention is what a user writes for an object that is copied under its own name.
func mention(spec *hyperv1.HostedClusterSpec, key Key) Reference {
	spec = spec.DeepCopy()
	if key.Kind == Secret {
		spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{ServingCerts: configv1.APIServerServingCerts{
			NamedCertificates: []configv1.APIServerNamedServingCert{{ServingCertificate: configv1.SecretNameReference{Name: key.Name}}}}}}
	} else {
		spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{ClientCA: configv1.ConfigMapNameReference{Name: key.Name}}}
	}
	ref, _ := Find(spec, globalConfig)
	return ref
}

func TestTaken(t *testing.T) {
	spec := &hyperv1.HostedClusterSpec{InfraID: "demo-x7k2p", Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{
		Shards: []hyperv1.ManagedEtcdShard{{Name: "events"}, {Name: "pods"}}}}}
	t.Run("When a copy would have the name of what a component makes or mounts it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		found := rendered(g)
		g.Expect(len(found)).To(BeNumerically(">", 100))
		for key, path := range found {
			if _, ok := free[key]; !ok {
				g.Expect(mention(spec, key).Taken(spec)).To(BeTrue(), "%s %s of %s: add it to the names that are taken", key.Kind, key.Name, path)
			}
		}
	})
	t.Run("When a copy would have the name of a kubeconfig that operators use it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		for _, name := range []string{pki.HCCOKubeconfig, pki.KCMKubeconfig, pki.SchedulerKubeconfig, pki.KASBootstrapKubeconfig, pki.CAPIKubeconfig(spec.InfraID)} {
			g.Expect(mention(spec, Key{Secret, name}).Taken(spec)).To(BeTrue(), name)
		}
	})
	t.Run("When a name is nobody's it should be free", func(t *testing.T) {
		g := NewWithT(t)
		for key := range free {
			g.Expect(mention(spec, key).Taken(spec)).To(BeFalse(), key.Name)
		}
		g.Expect(mention(spec, Key{Secret, "mine"}).Taken(spec)).To(BeFalse())
	})
}
