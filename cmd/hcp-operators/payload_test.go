package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// TestPayloadCommands: manifests of OpenShift payloads are as published, and call our programs by the published names and flags.
func TestPayloadCommands(t *testing.T) {
	for name, container := range map[string]string{
		"control-plane-operator": "control-plane-operator", "hosted-cluster-config-operator": "hosted-cluster-config-operator",
		"control-plane-pki-operator": "control-plane-pki-operator", "ignition-server": "ignition-server", "kube-apiserver": "bootstrap", "etcd": "etcd-defrag",
	} {
		t.Run("When a payload's "+name+" starts one of our programs it should be there and take its flags", func(t *testing.T) {
			g := NewWithT(t)
			files, err := filepath.Glob("../../internal/cli/render/testdata/openshift/golden/plain/" + name + "/*_" + name + ".yaml")
			g.Expect(err).NotTo(HaveOccurred())
			found := false
			for _, file := range files {
				raw, err := os.ReadFile(file)
				g.Expect(err).NotTo(HaveOccurred())
				workload := appsv1.Deployment{}
				if err := yaml.Unmarshal(raw, &workload); err != nil {
					continue
				}
				for _, c := range workload.Spec.Template.Spec.Containers {
					if c.Name != container {
						continue
					}
					found = true
					role, args, err := choose(roles, append(slices.Clone(c.Command), c.Args...))
					g.Expect(err).NotTo(HaveOccurred())
					if role.program(args) != "" {
						continue // cmd/hcp-sidecar or cmd/hcp-cloud
					}
					cmd, rest, err := role.command().Find(args)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(cmd.ParseFlags(rest)).To(Succeed(), "%v", args)
				}
			}
			g.Expect(found).To(BeTrue())
		})
	}
}
