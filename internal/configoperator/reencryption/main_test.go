package reencryption

import (
	"fmt"
	"os"
	"testing"

	"hcp.internal/platform/internal/sidecar/kmsplugin"
	"hcp.internal/platform/internal/testenv"
)

// asPlugin has this binary be the plugin that holds keys, a process of its own.
const asPlugin = "TEST_AS_KMS_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		cmd := kmsplugin.Command()
		cmd.SetArgs(os.Args[1:])
		if err := cmd.Execute(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(testenv.Main(m))
}
