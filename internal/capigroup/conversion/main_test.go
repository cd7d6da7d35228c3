package conversion

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}
