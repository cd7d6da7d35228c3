package create

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// noInfrastructure is why a flag that shapes infrastructure is refused.
const noInfrastructure = "this version makes no infrastructure: make it with the cloud's tools and describe it by the other flags"

// refusals are flags that the published tool has and that this version can't honour. They parse, so that the answer names
// the flag and the remedy instead of calling it unknown; what they ask for is never left out silently.
type refusals struct{ reasons map[string]string }

// add declares flags that take a value.
func (r *refusals) add(fs *pflag.FlagSet, reason string, names ...string) {
	for _, name := range names {
		fs.String(name, "", "Not in this version")
		r.hide(fs, reason, name)
	}
}

// addBools declares flags that are switches. Switching off what isn't there is fine.
func (r *refusals) addBools(fs *pflag.FlagSet, reason string, names ...string) {
	for _, name := range names {
		fs.Bool(name, false, "Not in this version")
		r.hide(fs, reason, name)
	}
}

func (r *refusals) hide(fs *pflag.FlagSet, reason, name string) {
	if r.reasons == nil {
		r.reasons = map[string]string{}
	}
	r.reasons[name] = reason
	// Only fails for a flag that isn't there.
	_ = fs.MarkHidden(name)
}

// check refuses the flags that were given.
func (r *refusals) check(fs *pflag.FlagSet) error {
	var errs []error
	fs.Visit(func(f *pflag.Flag) {
		reason, refused := r.reasons[f.Name]
		if !refused || f.Value.Type() == "bool" && f.Value.String() == "false" {
			return
		}
		errs = append(errs, fmt.Errorf("--%s: %s", f.Name, reason))
	})
	return errors.Join(errs...)
}

// unneeded are flags with credentials for work that this version doesn't do. Giving them changes nothing about the result, so
// they are taken with a note.
type unneeded struct{ names []string }

func (u *unneeded) add(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		fs.String(name, "", "Not needed: this version doesn't log in to the cloud")
		_ = fs.MarkHidden(name)
		u.names = append(u.names, name)
	}
}

// given says which of them were given, a line each.
func (u *unneeded) given(fs *pflag.FlagSet) []string {
	var notes []string
	for _, name := range u.names {
		if fs.Changed(name) {
			notes = append(notes, fmt.Sprintf("--%s isn't used: this version doesn't log in to the cloud", name))
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
