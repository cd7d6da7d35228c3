// Package virtualmachines holds stand-ins of what platform KubeVirt needs and this project is not: the infrastructure provider (Provider), which makes a
// VirtualMachine of each KubevirtMachine, and KubeVirt itself with its importer of disks (Virt), which runs them. A virtual machine is a pod.
//
// The module of the published provider can't be had, so this one does what docs/platforms.md tells of it. Nothing of it is part of a distribution.
package virtualmachines

import (
	"embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed crds
var crds embed.FS

// CRDs are the definitions of KubeVirt and of its importer, with the fields that this project writes and no others: what isn't among them is dropped, which
// tests see. Those of the provider are config.ProviderCRDs("kubevirt", …).
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := crds.ReadDir("crds")
	if err != nil {
		return nil, fmt.Errorf("listing definitions: %w", err)
	}
	var list []*apiextensionsv1.CustomResourceDefinition
	for _, e := range entries {
		raw, err := crds.ReadFile("crds/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading definition %s: %w", e.Name(), err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, crd); err != nil {
			return nil, fmt.Errorf("parsing definition %s: %w", e.Name(), err)
		}
		list = append(list, crd)
	}
	return list, nil
}
