package layers_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/oci/layers"
)

// layer has files of 1 KiB with these names.
func layer(t *testing.T, names ...string) v1.Layer {
	t.Helper()
	var buf bytes.Buffer
	archive := tar.NewWriter(&buf)
	for _, name := range names {
		if err := archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1 << 10}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(make([]byte, 1<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return static.NewLayer(buf.Bytes(), types.DockerUncompressedLayer)
}

func TestAdmit(t *testing.T) {
	g := NewWithT(t)
	b := layers.Budget{Compressed: 10}
	g.Expect(b.Admit(v1.Descriptor{Size: 6})).To(Succeed())
	g.Expect(b.Admit(v1.Descriptor{Size: 5})).To(MatchError(layers.ErrCompressed))
	g.Expect((&layers.Budget{Compressed: 10}).Admit(v1.Descriptor{Size: -1})).To(MatchError(layers.ErrCompressed))
	g.Expect((&layers.Budget{Compressed: 10}).Admit(v1.Descriptor{URLs: []string{"https://elsewhere"}})).To(MatchError(layers.ErrForeign))
}

func TestWalk(t *testing.T) {
	plenty := layers.Budget{Unpacked: 1 << 20, Entries: 10}
	gone, cancel := context.WithCancelCause(context.Background())
	errGone := errors.New("the operator ends")
	cancel(errGone)
	errVisit := errors.New("not wanted")
	for name, tc := range map[string]struct {
		ctx    context.Context
		budget layers.Budget
		done   string // the entry at which visit is done
		fail   string // the entry at which visit fails
		want   []string
		err    error
	}{
		"When all fits it should show every entry":            {budget: plenty, want: []string{"a", "b", "c"}},
		"When there are exactly as many as allowed it should": {budget: layers.Budget{Unpacked: 1 << 20, Entries: 3}, want: []string{"a", "b", "c"}},
		"When there are too many it should stop":              {budget: layers.Budget{Unpacked: 1 << 20, Entries: 2}, want: []string{"a", "b"}, err: layers.ErrEntries},
		"When they unpack to too much it should stop":         {budget: layers.Budget{Unpacked: 1 << 10, Entries: 10}, want: []string{"a"}, err: layers.ErrUnpacked},
		"When visit has seen enough it should show no more":   {budget: plenty, done: "b", want: []string{"a", "b"}},
		"When visit has seen enough it should read to the end": {
			budget: layers.Budget{Unpacked: 3 << 10, Entries: 10}, done: "a", want: []string{"a"}, err: layers.ErrUnpacked,
		},
		"When visit fails it should return that":    {budget: plenty, fail: "b", want: []string{"a", "b"}, err: errVisit},
		"When the context is over it should say so": {ctx: gone, budget: plenty, err: errGone},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if tc.ctx == nil {
				tc.ctx = t.Context()
			}
			var seen []string
			err := tc.budget.Walk(tc.ctx, layer(t, "a", "b", "c"), func(h *tar.Header, _ io.Reader) (bool, error) {
				seen = append(seen, h.Name)
				if h.Name == tc.fail {
					return false, errVisit
				}
				return h.Name == tc.done, nil
			})
			g.Expect(seen).To(Equal(tc.want))
			if tc.err == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(tc.err))
			}
		})
	}
}
