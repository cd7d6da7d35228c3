// Package layers reads the files of an image without trusting what is in it: archives that unpack to more than anybody wants, or never end.
package layers

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// What is refused. Callers say in their own words what the image should have been.
var (
	// ErrForeign: a layer lies outside the registry of its image.
	ErrForeign = errors.New("a layer lies outside its registry")
	// ErrCompressed: the layers have more bytes than the Budget.
	ErrCompressed = errors.New("the layers are too large")
	// ErrUnpacked: the layers unpack to more bytes than the Budget.
	ErrUnpacked = errors.New("the layers unpack to too much")
	// ErrEntries: the layers have more files than the Budget.
	ErrEntries = errors.New("the layers have too many entries")
)

// Budget is what may still be read. Every call takes from it.
type Budget struct {
	Compressed int64 // bytes, as the manifest tells them
	Unpacked   int64 // bytes
	Entries    int   // of the archives
}

// Admit says whether a layer may be read, by what the manifest tells of it. It returns ErrForeign or ErrCompressed.
func (b *Budget) Admit(layer v1.Descriptor) error {
	if len(layer.URLs) > 0 {
		return ErrForeign
	}
	if b.Compressed -= layer.Size; layer.Size < 0 || b.Compressed < 0 {
		return ErrCompressed
	}
	return nil
}

// Walk calls visit with each entry of a layer, in its order, until visit says that it is done. The layer is read to its end in any case, because only
// then its digest is verified. The error is one of visit, of ctx, of reading, ErrUnpacked or ErrEntries.
func (b *Budget) Walk(ctx context.Context, layer v1.Layer, visit func(*tar.Header, io.Reader) (done bool, err error)) error {
	stream, err := layer.Uncompressed()
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // errors were seen while reading
	bounded := &reader{ctx: ctx, from: stream, left: &b.Unpacked}
	if err := b.archive(tar.NewReader(bounded), visit); err != nil {
		return cmp.Or(bounded.err, err)
	}
	_, err = io.Copy(io.Discard, bounded)
	return err
}

func (b *Budget) archive(archive *tar.Reader, visit func(*tar.Header, io.Reader) (bool, error)) error {
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if b.Entries--; b.Entries < 0 {
			return ErrEntries
		}
		if done, err := visit(header, archive); done || err != nil {
			return err
		}
	}
}

// reader fails when more than *left bytes are read, or when ctx is done. err keeps that error, which an archive reader may replace.
type reader struct {
	ctx  context.Context // a reader has no other way to hear of it
	from io.Reader
	left *int64
	err  error
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		r.err = err
		return 0, err
	}
	// Who reads a block as a whole ignores an error that comes with it, as the reader of archives does, so it is told again.
	if *r.left < 0 {
		r.err = ErrUnpacked
		return 0, r.err
	}
	n, err := r.from.Read(p)
	if *r.left -= int64(n); *r.left < 0 {
		r.err = ErrUnpacked
		return n, r.err
	}
	return n, err
}
