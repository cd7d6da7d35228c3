// Package programs is the table of the programs of an OpenShift payload: by what each is called, in which image, with which flags,
// environment and configuration, and where it answers.
package programs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"hcp.internal/platform/test/standin/checks"
)

// Program is one program of a payload.
type Program struct {
	Name  string // as it is called
	Image string // tag of the payload whose image it is in
	Entry bool   // it is what the image starts when no command is given
	Words string // the words before or between its flags, such as start

	Flags  string   // see checks.ParseFlags
	Args   string   // a pattern of other words, such as olm's heap-: targets
	Env    string   // names of variables that must have a value
	Files  []string // that it expects without being told
	Config string   // flag that names its configuration
	Read   func([]byte) (checks.Config, error)

	Listen []Listener
	// Operator is the ClusterOperator that it reports with the version of variable RELEASE_VERSION or OPERATOR_IMAGE_VERSION.
	Operator string
	// Groups are the API groups that it serves through aggregation.
	Groups []string
	// Once says that it does its work and ends.
	Once bool
}

// Listener is where a program answers.
type Listener struct {
	Address string // as :8443
	From    string // flag with an address or a port that says where, instead
	Config  bool   // the configuration says where; Address is the default
	// Cert and Key are files, or flags when they begin with a dash; none: plain HTTP, unless the configuration names some.
	Cert, Key string
	// Host is the name that the certificate must speak for; "NAMESPACE" in it is the pod's.
	Host string
}

// Table are all programs.
var Table = slices.Concat(apiServers, controllers, operators, storage, clouds, others)

// Find returns the program that a command line calls. Image is the tag of the image that it runs in.
func Find(image string, command []string) (Program, []string, error) {
	if len(command) == 0 {
		return Program{}, nil, fmt.Errorf("no command line; call it as a program of a payload")
	}
	name := filepath.Base(command[0])
	for _, p := range Table {
		if p.Name != name && !(p.Entry && name == EntryPoint) {
			continue
		}
		if name == EntryPoint && p.Image != image {
			continue
		}
		if p.Image != image {
			return p, nil, fmt.Errorf("%s is called in image %q, and is a program of image %q; give the container that image", p.Name, image, p.Image)
		}
		return p, command[1:], nil
	}
	return Program{}, nil, fmt.Errorf("image %q has no program %q", image, name)
}

// EntryPoint is the name of images' entry point.
const EntryPoint = "standin-entrypoint"

// Check looks at the arguments of a program.
func (p Program) Check(args []string) (checks.Values, error) {
	values, words, err := checks.Arguments(args, checks.ParseFlags(p.Flags))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	want := strings.Fields(p.Words)
	for i, w := range words {
		if i < len(want) {
			if w != want[i] {
				return nil, fmt.Errorf("%s: argument %q instead of %q", p.Name, w, want[i])
			}
			continue
		}
		if p.Args == "" || !strings.Contains(w, p.Args) {
			return nil, fmt.Errorf("%s: argument %q is unknown; remove it", p.Name, w)
		}
	}
	if len(words) < len(want) {
		return nil, fmt.Errorf("%s: the arguments %q lack %q", p.Name, words, want[len(words)])
	}
	return values, nil
}

// CheckEnv looks at the environment of a program.
func (p Program) CheckEnv(get func(string) string) error {
	for name := range strings.FieldsSeq(p.Env) {
		if get(name) == "" {
			return fmt.Errorf("%s: variable %s has no value; add it to the container", p.Name, name)
		}
	}
	return nil
}
