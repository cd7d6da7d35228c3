package cloudonly

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCommands(t *testing.T) {
	for _, cmd := range append(Roots(), Creates()...) {
		t.Run("When "+cmd.Name()+" is called it should say what to do instead", func(t *testing.T) {
			g := NewWithT(t)
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs([]string{"aws", "--name", "demo", "--unknown"})
			g.Expect(cmd.Execute()).To(MatchError(And(ContainSubstring("lacks it"), ContainSubstring("cloud's tools"))))
			cmd.SetArgs([]string{"--help"})
			g.Expect(cmd.Execute()).To(Succeed())
			g.Expect(out.String()).To(ContainSubstring("lacks it"))
		})
	}
}
