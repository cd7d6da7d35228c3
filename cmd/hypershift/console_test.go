package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/console/server"
)

func TestCommandsOfTheConsole(t *testing.T) {
	for _, c := range server.Commands("clusters", "demo") {
		t.Run("When the console offers "+c.Text+" it should be a command that there is", func(t *testing.T) {
			g := NewWithT(t)
			args, _, _ := strings.Cut(c.Text, " -- ")
			words := strings.Fields(args)
			g.Expect(words[0]).To(Equal("hypershift"))
			cmd, rest, err := command().Find(words[1:])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cmd.Runnable()).To(BeTrue())
			g.Expect(cmd.HasParent()).To(BeTrue())
			g.Expect(cmd.ParseFlags(rest)).To(Succeed())
			g.Expect(cmd.ValidateArgs(cmd.Flags().Args())).To(Succeed())
		})
	}
}
