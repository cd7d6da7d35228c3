package conformance

import (
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// parseNames reads what e2e.test --list-conformance-tests prints.
func parseNames(list []byte) ([]string, error) {
	var specs []struct {
		Codename string `json:"codename"`
	}
	if err := yaml.Unmarshal(list, &specs); err != nil {
		return nil, fmt.Errorf("decoding the list of specs: %w", err)
	}
	var names []string
	for _, s := range specs {
		if s.Codename != "" {
			names = append(names, s.Codename)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("e2e.test names no conformance specs")
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
