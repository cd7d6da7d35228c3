package testenv

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"hcp.internal/platform/config"
)

// Install adds definitions, or brings those that are there up to date, and returns once the API server serves their kinds.
func (e *Env) Install(t testing.TB, crds ...*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if err := e.install(crds); err != nil {
		t.Fatal(err)
	}
}

// installer is the manager of the definitions' fields, in whatever package the test is: a seed does not depend on who made it.
const installer = "testenv"

func (e *Env) install(crds []*apiextensionsv1.CustomResourceDefinition) error {
	cfg := rest.CopyConfig(e.Config)
	cfg.UserAgent = installer
	if _, err := envtest.InstallCRDs(cfg, envtest.CRDInstallOptions{CRDs: crds, MaxTime: startTimeout}); err != nil {
		return fmt.Errorf("installing CustomResourceDefinitions: %w", err)
	}
	return nil
}

// installCRDs adds those that every test may use.
func (e *Env) installCRDs() error {
	if e.Config == nil {
		return nil // the servers did not start
	}
	crds, err := config.CRDs("default")
	if err != nil {
		return err
	}
	capi, err := config.CAPICRDs()
	if err != nil {
		return err
	}
	return e.install(append(crds, capi...))
}

// InstallPrivateCAPI adds the definitions of Cluster API in HyperShift's own groups, once for all tests that share the server: it would validate anew
// those that it has.
func (e *Env) InstallPrivateCAPI(t testing.TB) {
	t.Helper()
	e.privateCAPI.Do(func() {
		crds, err := config.PrivateCAPICRDs()
		if err == nil {
			err = e.install(crds)
		}
		e.privateCAPIErr = err
	})
	if e.privateCAPIErr != nil {
		t.Fatalf("Cluster API in private groups: %v", e.privateCAPIErr)
	}
}
