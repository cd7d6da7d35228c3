// Package memory trades memory for processor time while a process starts.
//
// Operators that exist once per hosted cluster are idle nearly always, so they keep their heap near what is live. While they start that
// setting would make the collector run every few megabytes, and with many hosted clusters that start at once, processors are what is short.
package memory

import (
	"os"
	"runtime/debug"
	"sync"
)

// startPercent lets the heap grow to five times of what is live: about 25 MiB more at its peak for an operator of one control plane, and
// a fifth less processor time.
const startPercent = 400

// Start lets the heap grow. The function that it returns ends that: it sets the percentage of $GOGC, else settled, and gives memory back to the
// system. It may be called several times and concurrently; only the first call does something.
func Start(settled int) (end func()) {
	if fromEnv := debug.SetGCPercent(startPercent); os.Getenv("GOGC") != "" {
		settled = fromEnv
	}
	return sync.OnceFunc(func() {
		debug.SetGCPercent(settled)
		debug.FreeOSMemory()
	})
}
