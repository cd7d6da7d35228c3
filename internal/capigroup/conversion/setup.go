package conversion

import (
	"crypto/tls"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"hcp.internal/platform/config"
)

// Port is where the operator's pod answers reviews.
const Port = 9443

// Setup adds the webhook to a manager: it answers on a port of its own before the manager's caches fill, and every replica does. direct leads
// to the management cluster itself, never through a proxy that renames groups (rest.InClusterConfig in a pod, whatever KUBECONFIG says);
// namespace is the manager's own. Nothing fails if its certificate can't be made yet; the API server asks again.
//
// Call it in pods only: outside of one no Service leads here, and the port may be another process'.
func Setup(mgr ctrl.Manager, direct *rest.Config, namespace string, port int) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	// Its own client: what it reads must be live, and no cache of the operator's may grow by a definition.
	live, err := client.New(direct, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("setting up the conversion webhook: %w", err)
	}
	handler, err := NewHandler(live, clock.RealClock{})
	if err != nil {
		return fmt.Errorf("setting up the conversion webhook: %w", err)
	}
	keeper := &Keeper{Client: live, Namespace: namespace, Clock: clock.RealClock{}}
	server := webhook.NewServer(webhook.Options{Port: port, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion, c.GetCertificate = tls.VersionTLS12, keeper.GetCertificate
	}}})
	server.Register(config.ConversionPath, handler)
	if err := mgr.Add(server); err != nil {
		return err
	}
	return mgr.Add(keeper)
}
