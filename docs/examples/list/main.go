// Command list shows how a program of yours uses the API module: it lists the hosted clusters of a management cluster, with their versions.
//
//	KUBECONFIG=… go run .
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	found, err := client.Resource(hyperv1.GroupVersion.WithResource("hostedclusters")).List(ctx, metav1.ListOptions{Limit: 500})
	if err != nil {
		return err
	}
	for i := range found.Items {
		hc := &hyperv1.HostedCluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Items[i].Object, hc); err != nil {
			return fmt.Errorf("reading HostedCluster %s/%s: %w", found.Items[i].GetNamespace(), found.Items[i].GetName(), err)
		}
		version := "-"
		if hc.Status.Version != nil && len(hc.Status.Version.History) > 0 {
			version = hc.Status.Version.History[0].Version
		}
		fmt.Printf("%s/%s\t%s\tavailable: %t\n", hc.Namespace, hc.Name, version, meta.IsStatusConditionTrue(hc.Status.Conditions, string(hyperv1.HostedClusterAvailable)))
	}
	return nil
}
