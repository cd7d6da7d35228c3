// Command hcp-karpenter is Karpenter's core, unmodified, with machines of a hosted cluster on platform Local. It is configured as Karpenter is, by flags and variables of
// the environment; KUBECONFIG leads to the hosted cluster. Its own are:
//
//	MANAGEMENT_KUBECONFIG    file that leads to the management cluster; empty: the credentials of the Pod
//	MANAGEMENT_NAMESPACE     namespace of the control plane; required
//	HOSTED_CONTROL_PLANE     name of the HostedControlPlane there, in whose status machines are counted; required
//	RETIRE                   true: no more machines are made, and all that were made are drained and removed
//	USE_PRIVATE_CAPI_TYPES   true: the objects of Cluster API are stored in HyperShift's own groups
//
// Definitions of NodePools, NodeClaims and node classes are brought into the hosted cluster before anything else.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	polling "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/karpenter/pkg/apis"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
	"sigs.k8s.io/yaml"

	"hcp.internal/karpenter/api"
	"hcp.internal/karpenter/provider"
)

func main() {
	machines, err := prepare(context.Background())
	if err != nil {
		exit(err)
	}
	ctx, op := operator.NewOperator()
	if err := indexed(ctx, op.GetFieldIndexer()); err != nil {
		exit(err)
	}
	retire := os.Getenv("RETIRE") == "true"
	own := &provider.Provider{Hosted: op.GetClient(), Machines: machines, Retire: retire}
	report := &provider.Report{Hosted: op.GetClient(), Live: op.GetAPIReader(), Machines: machines, ControlPlane: os.Getenv("HOSTED_CONTROL_PLANE"), Retire: retire}
	if err := op.AddReadyzCheck("reported", report.Ready); err != nil {
		exit(err)
	}
	decorated := overlay.Decorate(own, op.GetClient(), op.InstanceTypeStore)
	cluster := state.NewCluster(op.Clock, op.GetClient(), decorated)
	op.WithControllers(ctx, controllers.NewControllers(ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder, decorated, own, cluster, op.InstanceTypeStore)...).
		WithControllers(ctx, &provider.Classes{Hosted: op.GetClient(), Machines: machines}, report).
		Start(log.IntoContext(ctx, log.FromContext(ctx)))
}

func exit(err error) {
	fmt.Fprintln(os.Stderr, "hcp-karpenter:", err)
	os.Exit(1)
}

// prepare reaches both clusters, and brings the definitions into the hosted one.
func prepare(ctx context.Context) (m provider.Machines, _ error) {
	m = provider.Machines{Namespace: os.Getenv("MANAGEMENT_NAMESPACE"), Private: os.Getenv("USE_PRIVATE_CAPI_TYPES") == "true"}
	if m.Namespace == "" || os.Getenv("HOSTED_CONTROL_PLANE") == "" {
		return m, fmt.Errorf("MANAGEMENT_NAMESPACE or HOSTED_CONTROL_PLANE is empty: set them to the namespace and the name of the HostedControlPlane")
	}
	if err := api.AddToScheme(clientgoscheme.Scheme); err != nil {
		return m, err
	}
	cfg, err := management()
	if err != nil {
		return m, fmt.Errorf("reaching the management cluster: %w", err)
	}
	if m.Client, err = client.New(cfg, client.Options{Scheme: runtime.NewScheme()}); err != nil {
		return m, fmt.Errorf("reaching the management cluster: %w", err)
	}
	hosted, err := ctrl.GetConfig()
	if err != nil {
		return m, fmt.Errorf("reaching the hosted cluster: %w", err)
	}
	return m, define(ctx, hosted)
}

func management() (*rest.Config, error) {
	if path := os.Getenv("MANAGEMENT_KUBECONFIG"); path != "" {
		return clientcmd.BuildConfigFromFlags("", path)
	}
	return rest.InClusterConfig()
}

// define applies the definitions, and waits until they are served: Karpenter's core makes the indexes that it finds its machines by when it starts, and does without
// those of kinds that aren't there.
func define(ctx context.Context, cfg *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("reaching the hosted cluster: %w", err)
	}
	own := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(api.Definition, own); err != nil {
		return err
	}
	for _, crd := range append([]*apiextensionsv1.CustomResourceDefinition{own}, apis.CRDs...) {
		crd = crd.DeepCopy()
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		if err := c.Patch(ctx, crd, client.Apply, client.FieldOwner("hcp-karpenter"), client.ForceOwnership); err != nil { //nolint:staticcheck // the typed form has no CustomResourceDefinitions here
			return fmt.Errorf("defining %s in the hosted cluster: %w", crd.Name, err)
		}
		if err := served(ctx, cfg, crd); err != nil {
			return fmt.Errorf("waiting for %s in the hosted cluster: %w", crd.Name, err)
		}
	}
	return nil
}

// served waits until discovery has a kind in every version.
func served(ctx context.Context, cfg *rest.Config, crd *apiextensionsv1.CustomResourceDefinition) error {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return err
	}
	var last error
	err = polling.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		for _, v := range crd.Spec.Versions {
			if !v.Served {
				continue
			}
			list, err := d.ServerResourcesForGroupVersion(crd.Spec.Group + "/" + v.Name)
			if last = err; err != nil {
				return false, nil //nolint:nilerr // because it may come
			}
			if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == crd.Spec.Names.Plural }) {
				return false, nil
			}
		}
		return true, nil
	})
	return errors.Join(err, last)
}

// indexed is an error unless Karpenter's core has made its indexes: an API server that was asked by it may be behind the one that was asked by served. Making one again
// is refused when it is there.
func indexed(ctx context.Context, indexer client.FieldIndexer) error {
	none := func(client.Object) []string { return nil }
	for field, of := range map[string]client.Object{"status.providerID": &v1.NodeClaim{}, "spec.template.spec.nodeClassRef.name": &v1.NodePool{}} {
		if err := indexer.IndexField(ctx, of, field, none); err == nil || !strings.Contains(err.Error(), "indexer conflict") {
			return errors.Join(fmt.Errorf("there is no index of %T by %s, as its definition was not served yet: starting anew", of, field), err)
		}
	}
	return nil
}
