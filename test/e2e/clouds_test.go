//go:build e2e && (aws || hosts)

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/capigroup/proxy"
)

// noProvider is the image of a provider that runs beside the cluster: it only has to be one, as annotation debug-deployments keeps its pod away.
const noProvider = "10.244.0.1:5000/hypershift/pause:local"

// newestRelease is the reference of the release that up built.
func newestRelease() string {
	if ref := os.Getenv("E2E_RELEASE"); ref != "" {
		return ref
	}
	return "10.244.0.1:5000/hypershift/release:1.36.3"
}

// nodeImage is that of machines.
func nodeImage() string {
	if ref := os.Getenv("E2E_NODE_IMAGE"); ref != "" {
		return ref
	}
	return "10.244.0.1:5000/hypershift/node:1.36.3"
}

// privateTypes tells whether the local cluster stores the objects of Cluster API in HyperShift's own groups.
func privateTypes(t *testing.T) bool {
	out, err := management().try(t, "get", "crd", "machines.cluster.hypershift.openshift.io", "--ignore-not-found", "-o", "name")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out) != ""
}

func managementConfig(t *testing.T) *rest.Config {
	cfg, err := clientcmd.BuildConfigFromFlags("", management().kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func clientOf(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(cfg, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// installProviderCRDs makes the definitions of a provider, which local mode leaves out, and more.
func installProviderCRDs(t *testing.T, platform string, more ...*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	crds, err := config.ProviderCRDs(platform, privateTypes(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(managementConfig(t), envtest.CRDInstallOptions{CRDs: append(crds, more...), MaxTime: 3 * time.Minute}); err != nil {
		t.Fatal(err)
	}
}

// standardAPI leads a provider to the management cluster, as an administrator. Where objects are stored in HyperShift's groups it sees standard ones through
// the proxy.
func standardAPI(t *testing.T) rest.Config {
	t.Helper()
	cfg := managementConfig(t)
	if !privateTypes(t) {
		return *cfg
	}
	tls, err := rest.TLSConfigFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	up, err := proxy.NewUpstream(proxy.UpstreamConfig{URL: cfg.Host, TLS: tls})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(proxy.New(proxy.Config{Upstream: up}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	return rest.Config{Host: front.URL}
}

// pullSecretFile has credentials of nobody.
func pullSecretFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pull-secret.json")
	if err := os.WriteFile(file, []byte(`{"auths":{"registry.example.com":{"auth":"bm9ib2R5Om5vdGhpbmc="}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// nodeAddress is that of the node of the management cluster.
func nodeAddress(t *testing.T) string {
	t.Helper()
	return management().run(t, "get", "nodes", "-o", "jsonpath={.items[0].status.addresses[?(@.type=='InternalIP')].address}")
}

// beside runs something until the test ends.
func beside(t *testing.T, run func(ctx context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	t.Cleanup(func() { stop(); <-ended })
}

// nodesAre waits until the nodes of a hosted cluster are those that want names, as NAME=PROVIDER ID, and all are ready.
func nodesAre(t *testing.T, cluster string, timeout time.Duration, want func() ([]string, error)) {
	t.Helper()
	k := hostedKubectl(t, cluster)
	eventually(t, timeout, "the nodes of "+cluster, func() error {
		expected, err := want()
		if err != nil {
			return err
		}
		for i := range expected {
			expected[i] += "=True"
		}
		out, err := k.try(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name}={.spec.providerID}={.status.conditions[?(@.type=="Ready")].status} {end}`)
		got := strings.Fields(out)
		slices.Sort(got)
		slices.Sort(expected)
		if err != nil || !slices.Equal(got, expected) {
			return errors.Join(fmt.Errorf("nodes are %v, want %v", got, expected), err)
		}
		return nil
	})
}

// gone waits until a hosted cluster has been deleted.
func gone(t *testing.T, cluster string) {
	t.Helper()
	eventually(t, 10*time.Minute, "the end of hosted cluster "+cluster, func() error {
		out, err := management().try(t, "get", "hostedcluster", "-n", "clusters", cluster, "--ignore-not-found", "-o", "name")
		if err != nil || strings.TrimSpace(out) != "" {
			return errors.Join(fmt.Errorf("%s is still there", strings.TrimSpace(out)), err)
		}
		return nil
	})
}

// tellOnFailure prints what a hosted cluster and its machines say when the test has failed.
func tellOnFailure(t *testing.T, cluster string, kinds ...string) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, kind := range append([]string{"hostedclusters.hypershift.openshift.io", "nodepools.hypershift.openshift.io"}, kinds...) {
			out, _ := management().try(t, "get", kind, "-A", "-o", "yaml")
			t.Logf("%s:\n%s", kind, out)
		}
		out, _ := management().try(t, "get", "pods", "-A", "-o", "wide")
		t.Logf("while %s was tested:\n%s", cluster, out)
	})
}
