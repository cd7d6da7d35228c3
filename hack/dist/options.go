package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"hcp.internal/platform/internal/local/builds"
	"hcp.internal/platform/internal/version"
)

// architectures are those that images can be made for.
var architectures = []string{"amd64", "arm64"}

// usage is what -help prints before the flags.
const usage = `Makes a distribution of this checkout: everything that somebody needs who has no checkout.

  go run ./hack/dist [flags]      make dist runs it, see docs/release.md

Parts, in the order in which they are made:
`

// placeholderURL is where archives are said to be when -url says nothing.
const placeholderURL = "https://downloads.example.com/hypershift/v"

// parse reads the command line: what is to be made, and which parts of it. Everything that can be judged without a build is judged here. The error is
// flag.ErrHelp after the help was printed to out.
func parse(ctx context.Context, args []string, out io.Writer) (*distribution, []part, error) {
	d := &distribution{version: version.Semver()}
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&d.out, "out", "dist", "`folder` to write; parts that are there are replaced")
	wanted := flags.String("parts", "", "`parts` to make, separated by commas (default: all)")
	releases := flags.String("releases", strings.Join(builds.KnownReleases(), ","), "Kubernetes `releases` in images, separated by commas")
	archs := flags.String("architectures", strings.Join(architectures, ","), "`architectures` of images, separated by commas")
	archived := flags.String("systems", "", "`systems` of the command line's archives, as linux/amd64,darwin/arm64 (default: all six)")
	flags.StringVar(&d.url, "url", placeholderURL+d.version, "`address` of the folder in which the archives will be; manifests of krew name it")
	flags.StringVar(&d.operatorImage, "image", "registry.example.com/hypershift/hypershift:"+d.version, "`image` of the operators in manifests; images push puts your registry's into the chart")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		for _, p := range parts {
			fmt.Fprintf(out, "  %-10s %s\n", p.name, p.about)
		}
		fmt.Fprintln(out, "\nFlags:")
		flags.SetOutput(out)
		flags.PrintDefaults()
		return nil, nil, err
	case err != nil:
		return nil, nil, fmt.Errorf("%w; -help lists the flags", err)
	case flags.NArg() > 0:
		return nil, nil, fmt.Errorf("unexpected argument %q: parts are named with -parts, see -help", flags.Arg(0))
	}
	chosen, err := choose(*wanted)
	if err != nil {
		return nil, nil, err
	}
	return d, chosen, errors.Join(d.check(*releases, *archs, *archived), d.locate(ctx))
}

// check reads the lists among the flags, and judges all that others will read.
func (d *distribution) check(releases, archs, archived string) error {
	var errs []error
	var err error
	if d.releases, err = someOf("-releases", "Kubernetes release", releases, builds.KnownReleases()); err != nil {
		errs = append(errs, err)
	}
	if d.architectures, err = someOf("-architectures", "architecture", archs, architectures); err != nil {
		errs = append(errs, err)
	}
	if d.systems, err = chooseSystems(archived); err != nil {
		errs = append(errs, err)
	}
	d.url = strings.TrimRight(d.url, "/")
	if u, err := url.Parse(d.url); err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, u.Scheme) {
		errs = append(errs, fmt.Errorf("-url: %q is not an address: use one like https://downloads.example.com/v%s", d.url, d.version))
	}
	if _, err := name.ParseReference(d.operatorImage); err != nil {
		errs = append(errs, fmt.Errorf("-image: %w: use a reference like registry.example.com/hypershift/hypershift:%s", err, d.version))
	}
	return errors.Join(errs...)
}

// someOf reads a list of names that are known, and returns each once, in the order of known.
func someOf(option, kind, list string, known []string) ([]string, error) {
	names := strings.Split(list, ",")
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("%s: unknown %s %q: use some of %s", option, kind, n, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(known), func(n string) bool { return !slices.Contains(names, n) }), nil
}

// locate finds the checkout, its commit's time, and the folder to write.
func (d *distribution) locate(ctx context.Context) error {
	var err error
	if d.root, err = builds.FindRoot("."); err != nil {
		return err
	}
	if d.out, err = filepath.Abs(d.out); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	if info, err := os.Stat(d.out); err == nil && !info.IsDir() {
		return fmt.Errorf("-out: %s is not a folder: choose another name", d.out)
	}
	if d.created, err = commitTime(ctx, d.root); err != nil {
		return err
	}
	d.licences = d.readLicences
	return nil
}

// choose looks parts up; none named means all.
func choose(list string) ([]part, error) {
	if list == "" {
		return parts, nil
	}
	var known []string
	for _, p := range parts {
		known = append(known, p.name)
	}
	names, err := someOf("-parts", "part", list, known)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return !slices.Contains(names, p.name) }), nil
}
