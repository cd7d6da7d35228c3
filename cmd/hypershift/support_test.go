package main

import (
	"testing"

	"hcp.internal/platform/internal/support/supporttest"
)

func TestFlagsAreInTheTable(t *testing.T) {
	supporttest.Flags(t, "hypershift", command())
}
