package migration

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/contract/names"
)

// lookOnly are components that a move leaves running although their Roles are about Cluster API.
var lookOnly = map[string]string{
	"karpenter-operator": "it only looks whether there is a Cluster",
}

// TestProgramNames keeps programs from being forgotten that make, change or look after objects of Cluster API.
func TestProgramNames(t *testing.T) {
	components, seen := os.DirFS("../../controlplane"), 0
	err := fs.WalkDir(components, ".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || path.Base(file) != "role.yaml" {
			return err
		}
		raw, err := fs.ReadFile(components, file)
		if err != nil {
			return err
		}
		role := &rbacv1.Role{}
		if err := yaml.Unmarshal(raw, role); err != nil {
			return err
		}
		if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.ContainsFunc(r.APIGroups, translate.InDomain) }) {
			return nil
		}
		seen++
		t.Run("When the Role of a component is about Cluster API a move should end its program: "+file, func(t *testing.T) {
			if lookOnly[role.Name] == "" {
				NewWithT(t).Expect(programNames).To(ContainElement(role.Name))
			}
		})
		return nil
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(seen).To(BeNumerically(">", 10))
}

// TestRestore is about the programs when a move is taken back.
func TestRestore(t *testing.T) {
	const cpo, manager, provider, config = names.ControlPlaneOperator, names.ClusterAPI, names.CAPIProvider, "hosted-cluster-config-operator"
	for name, tc := range map[string]struct {
		rights string
		want   []string
	}{
		"When none was deployed for the copies all should be brought back without being deployed": {translate.Standard,
			[]string{"note-hcp", "restore " + cpo, "restore " + config, "restore " + manager, "restore " + provider}},
		"When some were deployed for the copies only these should wait until they are deployed again": {translate.Private,
			[]string{"note-hcp", "restore " + cpo, "restore " + config, "deploy", "restore " + manager, "restore " + provider}},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Journal: &Journal{SchemaVersion: journalSchema, Lock: "l", Direction: Forward, Phase: RollBack}, Rights: []string{tc.rights},
				HC:  &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hyperv1.PrivateCAPIMigrationAckAnnotation: "l"}}},
				HCP: &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hyperv1.PrivateCAPITypesAnnotation: "true"}}}}
			for _, name := range []string{cpo, manager, provider, config} {
				o.Programs = append(o.Programs, Program{Name: name, Before: ptr.To(int32(1)), Settled: true})
			}
			p := planFor(o)
			var got []string
			for _, s := range p.Steps {
				got = append(got, string(s.Op))
				if s.Op == OpRestore {
					got[len(got)-1] += " " + s.Program.Name
				}
			}
			NewWithT(t).Expect(p.Ordered).To(BeTrue())
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

func TestRelease(t *testing.T) {
	t.Run("When Karpenter still has rights in the old group nothing should be released", func(t *testing.T) {
		g := NewWithT(t)
		o := Observed{Journal: &Journal{SchemaVersion: journalSchema, Direction: Forward, Phase: Release},
			HC:       &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hyperv1.PrivateCAPITypesAnnotation: "true"}}},
			From:     []Object{{Unstructured: object(translate.Standard, "v1beta2", "Machine", "n", "m", nil)}},
			Programs: []Program{{Name: karpenter, Rights: []string{translate.Standard}}}}
		g.Expect(planFor(o)).To(And(HaveField("Steps", BeEmpty()), HaveField("Next", BeEmpty()), HaveField("Wait", ContainSubstring(karpenter))))
		o.Programs[0].Rights = []string{translate.Private}
		g.Expect(planFor(o).Steps).To(HaveLen(1))
	})
}
