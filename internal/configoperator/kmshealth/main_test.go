package kmshealth

import (
	"os"
	"testing"

	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
