package kubectlpackage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/author/kickstart"
)

const (
	// maxInput bounds what kickstart reads from one place.
	maxInput = 16 << 20
	// fetchTime bounds reading a URL.
	fetchTime = time.Minute
)

func (o *Options) kickstart() *cobra.Command {
	var files, parametrize []string
	var bundle string
	var insecure bool
	cmd := &cobra.Command{
		Use:               "kickstart pkg_name",
		ValidArgsFunction: cobra.NoFileCompletions,
		Short:             "Create a package from objects in files (experimental)",
		Example: `  kubectl package kickstart my-app -f manifests/
  kustomize build . | kubectl package kickstart my-app -f - -p namespaces,replicas
  kubectl package kickstart my-operator --olm-bundle quay.io/example/my-operator-bundle:v1.0.0`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(files) == 0 && bundle == "" {
				return errors.New("arguments invalid: no objects: give some with -f, or a bundle with -b")
			}
			if exists(args[0]) {
				return fmt.Errorf("kickstarting package: package folder already exists: %s", args[0])
			}
			objects, err := o.fromBundle(cmd, bundle, insecure)
			if err == nil {
				err = o.runKickstart(cmd, args[0], files, objects, parametrize)
			}
			if err != nil {
				return fmt.Errorf("kickstarting package: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "Files, folders, patterns or URLs of objects, or - for standard input, separated by commas; may be repeated")
	cmd.Flags().StringVarP(&bundle, "olm-bundle", "b", "", "OLM bundle image of format registry+v1, whose operator becomes objects as OLM would make them")
	cmd.Flags().BoolVar(&insecure, "insecure", false, insecureHelp)
	cmd.Flags().StringSliceVarP(&parametrize, "parametrize", "p", nil, "What to turn into parameters: "+strings.Join(kickstart.Parameters, ", ")+" or all")
	return cmd
}

// fromBundle reads the objects of an OLM bundle; none without one.
func (o *Options) fromBundle(cmd *cobra.Command, reference string, insecure bool) ([]unstructured.Unstructured, error) {
	if reference == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), registryTime)
	defer cancel()
	img, err := o.pull(ctx, reference, insecure)
	if err != nil {
		return nil, fmt.Errorf("pulling bundle %s: %w", reference, err)
	}
	manifests, annotations, err := images.BundleFiles(ctx, img)
	if err != nil {
		return nil, fmt.Errorf("reading bundle %s: %w", reference, err)
	}
	objects, err := kickstart.Bundle(manifests, annotations)
	if err != nil {
		return nil, fmt.Errorf("reading bundle %s: %w", reference, err)
	}
	return objects, nil
}

func (o *Options) runKickstart(cmd *cobra.Command, name string, sources []string, objects []unstructured.Unstructured, parametrize []string) error {
	for _, source := range sources {
		got, err := o.objectsFrom(cmd, source)
		if err != nil {
			return fmt.Errorf("reading %s: %w", source, err)
		}
		objects = append(objects, got...)
	}
	result, err := kickstart.Make(filepath.Base(name), objects, parametrize)
	if err != nil {
		return err
	}
	for file, data := range result.Files {
		target := filepath.Join(name, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { // source, for others to read
			return fmt.Errorf("making the package folder: %w", err)
		}
		if err := os.WriteFile(target, data, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", target, err)
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Kickstarted the %q package with %d objects.\n", filepath.Base(name), result.Objects)
	if len(result.Unprobed) > 0 {
		fmt.Fprintln(cmd.OutOrStdout(), "[WARN] Some kinds don't have availability probes defined:")
		for _, kind := range result.Unprobed {
			fmt.Fprintf(cmd.OutOrStdout(), "- %s\n", kind)
		}
	}
	return nil
}

// objectsFrom reads objects from a file, a folder, a pattern, a URL or standard input.
func (o *Options) objectsFrom(cmd *cobra.Command, source string) ([]unstructured.Unstructured, error) {
	if source == "-" {
		return decodeObjects(cmd.InOrStdin())
	}
	if strings.HasPrefix(source, "https://") || strings.HasPrefix(source, "http://") {
		return o.fetch(cmd.Context(), source)
	}
	paths, err := filepath.Glob(source)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fs.ErrNotExist
	}
	var out []unstructured.Unstructured
	for _, path := range paths {
		err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !d.Type().IsRegular() {
				return err
			}
			if ext := filepath.Ext(path); !slices.Contains([]string{".yaml", ".yml", ".json"}, ext) {
				return nil
			}
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			defer func() { _ = file.Close() }() // nothing was written
			got, err := decodeObjects(file)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			out = append(out, got...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (o *Options) fetch(ctx context.Context, url string) ([]unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: o.Transport}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // nothing was written
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("server answers %s", resp.Status)
	}
	return decodeObjects(resp.Body)
}

func decodeObjects(from io.Reader) ([]unstructured.Unstructured, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxInput+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxInput {
		return nil, fmt.Errorf("more than %d bytes", maxInput)
	}
	var out []unstructured.Unstructured
	for i, doc := range strings.Split("\n"+string(data), "\n---") {
		obj := map[string]any{}
		if err := yaml.Unmarshal([]byte(doc), &obj); err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		if len(obj) == 0 {
			continue
		}
		if items, ok := obj["items"].([]any); ok && strings.HasSuffix(fmt.Sprint(obj["kind"]), "List") {
			for _, item := range items {
				if m, ok := item.(map[string]any); ok {
					out = append(out, unstructured.Unstructured{Object: m})
				}
			}
			continue
		}
		out = append(out, unstructured.Unstructured{Object: obj})
	}
	return out, nil
}
