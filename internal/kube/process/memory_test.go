package process

import (
	"context"
	"runtime"
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
	t.Setenv("GOMAXPROCS", "keep") // for the tests beside this one
	t.Run("When the process has started it should keep to one processor", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv("GOMAXPROCS", "")
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
		end := SpareTime(40)
		g.Expect(runtime.GOMAXPROCS(0)).To(Equal(3))
		end()
		g.Expect(runtime.GOMAXPROCS(0)).To(Equal(1))
	})
	t.Run("When somebody says how many processors it may use it should leave that", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv("GOMAXPROCS", "3") // read by the runtime when the process starts; here by hand
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
		SpareTime(40)()
		g.Expect(runtime.GOMAXPROCS(0)).To(Equal(3))
	})
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
	t.Run("When it rests from then on it should be settled, and end with its context", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv("GOGC", "")
		ctx, stop := context.WithCancel(t.Context())
		end := StartThenRest(ctx, 40)
		g.Expect(percent()).To(Equal(startPercent))
		end()
		g.Expect(percent()).To(Equal(40))
		stop()
		end() // does nothing
	})
}
