package kubectlpackage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/author/manifest"
	"hcp.internal/platform/internal/packages/author/repository"
	"hcp.internal/platform/internal/packages/author/violation"
)

func (o *Options) update() *cobra.Command {
	var insecure bool
	cmd := &cobra.Command{
		Use:               "update source_path",
		ValidArgsFunction: folders,
		Short:             "Write the digests of a package's images and dependencies to manifest.lock.yaml",
		Example:           "  kubectl package update my-app",
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return errors.New("arguments invalid: source path empty")
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), registryTime)
			defer cancel()
			changed, err := o.lock(ctx, args[0], insecure)
			if err != nil {
				return fmt.Errorf("generating lock data: %w", err)
			}
			if !changed {
				fmt.Fprintln(cmd.OutOrStdout(), "Package is already up-to-date")
				return nil
			}
			fmt.Fprintln(cmd.OutOrStdout(), "Package updated successfully!")
			return nil
		},
	}
	cmd.Flags().BoolVar(&insecure, "insecure", false, insecureHelp)
	return cmd
}

// lock writes the lock files of a package and its components, and tells whether any changed.
func (o *Options) lock(ctx context.Context, source string, insecure bool) (bool, error) {
	files, err := load.Folder(source)
	if err != nil {
		return false, err
	}
	components, err := load.Components(files)
	rootBroken := brokenLock(err)
	if rootBroken {
		dropLocks(files, "")
		components, err = load.Components(files)
	}
	if err != nil {
		return false, err
	}
	changed := false
	for _, component := range append([]string{""}, components...) {
		p, err := load.Load(ctx, files, component)
		broken := brokenLock(err) || component == "" && rootBroken
		if brokenLock(err) {
			dropLocks(files, component)
			p, err = load.Load(ctx, files, component)
		}
		if err != nil {
			return false, inComponent(err)
		}
		dir := source
		if component != "" {
			dir = filepath.Join(source, "components", component)
		}
		wrote, err := o.lockOne(ctx, p, dir, insecure, broken)
		if err != nil {
			return false, err
		}
		changed = changed || wrote
	}
	return changed, nil
}

// locks are the names that a lock file may have.
var locks = []string{manifest.LockFile, "manifest.lock.yml"}

// brokenLock tells that a package can't be loaded because of its lock file, which is about to be written anew.
func brokenLock(err error) bool {
	v, ok := errors.AsType[*violation.Error](err)
	return ok && slices.Contains(locks, v.Path)
}

// dropLocks forgets the lock file of a component, or of the root.
func dropLocks(files load.Files, component string) {
	for _, name := range locks {
		if component != "" {
			name = path.Join("components", component, name)
		}
		delete(files, name)
	}
}

func (o *Options) lockOne(ctx context.Context, p *load.Package, dir string, insecure, broken bool) (bool, error) {
	spec := manifests.PackageManifestLockSpec{}
	for _, image := range p.Manifest.Spec.Images {
		digest, err := o.digest(ctx, image.Image, insecure)
		if err != nil {
			return false, fmt.Errorf("resolving lock image for %q: resolving image digest: %w", image.Image, err)
		}
		spec.Images = append(spec.Images, manifests.PackageManifestLockImage{Name: image.Name, Image: image.Image, Digest: digest})
	}
	repositories, err := o.repositories(ctx, p, insecure)
	if err != nil {
		return false, err
	}
	if spec.Dependencies, err = repository.Resolve(p.Manifest, repositories); err != nil {
		return false, err
	}
	if p.Component != "" && p.Lock == nil && !broken && len(spec.Images) == 0 && len(spec.Dependencies) == 0 {
		return false, nil // the package itself gets a lock file in any case, as published
	}
	if p.Lock != nil && equality.Semantic.DeepEqual(p.Lock.Spec, spec) {
		return false, nil
	}
	raw, err := yaml.Marshal(map[string]any{
		"apiVersion": manifests.GroupVersion.String(), "kind": "PackageManifestLock",
		"metadata": map[string]any{"creationTimestamp": o.Now().UTC().Format(time.RFC3339)}, "spec": spec,
	})
	if err != nil {
		return false, fmt.Errorf("encoding the lock file: %w", err)
	}
	target := filepath.Join(dir, manifest.LockFile)
	if short := filepath.Join(dir, "manifest.lock.yml"); exists(short) {
		target = short
	}
	return true, os.WriteFile(target, raw, 0o644) // part of the source, like the manifest
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func (o *Options) repositories(ctx context.Context, p *load.Package, insecure bool) ([]*repository.Repository, error) {
	var out []*repository.Repository
	for i, r := range p.Manifest.Spec.Repositories {
		var got *repository.Repository
		var err error
		if r.File != "" {
			data, ok := p.Files[r.File]
			if !ok {
				return nil, fmt.Errorf("spec.repositories[%d].file: the package has no file %q", i, r.File)
			}
			got, err = repository.Parse(data)
		} else {
			got, err = o.pullRepository(ctx, r.Image, insecure)
		}
		if err != nil {
			return nil, fmt.Errorf("spec.repositories[%d]: %w", i, err)
		}
		out = append(out, got)
	}
	return out, nil
}

func (o *Options) pullRepository(ctx context.Context, image string, insecure bool) (*repository.Repository, error) {
	ref, err := o.onHost(image, insecure)
	if err != nil {
		return nil, err
	}
	img, err := o.pull(ctx, ref.Name(), insecure)
	if err != nil {
		return nil, err
	}
	return repository.FromImage(ctx, img)
}
