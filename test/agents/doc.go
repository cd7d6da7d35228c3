// Package agents holds stand-ins of what platform Agent needs and this project is not: the infrastructure provider (Provider), which gives hosts to machines,
// and the assisted installer (Hosts), which boots hosts. Their objects have the fields and the meanings that docs/platforms.md tells of; hosts are pods.
//
// Nothing of it is part of a distribution.
package agents

import (
	_ "embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed agents.yaml
var agentCRD []byte

// CRD is the definition of Agents, as far as it matters here. Those of the provider are config.ProviderCRDs("agent", …).
func CRD() (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(agentCRD, crd); err != nil {
		return nil, fmt.Errorf("parsing the definition of Agents: %w", err)
	}
	return crd, nil
}
