package kubectlpackage

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/author/repository"
)

func (o *Options) repository() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "repository",
		Aliases: []string{"repo"},
		Short:   "Manage lists of packages that others depend on",
		Example: "  kubectl package repository initialize packages.yaml my-packages",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var insecure bool
	cmd.PersistentFlags().BoolVar(&insecure, "insecure", false, insecureHelp)
	cmd.AddCommand(
		&cobra.Command{
			Use: "initialize file name", Aliases: []string{"init"}, Short: "Write an empty repository file", Args: cobra.ExactArgs(2),
			Example: "  kubectl package repository initialize packages.yaml my-packages",
			RunE: func(_ *cobra.Command, args []string) error {
				switch {
				case args[0] == "":
					return errors.New("arguments invalid: file must be not empty")
				case args[1] == "":
					return errors.New("arguments invalid: name must be not empty")
				}
				return (&repository.Repository{Name: args[1]}).Write(args[0])
			},
		},
		&cobra.Command{
			Use: "add file package version...", Short: "Add a package to a repository file", Args: cobra.MinimumNArgs(3),
			Example: "  kubectl package repository add packages.yaml registry.example.com/my-app@sha256:… 1.2.3",
			RunE: func(cmd *cobra.Command, args []string) error {
				return o.addPackage(cmd.Context(), args[0], args[1], args[2:], insecure)
			},
		},
		&cobra.Command{
			Use: "remove file package", Short: "Remove a package from a repository file", Args: cobra.ExactArgs(2),
			Example: "  kubectl package repository remove packages.yaml registry.example.com/my-app@sha256:…",
			RunE: func(cmd *cobra.Command, args []string) error {
				return o.removePackage(cmd.Context(), args[0], args[1], insecure)
			},
		},
		&cobra.Command{
			Use: "pull file tag", Short: "Write the repository of an image to a file", Args: cobra.ExactArgs(2),
			Example: "  kubectl package repository pull packages.yaml registry.example.com/packages:latest",
			RunE: func(cmd *cobra.Command, args []string) error {
				return o.pullRepositoryFile(cmd.Context(), args[0], args[1], insecure)
			},
		},
		&cobra.Command{
			Use: "push file tag", Short: "Push a repository file as an image", Args: cobra.ExactArgs(2),
			Example: "  kubectl package repository push packages.yaml registry.example.com/packages:latest",
			RunE: func(cmd *cobra.Command, args []string) error {
				return o.pushRepositoryFile(cmd.Context(), args[0], args[1], insecure)
			},
		},
	)
	return cmd
}

func (o *Options) addPackage(ctx context.Context, file, reference string, versions []string, insecure bool) error {
	ctx, cancel := context.WithTimeout(ctx, registryTime)
	defer cancel()
	r, err := repository.Read(file)
	if err != nil {
		return fmt.Errorf("read from file: %w", err)
	}
	ref, err := name.ParseReference(reference, append(nameOptions(insecure), name.StrictValidation)...)
	if err != nil {
		return fmt.Errorf("package reference: %w", err)
	}
	for _, v := range versions {
		if err := strictVersion(v); err != nil {
			return fmt.Errorf("version: %w", err)
		}
	}
	img, err := o.pull(ctx, reference, insecure)
	if err != nil {
		return fmt.Errorf("pull package image: %w", err)
	}
	files, err := images.Files(ctx, img)
	if err != nil {
		return fmt.Errorf("raw package from package image: %w", err)
	}
	p, err := load.Load(ctx, files, "")
	if err != nil {
		return fmt.Errorf("package from raw package: %w", err)
	}
	digest, err := img.Digest() // of an index: that of the image in it
	if err != nil {
		return fmt.Errorf("package image digest: %w", err)
	}
	if err := r.Add(p.Manifest.Name, ref.Context().Name(), digest.Hex, versions, p.Manifest.Spec.Constraints); err != nil {
		return fmt.Errorf("add new entry: %w", err)
	}
	return r.Write(file)
}

func (o *Options) removePackage(ctx context.Context, file, reference string, insecure bool) error {
	ctx, cancel := context.WithTimeout(ctx, registryTime)
	defer cancel()
	ref, err := name.ParseReference(reference, append(nameOptions(insecure), name.StrictValidation)...)
	if err != nil {
		return fmt.Errorf("given package reference: %w", err)
	}
	r, err := repository.Read(file)
	if err != nil {
		return fmt.Errorf("read from file: %w", err)
	}
	called, digest, err := o.identify(ctx, reference, insecure)
	if given, ok := ref.(name.Digest); err != nil && ok {
		// An image that is gone can be removed all the same, by what it was added as.
		called, digest, err = "", strings.TrimPrefix(given.Identifier(), "sha256:"), nil
	}
	if err != nil {
		return fmt.Errorf("pull package image: %w", err)
	}
	for _, e := range r.Entries {
		if e.Data.Digest == digest && (e.Data.Name == called || called == "" && e.Data.Image == ref.Context().Name()) {
			if err := r.Remove(e.Data.Name, digest); err != nil {
				return fmt.Errorf("remove entry: %w", err)
			}
			return r.Write(file)
		}
	}
	if called == "" {
		called = ref.Context().Name()
	}
	return fmt.Errorf("package %q digest %q not found", called, digest)
}

// identify is the name in the manifest of a package image, and the hexadecimal part of its digest.
func (o *Options) identify(ctx context.Context, reference string, insecure bool) (called, digest string, err error) {
	img, err := o.pull(ctx, reference, insecure)
	if err != nil {
		return "", "", err
	}
	files, err := images.Files(ctx, img)
	if err != nil {
		return "", "", err
	}
	p, err := load.Load(ctx, files, "")
	if err != nil {
		return "", "", err
	}
	hash, err := img.Digest()
	return p.Manifest.Name, hash.Hex, err
}

func (o *Options) pullRepositoryFile(ctx context.Context, file, tag string, insecure bool) error {
	if err := notEmpty(file, tag); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, registryTime)
	defer cancel()
	img, err := o.pull(ctx, tag, insecure)
	if err != nil {
		return fmt.Errorf("pull repository image: %w", err)
	}
	r, err := repository.FromImage(ctx, img)
	if err != nil {
		return fmt.Errorf("pull repository image: %w", err)
	}
	return r.Write(file)
}

func (o *Options) pushRepositoryFile(ctx context.Context, file, tag string, insecure bool) error {
	if err := notEmpty(file, tag); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, registryTime)
	defer cancel()
	r, err := repository.Read(file)
	if err != nil {
		return fmt.Errorf("read from file: %w", err)
	}
	ref, err := name.NewTag(tag, nameOptions(insecure)...)
	if err != nil {
		return fmt.Errorf("push repository image: %w", err)
	}
	img, err := r.Image()
	if err != nil {
		return fmt.Errorf("push repository image: %w", err)
	}
	if err := remote.Write(ref, img, o.remote(ctx, insecure)...); err != nil {
		return fmt.Errorf("push repository image: %w", err)
	}
	return nil
}

func notEmpty(file, tag string) error {
	switch {
	case file == "":
		return errors.New("arguments invalid: file must be not empty")
	case tag == "":
		return errors.New("arguments invalid: tag must be not empty")
	}
	return nil
}

// strictVersion checks a version, which has no v in front of it.
func strictVersion(text string) error {
	_, err := semver.StrictNewVersion(text)
	if err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	return nil
}
