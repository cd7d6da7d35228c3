package ignition

import (
	"os"
	"testing"

	"hcp.internal/platform/internal/ignition/tools/toolstest"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) {
	toolstest.Main()
	os.Exit(testenv.Main(m))
}
