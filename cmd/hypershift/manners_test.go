package main

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hcp.internal/platform/internal/cli/kubectlpackage"
)

// What a command does with the management cluster.
type dealing int

const (
	elsewhere dealing = iota // nothing
	reads
	writes
)

// deals is what commands do, by the beginning of their names; the longest one counts. A command that connects has to have a line.
var deals = []struct {
	command string
	does    dealing
	// without says which manner it lacks, and why.
	without string
}{
	{"hypershift capi", elsewhere, ""},
	{"hypershift capi verify", reads, ""},
	{"hypershift capi migrate", elsewhere, "--dry-run is a switch that looks at what speaks against a move"},
	{"hypershift capi migrate status", reads, ""},
	{"hypershift capacity", reads, ""},
	{"hypershift clone", elsewhere, "--dry-run is a switch that reads and checks the whole backup"},
	{"hypershift console", elsewhere, "it serves a browser"},
	{"hypershift console-logs aws", elsewhere, "what it reads is in an account"},
	{"hypershift connect", elsewhere, "what it prints is the command's"},
	{"hypershift create", writes, ""},
	{"hypershift create bastion", elsewhere, "what it makes is in an account"},
	{"hypershift create iam", elsewhere, "what it makes is in an account"},
	{"hypershift create infra", elsewhere, "what it makes is in an account"},
	{"hypershift create kubeconfig", elsewhere, "a kubeconfig has one form"},
	{"hypershift describe", reads, ""},
	{"hypershift destroy", writes, ""},
	{"hypershift destroy bastion", elsewhere, "what it removes is in an account"},
	{"hypershift dump", elsewhere, "it writes files"},
	{"hypershift etcd recover", elsewhere, "each step shows in the cluster before the next one begins, and without --yes nothing is done"},
	{"hypershift events", reads, ""},
	{"hypershift first-failure", reads, ""},
	{"hypershift get", reads, ""},
	{"hypershift hibernate", writes, ""},
	{"hypershift install", elsewhere, "definitions come before what is of their kinds, so that a dry run could tell little; install render prints all of it"},
	{"hypershift logs", elsewhere, "logs are text"},
	{"hypershift render", elsewhere, "it asks no cluster"},
	{"hypershift restore", elsewhere, "--dry-run is a switch that reads and checks the whole backup"},
	{"hypershift rollout", writes, ""},
	{"hypershift rollout history", reads, ""},
	{"hypershift rollout plan", reads, ""},
	{"hypershift rollout status", reads, ""},
	{"hypershift rotate", writes, ""},
	{"hypershift sizing", reads, ""},
	{"hypershift timeline", reads, ""},
	{"hypershift uninstall", elsewhere, "it is a dry run without --yes"},
	{"hypershift upgrade", reads, ""},
	{"hypershift version", reads, ""},
	{"hypershift wake", writes, ""},
	{"hypershift why", reads, ""},
	{"kubectl package", elsewhere, "it works in a folder or with a registry"},
	{"kubectl package clustertree", elsewhere, "what it prints is as published"},
	{"kubectl package pause", writes, ""},
	{"kubectl package rollout", writes, ""},
	{"kubectl package rollout history", reads, ""},
	{"kubectl package rollout plan", reads, ""},
	{"kubectl package rollout status", reads, ""},
	{"kubectl package unpause", writes, ""},
}

func dealingOf(path string) (dealing, bool) {
	best, found := -1, false
	for i, d := range deals {
		if (path == d.command || strings.HasPrefix(path, d.command+" ")) && (best < 0 || len(d.command) > len(deals[best].command)) {
			best, found = i, true
		}
	}
	if !found {
		return elsewhere, false
	}
	return deals[best].does, true
}

// everyCommand calls check for each command that people are shown, of both programs.
func everyCommand(check func(*cobra.Command)) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		check(cmd)
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(command())
	walk(kubectlpackage.Command(kubectlpackage.Options{}))
}

func flagOf(cmd *cobra.Command, name string) *pflag.Flag {
	if f := cmd.Flags().Lookup(name); f != nil {
		return f
	}
	return cmd.InheritedFlags().Lookup(name)
}

// takesArguments tells whether a command has arguments of its own.
func takesArguments(cmd *cobra.Command) bool {
	return cmd.Args != nil && cmd.Args(cmd, []string{"x"}) == nil
}

func TestManners(t *testing.T) {
	everyCommand(func(cmd *cobra.Command) {
		path, leaf := cmd.CommandPath(), len(cmd.Commands()) == 0
		t.Run("When "+path+" is asked for help it should show a purpose and an example", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(cmd.Short).NotTo(BeEmpty())
			g.Expect(cmd.Example).NotTo(BeEmpty())
			if leaf {
				g.Expect(cmd.RunE).NotTo(BeNil())
			}
		})
		t.Run("When "+path+" has flags they should be called as everywhere", func(t *testing.T) {
			g := NewWithT(t)
			for name, short := range map[string]string{"namespace": "n", "all-namespaces": "A", "output": "o", "selector": "l", "watch": "w", "follow": "f", "filename": "f"} {
				if f := flagOf(cmd, name); f != nil && f.Usage != "" && !f.Hidden && !strings.HasPrefix(path, "kubectl package build") && !strings.HasPrefix(path, "kubectl package kickstart") {
					g.Expect(f.Shorthand).To(Equal(short), "--"+name)
				}
			}
			if flagOf(cmd, "kubeconfig") != nil {
				for _, name := range []string{"context", "as", "request-timeout"} {
					g.Expect(flagOf(cmd, name)).NotTo(BeNil(), "--"+name)
				}
			}
			if cmd.Flags().Lookup("name") != nil && leaf && !strings.HasPrefix(path, "kubectl") {
				g.Expect(takesArguments(cmd)).To(BeTrue(), "--name is an argument, too")
			}
		})
		if !leaf && cmd.Name() != "capi" && cmd.Name() != "install" && cmd.Name() != "migrate" || flagOf(cmd, "kubeconfig") == nil {
			return
		}
		t.Run("When "+path+" reads or writes it should take -o or --dry-run", func(t *testing.T) {
			g := NewWithT(t)
			does, known := dealingOf(path)
			g.Expect(known).To(BeTrue(), "what does it do? give it a line in deals")
			switch does {
			case reads:
				g.Expect(flagOf(cmd, "output")).NotTo(BeNil())
				if strings.HasPrefix(path, "hypershift get ") {
					formats := []string{"json", "yaml", "name", "wide"}
					if cmd.Name() == "certificates" || cmd.Name() == "backups" { // their tables show all that there is
						formats = formats[:3]
					}
					for _, v := range formats {
						g.Expect(flagOf(cmd, "output").Value.Set(v)).To(Succeed(), v)
					}
				}
				g.Expect(flagOf(cmd, "dry-run")).To(BeNil(), "it writes nothing")
			case writes:
				dry := flagOf(cmd, "dry-run")
				g.Expect(dry).NotTo(BeNil())
				for _, v := range []string{"client", "server", "none"} {
					g.Expect(dry.Value.Set(v)).To(Succeed(), v)
				}
				g.Expect(dry.NoOptDefVal).To(Equal("client"))
			}
		})
		t.Run("When "+path+" is completed it should offer what there is", func(t *testing.T) {
			g := NewWithT(t)
			for _, name := range []string{"namespace", "cluster", "cluster-name", "dry-run"} {
				if f := cmd.Flags().Lookup(name); f != nil && f.Value.Type() != "bool" && (name != "namespace" || strings.HasPrefix(path, "hypershift") && f.DefValue == "clusters") {
					_, ok := cmd.GetFlagCompletionFunc(name)
					g.Expect(ok).To(BeTrue(), "--"+name)
				}
			}
			if takesArguments(cmd) {
				g.Expect(cmd.ValidArgsFunction).NotTo(BeNil())
			}
		})
	})
	t.Run("When a line is about no command it should be removed", func(t *testing.T) {
		g := NewWithT(t)
		var all []string
		everyCommand(func(cmd *cobra.Command) { all = append(all, cmd.CommandPath()) })
		for _, d := range deals {
			g.Expect(slices.Contains(all, d.command)).To(BeTrue(), d.command)
		}
	})
}
