// Package refuse declares flags that the published tool has and that this version can't honour.
//
// They parse, so that the answer names the flag and the remedy instead of calling it unknown; what they ask for is never left
// out silently.
package refuse

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// Flags are refused when they are given. The zero value is ready to use.
type Flags struct{ reasons map[string]string }

// Values declares flags that take a value. reason says why they are refused and what to do instead.
func (r *Flags) Values(fs *pflag.FlagSet, reason string, names ...string) {
	for _, name := range names {
		fs.String(name, "", "Not in this version: "+reason)
		r.hide(fs, reason, name)
	}
}

// Switches declares flags that are on or off. Switching off what isn't there is fine.
func (r *Flags) Switches(fs *pflag.FlagSet, reason string, names ...string) {
	for _, name := range names {
		fs.Bool(name, false, "Not in this version: "+reason)
		r.hide(fs, reason, name)
	}
}

func (r *Flags) hide(fs *pflag.FlagSet, reason, name string) {
	if r.reasons == nil {
		r.reasons = map[string]string{}
	}
	r.reasons[name] = reason
	// Only fails for a flag that isn't there.
	_ = fs.MarkHidden(name)
}

// Check refuses the flags that were given, all at once.
func (r *Flags) Check(fs *pflag.FlagSet) error {
	var errs []error
	// Not Visit: flags of a parent command are parsed by the set of its subcommand.
	fs.VisitAll(func(f *pflag.Flag) {
		reason, refused := r.reasons[f.Name]
		if !refused || !f.Changed || f.Value.Type() == "bool" && f.Value.String() == "false" {
			return
		}
		errs = append(errs, fmt.Errorf("--%s: %s", f.Name, reason))
	})
	return errors.Join(errs...)
}

// Unneeded are flags with credentials for work that this version doesn't do. Giving them changes nothing about the result, so
// they are taken with a note. The zero value is ready to use.
type Unneeded struct{ names []string }

// Values declares flags that take a value.
func (u *Unneeded) Values(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		fs.String(name, "", "Not needed: this version doesn't log in to the cloud")
		_ = fs.MarkHidden(name)
		u.names = append(u.names, name)
	}
}

// Switches declares flags that are on or off.
func (u *Unneeded) Switches(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		fs.Bool(name, false, "Not needed: this version doesn't log in to the cloud")
		_ = fs.MarkHidden(name)
		u.names = append(u.names, name)
	}
}

// Notes says which of them were given, a line each.
func (u *Unneeded) Notes(fs *pflag.FlagSet) []string {
	var notes []string
	for _, name := range u.names {
		if fs.Changed(name) {
			notes = append(notes, fmt.Sprintf("--%s isn't used: this version doesn't log in to the cloud", name))
		}
	}
	return notes
}
