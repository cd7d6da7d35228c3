package kubectlpackage

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/packages/fixture"
	"hcp.internal/platform/internal/packages/images"
	"hcp.internal/platform/internal/packages/load"
)

// Formats of what build prints.
const (
	human  = "human"
	digest = "digest"
)

type buildOptions struct {
	Options
	tags, labels   []string
	push, insecure bool
	output, format string
}

func (o *Options) build() *cobra.Command {
	b := buildOptions{Options: *o}
	cmd := &cobra.Command{
		Use:   "build source_path",
		Short: "Build the image of a package from its source folder",
		Long: `Build the image of a package from its source folder, after checking it: that the locked images exist, that its tests pass, and that its
files are right. Write it to an archive, push it, or both.`,
		Example: `  kubectl package build my-app --tag registry.example.com/my-app:v1 --push
  kubectl package build my-app --tag registry.example.com/my-app:v1 --output my-app.tar`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return b.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&b.tags, "tag", "t", nil, "Reference to give the image, with its tag; may be repeated")
	flags.StringArrayVarP(&b.labels, "label", "l", nil, "Label of the image as key=value; may be repeated")
	flags.BoolVar(&b.push, "push", false, "Push the image under all tags")
	flags.BoolVar(&b.insecure, "insecure", false, "Talk to registries without encryption if they have none")
	flags.StringVarP(&b.output, "output", "o", "", "Write the image to this archive")
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
	if b.format != human && b.format != digest {
		return fmt.Errorf("unknown output format: %s", b.format)
	}
	tags, err := parseTags(b.tags, b.insecure)
	if err != nil {
		return err
	}
	labels, err := parseLabels(b.labels)
	if err != nil {
		return err
	}
	img, err := b.image(ctx, source, labels)
	if err != nil {
		return fmt.Errorf("building from source: %w", err)
	}
	if b.output != "" {
		byTag := map[name.Tag]v1.Image{}
		for _, tag := range tags {
			byTag[tag] = img
		}
		if err := tarball.MultiWriteToFile(b.output, byTag); err != nil {
			return fmt.Errorf("building from source: writing %s: %w", b.output, err)
		}
	}
	if b.push {
		for _, tag := range tags {
			if err := remote.Write(tag, img, b.remote(ctx)...); err != nil {
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
		return nil, err
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
			out = append(out, e)
		}
	}
	walk(err)
	return errors.Join(out...)
}

func parseTags(tags []string, insecure bool) ([]name.Tag, error) {
	var out []name.Tag
	for _, text := range tags {
		tag, err := name.NewTag(text, nameOptions(insecure)...)
		if err != nil {
			return nil, fmt.Errorf("invalid tag specified as parameter %s: %w", text, err)
		}
		out = append(out, tag)
	}
	return out, nil
}

func parseLabels(labels []string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range labels {
		key, value, _ := strings.Cut(text, "=")
		if key == "" {
			return nil, fmt.Errorf("parsing label %q, key is empty", text)
		}
		if value == "" {
			return nil, fmt.Errorf("parsing label %q, value is empty", text)
		}
		out[key] = value
	}
	return out, nil
}

// warn says what was not checked.
func warn(cmd *cobra.Command, source string) {
	if files, err := load.Folder(source); err == nil && fixture.Kubeconform(cmd.Context(), files) {
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning: test.kubeconform is not checked: this build has no schemas.")
	}
}
