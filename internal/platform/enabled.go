package platform

import (
	"fmt"
	"slices"
	"strings"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// EnvInstalled is the variable of the operator that lists the platforms of an installation, separated by commas.
const EnvInstalled = "PLATFORMS_INSTALLED"

// Enabled are the platforms that an installation hosts clusters on. None belongs to each, since it needs nothing. nil means every platform but those that
// have to be asked for by name.
type Enabled []hyperv1.PlatformType

// onlyByName are platforms that nobody gets who did not ask: a machine of platform Local is a privileged container of the management cluster, so whoever may
// make one is root on its nodes.
var onlyByName = []hyperv1.PlatformType{hyperv1.LocalPlatform}

// ParseEnabled reads a list as EnvInstalled holds it. Names that this operator does not know belong to platforms of other versions and are kept; an empty
// list gives nil.
func ParseEnabled(list string) Enabled {
	var enabled Enabled
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			enabled = append(enabled, hyperv1.PlatformType(name))
		}
	}
	return enabled
}

// Has tells whether clusters of the platform are hosted here.
func (e Enabled) Has(t hyperv1.PlatformType) bool {
	switch {
	case t == hyperv1.NonePlatform || slices.Contains(e, t):
		return true
	case e == nil:
		return !slices.Contains(onlyByName, t)
	}
	return false
}

// For returns the implementation of a platform. What this operator can't do at all gives an *UnsupportedError, what this installation leaves out a
// *NotInstalledError.
func (e Enabled) For(t hyperv1.PlatformType) (Platform, error) {
	p, err := For(t)
	switch {
	case err != nil:
		return nil, &UnsupportedError{Type: t, Enabled: e}
	case !e.Has(t):
		return nil, &NotInstalledError{Type: t, Enabled: e}
	}
	return p, nil
}

// usable lists the platforms that this operator can do and this installation hosts, sorted.
func (e Enabled) usable() []string {
	return slices.DeleteFunc(Supported(), func(name string) bool { return !e.Has(hyperv1.PlatformType(name)) })
}

// NotInstalledError says that an installation leaves a platform out.
type NotInstalledError struct {
	Type    hyperv1.PlatformType
	Enabled Enabled
}

// Error says what to use instead, and who can change it.
func (e *NotInstalledError) Error() string {
	text := fmt.Sprintf("platform type %q is not switched on in this installation: set spec.platform.type to one of %s, or have an administrator name it in "+
		`"hypershift install --limit-crd-install"`, e.Type, strings.Join(e.Enabled.usable(), ", "))
	if slices.Contains(onlyByName, e.Type) {
		text += fmt.Sprintf("; whoever may make machines of platform %s is root on nodes of the management cluster", e.Type)
	}
	return text
}
