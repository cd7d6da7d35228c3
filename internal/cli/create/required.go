package create

import (
	"errors"
	"fmt"
)

// noInfrastructure is why a flag that shapes infrastructure is refused.
const noInfrastructure = "this version makes no infrastructure: make it with the cloud's tools and describe it by the other flags"

// required names flags that have no value.
func required(values map[string]string, names ...string) error {
	var errs []error
	for _, name := range names {
		if values[name] == "" {
			errs = append(errs, fmt.Errorf("--%s is required", name))
		}
	}
	return errors.Join(errs...)
}
