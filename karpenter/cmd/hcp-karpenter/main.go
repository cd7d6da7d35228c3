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
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/karpenter/pkg/apis"
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
	retire := os.Getenv("RETIRE") == "true"
	own := &provider.Provider{Hosted: op.GetClient(), Machines: machines, Retire: retire}
	report := &provider.Report{Hosted: op.GetClient(), Machines: machines, ControlPlane: os.Getenv("HOSTED_CONTROL_PLANE"), Retire: retire}
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

// define applies the definitions, and waits for none: what needs them tries again until they are served.
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
	}
	return nil
}
