package cpo

import (
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/controlplane/component"
)

func TestManagementEnv(t *testing.T) {
	for name, tc := range map[string]struct{ in, out component.Management }{
		"When nothing is known it should stay unknown":            {},
		"When there are few nodes it should say how many":         {in: component.Management{Nodes: 2, Zones: 1, NativeSidecars: true}, out: component.Management{Nodes: 2, Zones: 1, NativeSidecars: true}},
		"When there are many nodes it should say enough":          {in: component.Management{Nodes: 250, Zones: 4}, out: component.Management{Nodes: 3, Zones: 3}},
		"When the namespace has a user it should be that":         {in: component.Management{SetDefaultSecurityContext: true, DefaultSecurityContextUID: 10042}, out: component.Management{SetDefaultSecurityContext: true, DefaultSecurityContextUID: 10042}},
		"When the namespace has no user it should be the default": {in: component.Management{SetDefaultSecurityContext: true}, out: component.Management{SetDefaultSecurityContext: true, DefaultSecurityContextUID: component.DefaultSecurityContextUID}},
		"When users are given by others it should be none":        {in: component.Management{DefaultSecurityContextUID: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			env := map[string]string{}
			for _, e := range managementEnv(tc.in) {
				env[e[0]] = e[1]
			}
			got, err := ManagementFromEnv(func(name string) string { return env[name] })
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.out))
		})
	}
	t.Run("When a number is none it should say which", func(t *testing.T) {
		_, err := ManagementFromEnv(func(string) string { return "-many" })
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(envNodes), ContainSubstring(envSecurityContextUID))))
	})
}
