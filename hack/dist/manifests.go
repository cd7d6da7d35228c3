package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/image/bundle"
)

// operatorRepository is where the operators' image is in a registry.
const operatorRepository = "hypershift/hypershift"

// chart returns Chart.yaml as JSON, and the packed chart, whose image is at registry.
func (d *distribution) chart(image string) (config, content []byte, err error) {
	o := install.NewOptions()
	o.Image = image
	files, err := install.Chart(o)
	if err != nil {
		return nil, nil, err
	}
	var packedFiles []packed
	for _, name := range slices.Sorted(maps.Keys(files)) {
		packedFiles = append(packedFiles, packed{name: install.ChartName + "/" + name, mode: 0o644, data: files[name]})
	}
	for _, name := range []string{"LICENSE", "NOTICE"} {
		data, err := os.ReadFile(filepath.Join(d.root, name))
		if err != nil {
			return nil, nil, err
		}
		packedFiles = append(packedFiles, packed{name: install.ChartName + "/" + name, mode: 0o644, data: data})
	}
	// Helm wants the description of a chart first.
	slices.SortStableFunc(packedFiles, func(a, b packed) int {
		return boolOrder(strings.HasSuffix(a.name, "/Chart.yaml"), strings.HasSuffix(b.name, "/Chart.yaml"))
	})
	var out bytes.Buffer
	if err := packTar(&out, packedFiles, d.created); err != nil {
		return nil, nil, err
	}
	config, err = json.Marshal(install.ChartMetadata())
	return config, out.Bytes(), err
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func (d *distribution) makeChart(context.Context, func(string, ...any)) error {
	_, content, err := d.chart(d.operatorImage)
	if err != nil {
		return fmt.Errorf("making the chart: %w", err)
	}
	if err := d.remove("chart"); err != nil {
		return err
	}
	return d.write(install.ChartName+"-"+d.version+".tgz", content)
}

// makeManifests writes what install renders, for those who neither run it nor Helm.
func (d *distribution) makeManifests(context.Context, func(string, ...any)) error {
	if err := d.remove("manifests"); err != nil {
		return err
	}
	var names []string
	for _, scope := range []string{install.ScopeCRDs, install.ScopeResources} {
		o := install.NewOptions()
		o.Image, o.Scope, o.Replicas = d.operatorImage, scope, 2
		var out bytes.Buffer
		if err := install.Render(o, install.RenderOptions{}, &out); err != nil {
			return fmt.Errorf("rendering %s: %w", scope, err)
		}
		name := map[string]string{install.ScopeCRDs: "crds.yaml", install.ScopeResources: "operator.yaml"}[scope]
		names = append(names, name)
		if err := errors.Join(d.write("manifests/"+name, out.Bytes()), d.write("kustomize/"+name, out.Bytes())); err != nil {
			return err
		}
	}
	repository, tag := d.operatorImage, ""
	if i := strings.LastIndex(repository, ":"); i > strings.LastIndex(repository, "/") {
		repository, tag = repository[:i], repository[i+1:]
	}
	kustomization, err := yaml.Marshal(map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": names,
		// What is changed most often: kustomize edit set image NAME=registry.example.com/team/hypershift/hypershift:TAG
		"images": []any{map[string]any{"name": repository, "newName": repository, "newTag": tag}},
	})
	if err != nil {
		return err
	}
	return d.write("kustomize/kustomization.yaml", kustomization)
}

// plugins are those of kubectl that the archives hold.
var plugins = []struct{ name, short, description string }{
	{"hypershift", "Hosted control planes: create, look at, upgrade and destroy clusters", "Creates Kubernetes clusters whose control planes are pods of this cluster, and says what is wrong with them."},
	{"package", "Build, look at and roll out packages", "Builds packages for the package operator, checks them, and shows how far their rollouts are."},
}

func (d *distribution) makeKrew(context.Context, func(string, ...any)) error {
	if err := d.remove("krew"); err != nil {
		return err
	}
	for _, p := range plugins {
		var platforms []any
		for _, s := range d.systems {
			sum, err := sumOf(filepath.Join(d.out, d.archive(s)))
			if err != nil {
				return fmt.Errorf("krew needs the archives, which part archives makes: %w", err)
			}
			platforms = append(platforms, map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{"os": s.os, "arch": s.arch}},
				"uri":      d.url + "/" + d.archive(s), "sha256": sum, "bin": "hypershift" + s.exe(),
				"files": []any{map[string]any{"from": "hypershift" + s.exe(), "to": "."}, map[string]any{"from": "LICENSE", "to": "."}},
			})
			if p.name == "package" { // the program looks at the name that it is called by
				last := platforms[len(platforms)-1].(map[string]any)
				last["bin"] = "kubectl-package" + s.exe()
				last["files"] = []any{map[string]any{"from": "hypershift" + s.exe(), "to": "kubectl-package" + s.exe()}, map[string]any{"from": "LICENSE", "to": "."}}
			}
		}
		raw, err := yaml.Marshal(map[string]any{
			"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": map[string]any{"name": p.name},
			"spec": map[string]any{"version": "v" + d.version, "shortDescription": p.short, "description": p.description + "\n", "homepage": d.url, "platforms": platforms},
		})
		if err != nil {
			return err
		}
		if err := d.write("krew/"+p.name+".yaml", raw); err != nil {
			return err
		}
	}
	return nil
}

// sums is the name of the list of checksums.
const sums = "SHA256SUMS"

// makeChecksums lists the files of all parts, but not the blobs of the images, whose names are their checksums and which index.json leads to.
func (d *distribution) makeChecksums(context.Context, func(string, ...any)) error {
	var out strings.Builder
	for _, name := range listed(d.out) {
		sum, err := sumOf(filepath.Join(d.out, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s  %s\n", sum, name)
	}
	if out.Len() == 0 {
		return fmt.Errorf("%s has no part of a distribution: make others before", d.out)
	}
	return d.write(sums, []byte(out.String()))
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// placeholder is the operators' image in a bundle.
func (d *distribution) placeholder() string {
	return bundle.Placeholder + "/" + operatorRepository + ":" + d.version
}
