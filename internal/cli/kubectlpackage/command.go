// Package kubectlpackage is the plugin of kubectl for packages: it builds and checks them, and shows and changes what is installed.
package kubectlpackage

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/version"
)

// Options are what commands use of the outside.
type Options struct {
	// Now is the present time; it is written into lock files.
	Now func() time.Time
	// Getenv reads variables.
	Getenv func(string) string
	// Transport is what registries are reached through; nil is the library's.
	Transport http.RoundTripper
	// PollInterval is how often commands that wait look again; 0 is a second.
	PollInterval time.Duration

	flags connect.Flags
}

// Command is the whole tree.
func Command(o Options) *cobra.Command {
	if o.PollInterval == 0 {
		o.PollInterval = time.Second
	}
	root := &cobra.Command{
		Use:         "kubectl-package",
		Short:       "Build, check, install and follow packages",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl package"},
		Version:     version.This().String(),
		Example: `  kubectl package init my-app
  kubectl package validate my-app
  kubectl package build my-app --tag registry.example.com/my-app:v1 --push
  kubectl package rollout status package/my-app -n default`,
		SilenceErrors: true, // main prints them
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("kubectl-package version {{.Version}}\n")
	o.flags.AddFlags(root.PersistentFlags())
	root.AddCommand(
		o.build(), o.validate(), o.update(), o.tree(), o.complete(o.clusterTree(), packages, clusterPackages), o.rollout(),
		o.complete(o.pause(true), packages, clusterPackages), o.complete(o.pause(false), packages, clusterPackages), o.kickstart(), o.initialize(),
		o.repository(), versionCommand(),
	)
	return root
}

// resource reads "package/NAME" or "package NAME".
func resource(args []string) (kind, name string, err error) {
	switch len(args) {
	case 1:
		parts := strings.Split(args[0], "/")
		if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
			return "", "", errors.New("arguments invalid: arguments in resource/name form must have a single resource and name")
		}
		kind, name = parts[0], parts[1]
	case 2:
		kind, name = args[0], args[1]
	default:
		return "", "", errors.New("arguments invalid: no less than 1 and no more than 2 arguments may be provided")
	}
	return strings.ToLower(kind), name, nil
}

// The names of resources, as users write them.
const (
	packages                 = "package"
	clusterPackages          = "clusterpackage"
	objectDeployments        = "objectdeployment"
	clusterObjectDeployments = "clusterobjectdeployment"
)

// singular is the name of a resource behind its short and plural forms.
func singular(kind string) string {
	switch kind {
	case "packages", "pkg":
		return packages
	case "clusterpackages", "clpkg":
		return clusterPackages
	case "objectdeployments", "od", "objdeploy":
		return objectDeployments
	case "clusterobjectdeployments", "cod", "clobjdeploy":
		return clusterObjectDeployments
	}
	return kind
}

// registryTime bounds what commands do with a registry.
const registryTime = 5 * time.Minute

// insecureHelp describes --insecure.
const insecureHelp = "Take certificates of registries that nobody vouches for, and talk to those without encryption that have none"

// remote says how to talk to registries. Only who asks for it with --insecure talks to one whose certificate nobody vouches for.
func (o *Options) remote(ctx context.Context, insecure bool) []remote.Option {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	standard, ok := remote.DefaultTransport.(*http.Transport)
	switch {
	case o.Transport != nil:
		options = append(options, remote.WithTransport(o.Transport))
	case insecure && ok:
		anybody := standard.Clone()
		anybody.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:forbidigo // it is what the user asks for, of this command alone
		options = append(options, remote.WithTransport(anybody))
	}
	return options
}

func nameOptions(insecure bool) []name.Option {
	if insecure {
		return []name.Option{name.Insecure}
	}
	return nil
}

// pull reads an image.
func (o *Options) pull(ctx context.Context, reference string, insecure bool) (v1.Image, error) {
	ref, err := name.ParseReference(reference, nameOptions(insecure)...)
	if err != nil {
		return nil, err
	}
	return images.Image(ctx, ref, o.remote(ctx, insecure)...)
}

// repositoryHost is the variable that replaces the registry which digests are looked up in.
const repositoryHost = "PKO_REPOSITORY_HOST"

// onHost is an image on the registry of the environment's choice, if it has one.
func (o *Options) onHost(image string, insecure bool) (name.Reference, error) {
	ref, err := name.ParseReference(image, nameOptions(insecure)...)
	if err != nil {
		return nil, err
	}
	host := o.Getenv(repositoryHost)
	if host == "" {
		return ref, nil
	}
	moved, err := images.OnHost(image, host)
	if err != nil {
		return nil, err
	}
	return name.ParseReference(moved.Name(), nameOptions(insecure)...)
}

// digest asks a registry for the digest of an image.
func (o *Options) digest(ctx context.Context, image string, insecure bool) (string, error) {
	ref, err := o.onHost(image, insecure)
	if err != nil {
		return "", err
	}
	descriptor, err := remote.Head(ref, o.remote(ctx, insecure)...)
	if err != nil {
		return "", fmt.Errorf("looking up %s: %w", ref, err)
	}
	return descriptor.Digest.String(), nil
}
