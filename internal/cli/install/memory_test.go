package install

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// workload is a Deployment or another kind with pods, as a golden file has it.
type workload struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

// unlimited are workloads of control planes and of hosted clusters whose containers have no memory limit, and why.
var unlimited = map[string]string{
	// etcd and kube-apiserver need what their users put into them. Killed for it they come back to the same data, so that a limit makes an outage of
	// what would have been a node under pressure; priorities and requests decide who goes first there.
	"etcd": content, "etcd-events": content, "etcd-pods": content, "kube-apiserver": content,
	"control-plane-operator": published, "control-plane-pki-operator": published, "hosted-cluster-config-operator": published, "ignition-server": published,
	"cluster-api": published, "cluster-autoscaler": published, "kube-controller-manager": published, "kube-scheduler": published,
	"konnectivity-agent": published, "coredns": published, "kube-flannel-ds": published, "kube-proxy": published, "local-storage": published, "kube-apiserver-proxy": published,
}

const (
	content = "it needs what users store in it"
	// HyperShift publishes these with requests and without limits; tools that compare resources, and overrides by annotation, know them so. What they need
	// grows with the hosted cluster; what hostile input can make ours hold is bounded in each of them.
	published = "published without limits"
)

// TestMemoryLimits looks at every golden file with pods in the repository: all containers have a memory limit, and know it, so that one operator that is
// driven to take what it can takes nothing from others. A new workload gets a limit, or a reason in unlimited.
func TestMemoryLimits(t *testing.T) {
	g := NewWithT(t)
	found := map[string]bool{}
	for _, folder := range []string{"testdata", "../render/testdata", "../../configoperator", "../../packages/control/operatorpackage/testdata", "../../packages/control/hypershift/testdata"} {
		err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() && strings.HasSuffix(path, "render/testdata/openshift") {
				return filepath.SkipDir // the components of OpenShift payloads: published without limits, all of them
			}
			if err == nil && entry.IsDir() && strings.HasSuffix(path, "configoperator/openshift") {
				return filepath.SkipDir // and so is what their hosted clusters have from the start
			}
			// The package's everything.yaml has resources that its user chose.
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" || strings.Contains(path, "operatorpackage") && entry.Name() == "everything.yaml" {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, document := range strings.Split(string(data), "\n---\n") {
				w := workload{}
				if err := yaml.Unmarshal([]byte(document), &w); err != nil || len(w.Spec.Template.Spec.Containers) == 0 {
					continue // other kinds, and documents that are templates
				}
				found[w.Metadata.Name] = true
				problems := missingLimits(w)
				if unlimited[w.Metadata.Name] == "" {
					g.Expect(problems).To(BeEmpty(), "%s: %s %s", path, w.Kind, w.Metadata.Name)
				} else {
					g.Expect(problems).NotTo(BeEmpty(), "%s: %s %s has limits and a reason why not", path, w.Kind, w.Metadata.Name)
				}
			}
			return nil
		})
		g.Expect(err).NotTo(HaveOccurred())
	}
	for _, name := range []string{"operator", "external-dns", "package-operator-manager"} {
		g.Expect(found).To(HaveKey(name))
	}
	for name := range unlimited {
		g.Expect(found).To(HaveKey(name), "there is no such workload any more")
	}
}

// missingLimits says which containers lack a limit, or don't know of it.
func missingLimits(w workload) []string {
	var out []string
	spec := w.Spec.Template.Spec
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		limit, request := c.Resources.Limits.Memory(), c.Resources.Requests.Memory()
		switch {
		case limit.IsZero() && c.Name == "kube-apiserver-proxy" && w.Metadata.Name != c.Name:
			// beside programs of a control plane, where it is published without limits as a workload of its own is
		case limit.IsZero():
			out = append(out, fmt.Sprintf("container %s has no memory limit", c.Name))
		case limit.Cmp(*request) < 0, limit.Cmp(resource.MustParse("128Mi")) < 0:
			out = append(out, fmt.Sprintf("container %s has a memory limit of %s", c.Name, limit))
		case !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" }):
			out = append(out, fmt.Sprintf("container %s doesn't know its memory limit: GOMEMLIMIT is not set", c.Name))
		}
	}
	return out
}
