// Package gomemlimit has programs collect garbage harder before they reach the memory limit of their container.
package gomemlimit

import (
	"math"
	"os"
	"runtime/debug"
)

// Variable is what the runtime of Go reads its limit from. In our pods it is the memory limit of the container.
const Variable = "GOMEMLIMIT"

// share is the part of the limit that is for what the runtime counts. The rest is for the program's file, and for the kernel's buffers.
const share = 0.9

// Heed lowers the limit of this process's garbage collector to nine tenths of Variable, if that is set. Programs call it once, as they begin.
func Heed() {
	if os.Getenv(Variable) == "" {
		return
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		debug.SetMemoryLimit(int64(float64(limit) * share))
	}
}
