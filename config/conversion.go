package config

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

const (
	// ConversionService is the Service that hypershift-operator answers conversion reviews behind, in its own namespace.
	ConversionService = "capi-conversion-webhook-shim"
	// ConversionPath is where it answers.
	ConversionPath = "/convert"
	// contractLabel is what the labels that name contracts begin with.
	contractLabel = "cluster.x-k8s.io/v"
)

// Converter is the webhook that converts objects between the versions of Cluster API's definitions.
type Converter struct {
	// Namespace and Service name a Service; its port is 443.
	Namespace, Service string
	// URL is used instead of the Service if it isn't empty: for tests and operators outside of a cluster.
	URL string
	// CABundle is what the webhook's certificate chains to, in PEM. Empty: hypershift-operator writes it into the definitions
	// that name its Service, and keeps it there when it rotates. An installer leaves it empty, so that it prints the same
	// every time and holds no key.
	CABundle []byte
}

// CAPIConverter is the Converter of an installation in a namespace.
func CAPIConverter(namespace string) Converter {
	return Converter{Namespace: namespace, Service: ConversionService}
}

// ConvertedCAPICRDs returns the definitions of CAPICRDs with both of their versions served, and converted by a webhook. The stored
// version is the same, so that nothing has to be converted for those who use that one, even while the webhook is away.
func ConvertedCAPICRDs(by Converter) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return converted(capi, by)
}

// ConvertedPrivateCAPICRDs returns the definitions of PrivateCAPICRDs with both of their versions served, and converted by a webhook.
// Kinds of one version, those of providers, are as PrivateCAPICRDs has them.
func ConvertedPrivateCAPICRDs(by Converter) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return converted(capiPrivate, by)
}

// ConvertedNames are the names of the definitions that ConvertedCAPICRDs, or ConvertedPrivateCAPICRDs, gives a webhook, sorted. It parses nothing.
func ConvertedNames(private bool) ([]string, error) {
	folder := capi
	if private {
		folder = capiPrivate
	}
	found, err := fs.Glob(files, path.Join(folder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing folder %s: %w", folder, err)
	}
	var all []string
	for _, name := range found {
		group, plural, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".yaml"), "_")
		if !strings.HasPrefix(group, "infrastructure.") { // of providers, which have one version
			all = append(all, plural+"."+group)
		}
	}
	slices.Sort(all)
	return all, nil
}

func converted(folder string, by Converter) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
	if err := read(folder, byName); err != nil {
		return nil, err
	}
	for _, crd := range byName {
		if len(crd.Spec.Versions) > 1 {
			crd.Spec.Conversion = by.conversion()
		}
	}
	return sorted(byName), nil
}

func (by Converter) conversion() *apiextensionsv1.CustomResourceConversion {
	client := &apiextensionsv1.WebhookClientConfig{CABundle: by.CABundle}
	if by.URL != "" {
		client.URL = &by.URL
	} else {
		client.Service = &apiextensionsv1.ServiceReference{
			Namespace: by.Namespace, Name: by.Service, Path: ptr.To(ConversionPath), Port: ptr.To[int32](443),
		}
	}
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: client, ConversionReviewVersions: []string{"v1"}},
	}
}

// storedOnly keeps the stored version of each definition, and the labels of contracts that it fulfils.
func storedOnly(crds map[string]*apiextensionsv1.CustomResourceDefinition) {
	for _, crd := range crds {
		crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return !v.Storage })
		for key, version := range crd.Labels {
			if strings.HasPrefix(key, contractLabel) && version != crd.Spec.Versions[0].Name {
				delete(crd.Labels, key)
			}
		}
	}
}
