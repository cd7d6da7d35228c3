package describe

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestCommand(t *testing.T) {
	t.Run("When something else than a hosted cluster is named it should say which command tells of it", func(t *testing.T) {
		cmd := Command()
		cmd.SetArgs([]string{"--name", "np/workers"})
		NewWithT(t).Expect(cmd.ExecuteContext(t.Context())).To(MatchError(ContainSubstring("`hypershift why np/workers`")))
	})
}
