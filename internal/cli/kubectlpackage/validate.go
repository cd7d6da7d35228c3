package kubectlpackage

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/packages/author/fixture"
	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/author/load"
)

func (o *Options) validate() *cobra.Command {
	var pull, insecure bool
	cmd := &cobra.Command{
		Use:               "validate target",
		ValidArgsFunction: folders,
		Short:             "Check a package in its source folder, or in an image",
		Long: `Check a package in its source folder, and run its tests: the output of each test is compared with its folder in .test-fixtures, which is
written if it doesn't exist. With --pull, check an image.`,
		Example: `  kubectl package validate my-app
  kubectl package validate --pull registry.example.com/my-app:v1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return errors.New("arguments invalid: 'target' must not be empty")
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), registryTime)
			defer cancel()
			if pull {
				if err := o.validateImage(ctx, args[0], insecure); err != nil {
					return fmt.Errorf("validating package: %w", err)
				}
			} else {
				files, err := load.Folder(args[0])
				if err != nil {
					return fmt.Errorf("validating package: loading package from files: %w", err)
				}
				if err := errors.Join(fixture.Static(ctx, files), fixture.Check(ctx, files, args[0])); err != nil {
					return fmt.Errorf("validating package: %w", unique(err))
				}
				warn(cmd, args[0])
			}
			fmt.Fprint(cmd.OutOrStdout(), "Package validated successfully!")
			return nil
		},
	}
	cmd.Flags().BoolVar(&pull, "pull", false, "The target is an image, which is pulled")
	cmd.Flags().BoolVar(&insecure, "insecure", false, insecureHelp)
	return cmd
}

func (o *Options) validateImage(ctx context.Context, reference string, insecure bool) error {
	img, err := o.pull(ctx, reference, insecure)
	if err != nil {
		return fmt.Errorf("getting package from remote reference: %w", err)
	}
	files, err := images.Files(ctx, img)
	if err != nil {
		return fmt.Errorf("getting package from remote reference: %w", err)
	}
	if err := fixture.Static(ctx, files); err != nil {
		return unique(err)
	}
	return nil
}
