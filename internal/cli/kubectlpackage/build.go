package kubectlpackage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/packages/author/fixture"
	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/author/violation"
)

// Formats of what build prints.
const (
	human  = "human"
	digest = "digest"
)

type buildOptions struct {
	Options
	tags           []string
	labels         map[string]string
	push, insecure bool
	output, format string
}

func (o *Options) build() *cobra.Command {
	b := buildOptions{Options: *o}
	cmd := &cobra.Command{
		Use:               "build source_path",
		ValidArgsFunction: folders,
		Short:             "Build the image of a package from its source folder",
		Long: `Build the image of a package from its source folder, after checking that the locked images exist, that its tests pass, and that its
files are valid. Write it to an archive, push it, or both.`,
		Example: `  kubectl package build my-app --tag registry.example.com/my-app:v1 --push
  kubectl package build my-app --tag registry.example.com/my-app:v1 --output my-app.tar`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return b.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&b.tags, "tag", "t", nil, "References to give the image, with their tags, separated by commas; may be repeated")
	flags.StringToStringVarP(&b.labels, "label", "l", nil, "Labels of the image as key=value, separated by commas; may be repeated")
	flags.BoolVar(&b.push, "push", false, "Push the image under all tags")
	flags.BoolVar(&b.insecure, "insecure", false, insecureHelp)
	flags.StringVarP(&b.output, "output", "o", "", "Write the image to this archive; missing folders are made")
	flags.StringVar(&b.format, "output-format", human, "What to print: human or digest")
	return cmd
}

func (b buildOptions) run(cmd *cobra.Command, source string) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), registryTime)
	defer cancel()
	if source == "" {
		return errors.New("arguments invalid: source path empty")
	}
	if (b.output != "" || b.push) && len(b.tags) == 0 {
		return errors.New("arguments invalid: output or push is requested but no tags are set")
	}
	if b.format != human && b.format != digest && b.format != "" {
		return fmt.Errorf("unknown output format: %s", b.format)
	}
	tags, err := parseTags(b.tags, b.insecure)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(b.labels)) {
		if b.labels[key] == "" {
			return fmt.Errorf("parsing label %q, value is empty", key)
		}
	}
	img, err := b.image(ctx, source, b.labels)
	if err != nil {
		return fmt.Errorf("building from source: %w", err)
	}
	if b.output != "" {
		byReference := map[name.Reference]v1.Image{}
		for _, tag := range tags {
			byReference[tag] = img
		}
		err := os.MkdirAll(filepath.Dir(b.output), 0o755) // for others to read, as the archive
		if err == nil {
			err = tarball.MultiRefWriteToFile(b.output, byReference)
		}
		if err != nil {
			return fmt.Errorf("building from source: writing %s: %w", b.output, err)
		}
	}
	if b.push {
		for _, tag := range tags {
			if err := remote.Write(tag, img, b.remote(ctx, b.insecure)...); err != nil {
				return fmt.Errorf("building from source: pushing %s: %w", tag, err)
			}
		}
	}
	warn(cmd, source)
	if b.format == digest {
		if !b.push {
			return nil
		}
		hash, err := img.Digest()
		if err != nil {
			return fmt.Errorf("building from source: %w", err)
		}
		fmt.Fprintln(cmd.OutOrStdout(), hash)
		return nil
	}
	fmt.Fprint(cmd.OutOrStdout(), "Package built successfully!")
	return nil
}

func (b buildOptions) image(ctx context.Context, source string, labels map[string]string) (v1.Image, error) {
	files, err := load.Folder(source)
	if err != nil {
		return nil, fmt.Errorf("loading package from files: %w", err)
	}
	err = errors.Join(b.locked(ctx, files), fixture.Check(ctx, files, source), fixture.Static(ctx, files))
	if err != nil {
		return nil, unique(err)
	}
	return images.Build(files, labels)
}

// locked checks that registries have the images of the lock files.
func (b buildOptions) locked(ctx context.Context, files load.Files) error {
	components, err := load.Components(files)
	if err != nil {
		return nil //nolint:nilerr // the other checks report it
	}
	var errs []error
	for _, component := range append([]string{""}, components...) {
		p, err := load.Load(ctx, files, component)
		if err != nil || p.Lock == nil {
			continue
		}
		for _, image := range p.Lock.Spec.Images {
			pinned, err := (images.Rewrite{}).Pinned(image.Image, image.Digest)
			if err == nil {
				_, err = b.digest(ctx, pinned, b.insecure)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("image %q of manifest.lock.yaml: %w", image.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// unique drops errors that several checks found.
func unique(err error) error {
	var out []error
	seen := map[string]bool{}
	var walk func(error)
	walk = func(e error) {
		if joined, ok := e.(interface{ Unwrap() []error }); ok {
			for _, each := range joined.Unwrap() {
				walk(each)
			}
			return
		}
		if !seen[e.Error()] {
			seen[e.Error()] = true
			out = append(out, inComponent(e))
		}
	}
	walk(err)
	return errors.Join(out...)
}

// inComponent puts the component that a mistake is in before it, as published.
func inComponent(err error) error {
	v, ok := errors.AsType[*violation.Error](err)
	if !ok || v.Component == "" {
		return err
	}
	bare := *v
	bare.Component = ""
	return fmt.Errorf("component %q: %w", v.Component, &bare)
}

func parseTags(tags []string, insecure bool) ([]name.Reference, error) {
	var out []name.Reference
	for _, text := range tags {
		tag, err := name.ParseReference(text, nameOptions(insecure)...)
		if err != nil {
			return nil, fmt.Errorf("invalid tag specified as parameter %s: %w", text, err)
		}
		out = append(out, tag)
	}
	return out, nil
}

// warn says what has no effect, and what was not checked.
func warn(cmd *cobra.Command, source string) {
	files, err := load.Folder(source)
	if err != nil {
		return
	}
	for _, text := range warnings(cmd.Context(), files) {
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning: "+text)
	}
}

func warnings(ctx context.Context, files load.Files) []string {
	var out []string
	components, err := load.Components(files)
	if err != nil {
		return nil
	}
	for _, component := range append([]string{""}, components...) {
		if p, err := load.Load(ctx, files, component); err == nil {
			for _, text := range p.Warnings {
				if component != "" {
					text = fmt.Sprintf("component %q: %s", component, text)
				}
				out = append(out, text)
			}
		}
	}
	for _, kind := range fixture.Unchecked(ctx, files) {
		out = append(out, fmt.Sprintf("test.kubeconform: there is no schema of %s here, so that objects of that kind are not checked", kind))
	}
	return out
}
