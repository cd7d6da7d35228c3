package process

import (
	"runtime/debug"
	"testing"

	. "github.com/onsi/gomega"
)

// percent reads the setting, for which there is no function but the one that changes it.
func percent() int {
	now := debug.SetGCPercent(100)
	debug.SetGCPercent(now)
	return now
}

func TestSpareTime(t *testing.T) {
	defer debug.SetGCPercent(percent())
	t.Run("When the process has started it should go back to the setting of a settled one", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv("GOGC", "")
		end := SpareTime(40)
		g.Expect(percent()).To(Equal(startPercent))
		end()
		g.Expect(percent()).To(Equal(40))
		debug.SetGCPercent(70)
		end()
		g.Expect(percent()).To(Equal(70), "the second call does nothing")
	})
	t.Run("When GOGC is set it should be the setting of a settled process", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv("GOGC", "55") // read by the runtime when the process starts; here by hand
		debug.SetGCPercent(55)
		SpareTime(40)()
		g.Expect(percent()).To(Equal(55))
	})
}
