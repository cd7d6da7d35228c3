package local

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/local/cloud"
	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/local/network"
)

//go:embed assets/addons.yaml
var addonsYAML string

// fieldOwner owns what "up" applies.
const fieldOwner = "hypershift-local"

// addons are the DNS server and the storage class of the management cluster.
func addons(dnsImage string) ([]client.Object, error) {
	var out []client.Object
	for i, doc := range strings.Split(addonsYAML, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			return nil, fmt.Errorf("decoding document %d of the add-ons: %w", i, err)
		}
		if err := adapt(u, dnsImage); err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}

// adapt fills in what is not constant.
func adapt(u *unstructured.Unstructured, dnsImage string) error {
	switch u.GetKind() {
	case "ConfigMap":
		return unstructured.SetNestedField(u.Object, corefile(), "data", "Corefile")
	case "Service":
		return unstructured.SetNestedField(u.Object, network.DNSServiceIP, "spec", "clusterIP")
	case "StorageClass":
		return unstructured.SetNestedField(u.Object, cloud.Provisioner, "provisioner")
	case "Deployment":
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
			return fmt.Errorf("decoding Deployment %s: %w", u.GetName(), err)
		}
		d.Spec.Template.Spec.Containers[0].Image = dnsImage
		obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
		if err != nil {
			return fmt.Errorf("encoding Deployment %s: %w", u.GetName(), err)
		}
		delete(obj, "status")
		u.Object = obj
		u.SetAPIVersion("apps/v1")
		u.SetKind("Deployment")
	}
	return nil
}

// corefile answers for the cluster and asks the machine's own resolvers, and nobody else, for everything else.
//
// The server listens on the node's address: from there it reaches also a resolver on loopback, and pods need no way out.
func corefile() string {
	return fmt.Sprintf(`.:%[1]s {
    bind %[2]s
    errors
    health 127.0.0.1:8180 {
        lameduck 1s
    }
    ready 127.0.0.1:8181
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 5
    }
    forward . /etc/resolv.conf {
        max_concurrent 200
    }
    cache 10
    loadbalance
    reload
}
`, components.DNSPort, network.NodeIP)
}

func applyAddons(ctx context.Context, c client.Client, dnsImage string) error {
	objs, err := addons(dnsImage)
	if err != nil {
		return err
	}
	return apply.New(c, fieldOwner).All(ctx, objs...)
}
