package create

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// noInfrastructure is why a flag that shapes infrastructure is refused.
const noInfrastructure = "this version makes no infrastructure: make it with the cloud's tools and describe it by the other flags"

// given says of each flag that was given that it isn't used, and why.
func given(fs *pflag.FlagSet, why string, names ...string) []string {
	var notes []string
	for _, name := range names {
		if fs.Changed(name) {
			notes = append(notes, fmt.Sprintf("--%s isn't used: %s", name, why))
		}
	}
	return notes
}

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
