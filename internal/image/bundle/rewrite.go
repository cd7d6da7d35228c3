package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"hcp.internal/platform/internal/image"
)

// Media types of Helm charts in registries.
const (
	chartConfig  = types.MediaType("application/vnd.cncf.helm.config.v1+json")
	chartContent = types.MediaType("application/vnd.cncf.helm.chart.content.v1.tar+gzip")
)

// maxChart bounds a chart, packed and unpacked; ours has 3 MiB, most of it definitions.
const maxChart = 64 << 20

// valuesFile is what of a chart names images.
const valuesFile = "values.yaml"

// Chart adds a Helm chart. config is its Chart.yaml as JSON, content the packed chart.
func (w *Writer) Chart(config, content []byte) (v1.Descriptor, error) {
	src, m, err := artifact(config, chartConfig, content, chartContent, nil)
	if err != nil {
		return v1.Descriptor{}, err
	}
	for _, data := range src {
		if _, err := w.data(data, ""); err != nil {
			return v1.Descriptor{}, err
		}
	}
	return w.data(m.raw, types.OCIManifestSchema1)
}

// taggable is what an entry becomes in a registry.
func (b *Bundle) taggable(e Entry, registry string) (remote.Taggable, error) {
	switch {
	case e.Kind == Release:
		return b.releaseFor(e, registry)
	case e.Kind == Chart:
		return b.chartFor(e, registry)
	case e.descriptor.MediaType.IsIndex():
		return b.index(e.descriptor)
	}
	m, err := b.manifest(e.descriptor)
	if err != nil {
		return nil, err
	}
	return m.image()
}

// releaseFor is a release image whose images are in registry.
func (b *Bundle) releaseFor(e Entry, registry string) (v1.ImageIndex, error) {
	stored, err := b.index(e.descriptor)
	if err != nil {
		return nil, err
	}
	out := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, d := range stored.parsed.Manifests {
		img, err := stored.Image(d.Digest)
		if err != nil {
			return nil, err
		}
		tags, err := image.ReleaseTags(img)
		if err != nil {
			return nil, err
		}
		for tag, ref := range tags {
			rest, ok := strings.CutPrefix(ref, Placeholder+"/")
			if !ok {
				return nil, fmt.Errorf("image %s is %s, which is not in the bundle", tag, ref)
			}
			tags[tag] = registry + "/" + rest
		}
		if img, err = image.Release(e.Release, tags); err != nil {
			return nil, err
		}
		if img, err = image.ForArchitecture(img, d.Platform.Architecture); err != nil {
			return nil, err
		}
		add, err := partial.Descriptor(img)
		if err != nil {
			return nil, err
		}
		add.Platform = d.Platform
		out = mutate.AppendManifests(out, mutate.IndexAddendum{Add: img, Descriptor: *add})
	}
	return out, nil
}

// chartFor is a chart whose values name registry.
func (b *Bundle) chartFor(e Entry, registry string) (v1.Image, error) {
	m, err := b.manifest(e.descriptor)
	if err != nil {
		return nil, err
	}
	if len(m.parsed.Layers) != 1 || m.parsed.Layers[0].Size > maxChart {
		return nil, errors.New("a chart has one layer of at most 64 MiB")
	}
	config, err := m.RawConfigFile()
	if err != nil {
		return nil, err
	}
	r, err := (&blob{b.src, m.parsed.Layers[0]}).Compressed()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content, err := RewriteChart(r, registry)
	if err != nil {
		return nil, fmt.Errorf("rewriting the chart's values: %w", err)
	}
	_, out, err := artifact(config, chartConfig, content, chartContent, nil)
	if err != nil {
		return nil, err
	}
	return out.image()
}

// RewriteChart writes registry in place of Placeholder into the values of a packed chart.
func RewriteChart(r io.Reader, registry string) ([]byte, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	tw := tar.NewWriter(packed)
	left := int64(maxChart)
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			err := errors.Join(tw.Close(), packed.Close())
			return out.Bytes(), err
		}
		if err != nil {
			return nil, err
		}
		if left -= h.Size; left < 0 || h.Typeflag != tar.TypeReg {
			return nil, fmt.Errorf("%s is no file, or too large", h.Name)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(h.Name, "/"+valuesFile) {
			data = bytes.ReplaceAll(data, []byte(Placeholder+"/"), []byte(registry+"/"))
		}
		if err := tw.WriteHeader(header(h.Name, int64(len(data)))); err != nil {
			return nil, err
		}
		if _, err := tw.Write(data); err != nil {
			return nil, err
		}
	}
}
