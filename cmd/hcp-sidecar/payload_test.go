package main

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// ownTags are the images of payload components that are ours.
var ownTags = []string{"controlplane-operator", "hosted-cluster-config-operator", "token-minter", "availability-prober", "socks5-proxy", "controlplane-pki-operator"}

// TestPayloadHelpers: manifests of OpenShift payloads are as published, and call our helpers by the published names and flags.
func TestPayloadHelpers(t *testing.T) {
	t.Run("When a component of a payload calls a helper it should be there and take its flags", func(t *testing.T) {
		g := NewWithT(t)
		files, err := filepath.Glob("../../internal/cli/render/testdata/openshift/golden/plain/*/*.yaml")
		g.Expect(err).NotTo(HaveOccurred())
		seen := map[string]bool{}
		for _, file := range files {
			for _, c := range ownContainers(t, file) {
				argv := append(slices.Clone(c.Command), c.Args...)
				if path.Base(argv[0]) == "bash" && len(argv) == 3 {
					argv = strings.Fields(strings.TrimPrefix(argv[2], "exec "))
				}
				if len(argv) < 2 || path.Base(argv[0]) != "control-plane-operator" {
					continue
				}
				cmd := command(argv[1])
				if cmd.Name() == "hcp-sidecar" {
					continue // one of the operators' binary
				}
				seen[argv[1]] = true
				found, rest, err := cmd.Find(argv[2:])
				g.Expect(err).NotTo(HaveOccurred(), "%s: %v", file, argv)
				g.Expect(found.ParseFlags(rest)).To(Succeed(), "%s: %v", file, argv)
			}
		}
		for _, name := range []string{"availability-prober", "token-minter", "resolve-dns", "sync-fg-configmap", "kas-bootstrap", "etcd-defrag-controller", "konnectivity-socks5-proxy", "konnectivity-https-proxy", "endpoint-resolver", "metrics-proxy"} {
			g.Expect(seen).To(HaveKey(name))
		}
	})
}

// ownContainers are the containers of a workload that run our image.
func ownContainers(t *testing.T, file string) (own []corev1.Container) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var workload struct {
		Spec struct {
			Template    corev1.PodTemplateSpec
			JobTemplate struct {
				Spec struct{ Template corev1.PodTemplateSpec }
			}
		}
	}
	if err := yaml.Unmarshal(raw, &workload); err != nil {
		return nil // no workload
	}
	for _, pod := range []corev1.PodSpec{workload.Spec.Template.Spec, workload.Spec.JobTemplate.Spec.Template.Spec} {
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			if slices.Contains(ownTags, c.Image) && len(c.Command) > 0 {
				own = append(own, c)
			}
		}
	}
	return own
}
