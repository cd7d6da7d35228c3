package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/cli/terminal"
	"hcp.internal/platform/internal/image/bundle"
)

// what all commands have in common.
type options struct {
	from     string
	releases []string
}

func (o *options) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.from, "from", "", "Bundle to read: the folder images of a distribution, or a file that images save wrote (required)")
	cmd.Flags().StringSliceVar(&o.releases, "release", nil, "Kubernetes releases to include, as 1.36 or 1.36.3, separated by commas (default: all in the bundle)")
}

// open opens the bundle and selects from it. The bundle has to be closed.
func (o *options) open() (*bundle.Bundle, []bundle.Entry, error) {
	if o.from == "" {
		return nil, nil, errors.New("--from is required: name the folder images of a distribution, or a file that `hypershift images save` wrote")
	}
	b, err := bundle.Open(o.from)
	if err != nil {
		return nil, nil, fmt.Errorf("--from: %w", err)
	}
	entries, err := bundle.Select(b.Entries, o.releases...)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("--release: %w", err), b.Close())
	}
	return b, entries, nil
}

// target are flags of commands that talk to a registry.
type target struct {
	to                         string
	plainHTTP, replaceReleases bool
}

func (t *target) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.to, "to", "", "Registry, with a path where wanted: registry.example.com/team (required)")
	cmd.Flags().BoolVar(&t.plainHTTP, "plain-http", false, "Use plain HTTP for the registry; for loopback and private addresses, it is tried automatically")
}

func (t *target) registry() (bundle.Registry, error) {
	r := bundle.Registry{Prefix: t.to, PlainHTTP: t.plainHTTP, ReplaceReleases: t.replaceReleases, Options: []remote.Option{remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithUserAgent("hypershift")}}
	if err := r.Check(); err != nil {
		return r, fmt.Errorf("--to: %w", err)
	}
	return r, nil
}

// Command is `hypershift images`.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "images",
		Short: "List the images of a distribution, copy them to a file, and push them to a registry",
		Long: `List the images of a distribution, copy them to a file, and push them to a registry.

A bundle is one OCI layout, a folder or a tar file, with the operators, the chart, and Kubernetes releases with all images that they reference, for each
architecture; make dist builds one from a checkout. images push copies it to the registry that your management clusters pull from. For a site without a network,
images save writes what is needed into one file, and push accepts that file.`,
		Example: `  hypershift images list --from dist/images
  hypershift images push --from dist/images --to registry.example.com/team --release 1.36
  hypershift images save --from dist/images --release 1.36 --bundle hypershift.tar
  hypershift images sign --key signing.key --from dist/images --to registry.example.com/team`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(listCommand(), pushCommand(), saveCommand(), verifyCommand(), signCommand())
	return cmd
}

func listCommand() *cobra.Command {
	var o options
	var format output.Format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the content of a bundle",
		Example: `  hypershift images list --from dist/images
  hypershift images list --from hypershift.tar --release 1.36 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, entries, err := o.open()
			if err != nil {
				return err
			}
			defer b.Close()
			if format != output.Text {
				return format.Value(cmd.OutOrStdout(), entries)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
			fmt.Fprintln(w, "NAME\tKIND\tPLATFORMS\tSIZE\tDIGEST")
			for _, e := range entries {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", e.Name(), e.Kind, strings.Join(e.Platforms, ","), size(e.Bytes), e.Digest)
			}
			return w.Flush()
		},
	}
	o.addFlags(cmd)
	format.AddFlag(cmd)
	return cmd
}

func pushCommand() *cobra.Command {
	var o options
	var t target
	cmd := &cobra.Command{
		Use:     "push",
		Aliases: []string{"load"},
		Short:   "Push the content of a bundle to a registry",
		Long: `Push the content of a bundle to a registry.

Content that the registry already has isn't sent again: if a push was interrupted, run it again, and it continues where it stopped. The credentials are those of
docker login, podman login and helm registry login. A release is pushed after all images that it references, and it references them in your registry.

The tag of a release never moves by itself, because hosted clusters that use it would be rolled out: if the registry has that release from another version
of this product, the tag stays, and the new release gets the tag VERSION-DIGEST, which is printed.`,
		Example: `  hypershift images push --from dist/images --to registry.example.com/team
  hypershift images push --from hypershift.tar --to registry.example.com/team --release 1.36`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := t.registry()
			if err != nil {
				return err
			}
			b, entries, err := o.open()
			if err != nil {
				return err
			}
			defer b.Close()
			return push(cmd, b, r, entries)
		},
	}
	o.addFlags(cmd)
	t.addFlags(cmd)
	cmd.Flags().BoolVar(&t.replaceReleases, "replace-releases", false, "Move the tags of releases that the registry has with other content; hosted clusters that use them are rolled out")
	return cmd
}

// push pushes entries one after the other, and says what to do next.
func push(cmd *cobra.Command, b *bundle.Bundle, r bundle.Registry, entries []bundle.Entry) error {
	out := cmd.ErrOrStderr()
	display := progress.NewDisplay(out, terminal.Rewritable(out), clock.RealClock{})
	display.Number(len(entries))
	there := 0
	for i, e := range entries {
		err := display.Do(cmd.Context(), "pushing "+e.Name(), func(ctx context.Context, say func(string, ...any)) error {
			p, err := b.Push(ctx, r, e, func(total int64) { say("%s of %s", size(total), size(max(total, e.Bytes))) })
			if p.There {
				there++
			}
			if p.Beside && err == nil {
				display.Show("%s has other content and stays, for hosted clusters that run it; this one is %s", r.Reference(e), r.Reference(p.Entry))
				entries[i] = p.Entry
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%w; run it again to go on from here", err)
		}
	}
	fmt.Fprintf(out, "%d pushed, %d were there\n", len(entries)-there, there)
	next(cmd.OutOrStdout(), r, entries)
	return nil
}

// next says what can be done with what is in the registry.
func next(w io.Writer, r bundle.Registry, entries []bundle.Entry) {
	for _, e := range entries {
		switch e.Kind {
		case bundle.Operator:
			fmt.Fprintf(w, "hypershift install --hypershift-image %s\n", r.Reference(e))
		case bundle.Release:
			fmt.Fprintf(w, "hypershift create cluster none --name demo --release-image %s\n", r.Reference(e))
		case bundle.Chart:
			fmt.Fprintf(w, "helm install hypershift oci://%s/%s --version %s --namespace hypershift --create-namespace\n", r.Prefix, e.Repository, e.Tag)
		case bundle.Part: // releases name it
		}
	}
}

func saveCommand() *cobra.Command {
	var o options
	var file string
	cmd := &cobra.Command{
		Use:   "save",
		Short: "Write a bundle, or a part of it, to one file",
		Example: `  hypershift images save --from dist/images --bundle hypershift.tar
  hypershift images save --from dist/images --release 1.36 --bundle hypershift-1.36.tar`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return errors.New("--bundle is required: name the file to write")
			}
			b, entries, err := o.open()
			if err != nil {
				return err
			}
			defer b.Close()
			if err := save(b, entries, file); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s; carry it, and run there: hypershift images push --from %s --to REGISTRY\n", file, filepath.Base(file))
			return err
		},
	}
	o.addFlags(cmd)
	cmd.Flags().StringVar(&file, "bundle", "", "File to write; one that exists is replaced (required)")
	return cmd
}

// save writes beside the file first, so that a file of that name is always whole.
func save(b *bundle.Bundle, entries []bundle.Entry, file string) error {
	out, err := os.CreateTemp(filepath.Dir(file), ".bundle-")
	if err != nil {
		return fmt.Errorf("--bundle: %w", err)
	}
	defer func() { _ = os.Remove(out.Name()) }() // unless it has its name
	if err := errors.Join(b.Save(out, entries), out.Chmod(0o644), out.Close()); err != nil {
		return fmt.Errorf("--bundle: %w", err)
	}
	return os.Rename(out.Name(), file)
}

func verifyCommand() *cobra.Command {
	var o options
	var t target
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Compare a registry with a bundle",
		Long: `Compare a registry with a bundle: every image, for every architecture, must exist with the digest that push gives it. Nothing is changed,
and only manifests are downloaded.

Exits with code 4 if an image is missing or different.`,
		Example: `  hypershift images verify --from dist/images --to registry.example.com/team --release 1.36`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := t.registry()
			if err != nil {
				return err
			}
			b, entries, err := o.open()
			if err != nil {
				return err
			}
			defer b.Close()
			var errs []error
			for _, e := range entries {
				errs = append(errs, b.Verify(cmd.Context(), r, e))
			}
			if err := errors.Join(errs...); err != nil {
				return exit.With(exit.NotFound, fmt.Errorf("the registry is not as the bundle:\n%w\nrun hypershift images push to bring what is missing", err))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d entries are in %s as in the bundle\n", len(entries), r.Prefix)
			return err
		},
	}
	o.addFlags(cmd)
	t.addFlags(cmd)
	return cmd
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", (n+1023)>>10)
}
