package local

import (
	"context"
	"fmt"
	"io"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/cli/progress"
)

func TestTours(t *testing.T) {
	t.Run("When a tour can't be shown now it should be left to a later up, and the others be shown once", func(t *testing.T) {
		g := NewWithT(t)
		var ran, shown []string
		asleep := true
		tour := func(name string) Tour {
			return Tour{Name: name, Task: name, Run: func(context.Context, Cluster, Say) error {
				if name == "addon" && asleep {
					return fmt.Errorf("the cluster sleeps: %w", ErrNotNow)
				}
				ran = append(ran, name)
				return nil
			}}
		}
		u := &Up{Settings: Settings{StateDir: t.TempDir()}, Steps: Steps{Tours: []Tour{tour("addon"), tour("package")}}}
		u.display = progress.NewDisplay(io.Discard, false, clock.RealClock{})
		c := Cluster{Show: func(format string, args ...any) { shown = append(shown, fmt.Sprintf(format, args...)) }}
		g.Expect(u.tours(t.Context(), c)).To(Succeed())
		g.Expect(ran).To(Equal([]string{"package"}))
		g.Expect(shown).To(HaveExactElements(ContainSubstring("later hypershift local up")))
		asleep = false
		for range 2 {
			g.Expect(u.tours(t.Context(), c)).To(Succeed())
		}
		g.Expect(ran).To(Equal([]string{"package", "addon"}))
	})
}
