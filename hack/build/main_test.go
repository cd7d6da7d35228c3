package main

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTargetsOf(t *testing.T) {
	t.Run("When parts are named their targets should come in that order", func(t *testing.T) {
		g := NewWithT(t)
		targets, err := targetsOf(t.TempDir(), "1.36.3", []string{"programs", "kubernetes", "capi", "clusterctl", "capa", "flannel"})
		g.Expect(err).NotTo(HaveOccurred())
		var outs []string
		for _, target := range targets {
			outs = append(outs, target.Out)
			g.Expect(target.Typical).NotTo(BeZero(), target.Name)
		}
		g.Expect(outs).To(Equal([]string{"bin/", "bin/kubernetes/v1.36.3/kube", "bin/kubernetes/v1.36.3/node", "bin/kubectl",
			"bin/capi/v1.13.4/capi-manager", "bin/capi/v1.13.4/clusterctl", "bin/capa/v2.13.0/capa-manager", "bin/flannel"}))
	})
	t.Run("When a part or a version isn't known it should say what is", func(t *testing.T) {
		g := NewWithT(t)
		_, err := targetsOf(t.TempDir(), "", []string{"everything"})
		g.Expect(err).To(MatchError(ContainSubstring("capa, capi, clusterctl, flannel, karpenter, kubernetes, programs")))
		_, err = targetsOf(t.TempDir(), "1.2.3", []string{"kubernetes"})
		g.Expect(err).To(MatchError(ContainSubstring("1.36.3")))
		g.Expect(run(t.Context(), nil, &bytes.Buffer{})).To(MatchError(ContainSubstring("nothing to build")))
	})
}
