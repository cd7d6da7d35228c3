package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/cli/install"
)

func TestChoose(t *testing.T) {
	table := []role{{name: "hypershift-operator"}, {name: "control-plane-operator"}}
	for name, tc := range map[string]struct {
		argv []string
		role string
		args []string
		fail string
	}{
		"When called by a role's name it should be that role": {
			argv: []string{"/usr/bin/control-plane-operator", "run", "--x"}, role: "control-plane-operator", args: []string{"run", "--x"}},
		"When called by its own name it should take the first argument": {
			argv: []string{"./hcp-operators", "hypershift-operator", "run"}, role: "hypershift-operator", args: []string{"run"}},
		"When there is no argument it should list the roles": {argv: []string{"hcp-operators"}, fail: "hypershift-operator, control-plane-operator"},
		"When the role is unknown it should list the roles":  {argv: []string{"hcp-operators", "x"}, fail: `unknown role "x"`},
		"When there is no name at all it should not crash":   {argv: nil, fail: "without a program name"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			role, args, err := choose(table, tc.argv)
			if tc.fail != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.fail)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(role.name).To(Equal(tc.role))
			g.Expect(args).To(Equal(tc.args))
		})
	}
}

func TestAbout(t *testing.T) {
	for _, question := range []string{"help", "--help", "-h"} {
		t.Run("When it is asked "+question+" it should say what it is and list every role", func(t *testing.T) {
			g := NewWithT(t)
			out := &strings.Builder{}
			g.Expect(about(out, roles, []string{"/usr/bin/hcp-operators", question})).To(BeTrue())
			for _, r := range roles {
				g.Expect(out.String()).To(MatchRegexp(`(?m)^  ` + r.name + ` +` + regexp.QuoteMeta(r.short) + `$`))
			}
			g.Expect(out.String()).To(ContainSubstring("Examples:"))
		})
	}
	t.Run("When it is asked for its version it should give that", func(t *testing.T) {
		g := NewWithT(t)
		out := &strings.Builder{}
		g.Expect(about(out, roles, []string{"hcp-operators", "version"})).To(BeTrue())
		g.Expect(out.String()).To(HavePrefix("hcp-operators "))
	})
	t.Run("When a role is called the role should answer", func(t *testing.T) {
		for _, argv := range [][]string{{"hcp-operators"}, {"hcp-operators", "hypershift-operator", "--help"}, {"/usr/bin/control-plane-operator", "--help"}, {"hcp-operators", "x"}, nil} {
			NewWithT(t).Expect(about(&strings.Builder{}, roles, argv)).To(BeFalse(), "%q", argv)
		}
	})
}

func TestProgram(t *testing.T) {
	t.Run("When a manifest calls what another program holds it should name that one", func(t *testing.T) {
		g := NewWithT(t)
		r := role{helpers: map[string][]string{"hcp-sidecar": {"token-minter"}, "hcp-cloud": {"etcd-upload"}}}
		g.Expect(r.program([]string{"token-minter", "--x"})).To(Equal("hcp-sidecar"))
		g.Expect(r.program([]string{"etcd-upload"})).To(Equal("hcp-cloud"))
		g.Expect(r.program([]string{"run", "token-minter"})).To(BeEmpty())
		g.Expect(r.program(nil)).To(BeEmpty())
	})
}

// TestNoClouds holds the decision that libraries of clouds are linked into hcp-cloud and the command line alone: they are tens of megabytes, which every
// control plane of every platform would load.
func TestNoClouds(t *testing.T) {
	for _, program := range []string{"hcp-operators", "hcp-sidecar"} {
		t.Run("When "+program+" is linked it should have no library of a cloud", func(t *testing.T) {
			g := NewWithT(t)
			out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../"+program).Output()
			g.Expect(err).NotTo(HaveOccurred())
			packages := strings.Fields(string(out))
			g.Expect(len(packages)).To(BeNumerically(">", 100))
			for _, pkg := range packages {
				g.Expect(pkg).NotTo(MatchRegexp(`^(github\.com/(aws/aws-sdk-go(-v2)?/(config|credentials|service|feature)|Azure/azure-sdk-for-go|IBM|gophercloud)|cloud\.google\.com/go/(compute|storage)|google\.golang\.org/api)(/|$)`),
					"what needs it belongs into cmd/hcp-cloud")
			}
		})
	}
}

func TestRoles(t *testing.T) {
	for _, r := range roles {
		t.Run("When "+r.name+" is asked for help it should print it or say that it isn't there", func(t *testing.T) {
			g := NewWithT(t)
			cmd := r.command()
			g.Expect(cmd.Name()).To(Equal(r.name))
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs([]string{"--help"})
			g.Expect(cmd.ExecuteContext(t.Context())).To(Succeed())
		})
	}
}

// The installation and the operator are changed by different hands: what one passes, the other must take.
func TestInstalledArguments(t *testing.T) {
	g := NewWithT(t)
	o := install.NewOptions()
	o.Scope, o.Image, o.CIDebugOutput, o.RegistryOverride = install.ScopeResources, "r/i:1", true, map[string]string{"a": "b"}
	var container *corev1.Container
	for _, obj := range install.Resources(o) {
		if d, ok := obj.(*appsv1.Deployment); ok {
			container = &d.Spec.Template.Spec.Containers[0]
		}
	}
	g.Expect(container).NotTo(BeNil())
	argv := append(container.Command, container.Args...)
	role, args, err := choose(roles, argv)
	g.Expect(err).NotTo(HaveOccurred())
	cmd, rest, err := role.command().Find(args)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cmd.Name()).To(Equal("run"))
	g.Expect(cmd.ParseFlags(rest)).To(Succeed())
}
