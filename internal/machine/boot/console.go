package boot

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/clip"
)

// console writes lines with the time since boot, as a kernel does.
type console struct {
	mu    sync.Mutex
	out   io.Writer
	clock clock.PassiveClock
	began time.Time
}

func newConsole(out io.Writer, clk clock.PassiveClock) *console {
	return &console{out: out, clock: clk, began: clk.Now()}
}

// maxMessage bounds one message: some hold what a process has printed.
const maxMessage = 8 << 10

func (c *console) say(format string, args ...any) {
	text := clip.Over(fmt.Sprintf(format, args...), maxMessage, "…")
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.out, "[%9.3f] %s\n", c.clock.Since(c.began).Seconds(), strings.ToValidUTF8(text, "?"))
}
