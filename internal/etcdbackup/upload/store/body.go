package store

import (
	"context"
	"errors"
	"fmt"
	"io"
)

const (
	// partSize makes parts enough for 8 GiB in few requests, and few enough to be sent again.
	partSize = 8 << 20
	// attempts is how often one request is tried: a storage that is slow or restarts is no lost backup.
	attempts = 8
)

// body reads a file to its end, and goes on with another request where a connection broke.
type body struct {
	ctx context.Context
	url string // for errors
	// open reads the same file from a byte on.
	open     func(from int64) (io.ReadCloser, error)
	at, size int64 // in bytes; a size that the storage didn't tell is negative
	again    int
	r        io.ReadCloser
}

func (o *body) Read(p []byte) (int, error) {
	for {
		n, err := o.r.Read(p)
		o.at += int64(n)
		switch {
		case err == nil || n > 0:
			return n, nil // what is wrong shows again at the next call
		case errors.Is(err, io.EOF) && o.at >= o.size:
			return 0, io.EOF
		case o.size >= 0 && o.at >= o.size:
			// Nothing is left to ask for: what came last is the client's comparison with the sum that the object was stored with.
			return 0, fmt.Errorf("%s is damaged: %d of %d bytes were received, and they differ from what was stored: %w", o.url, o.at, o.size, unexpected(err))
		case o.ctx.Err() != nil:
			return 0, o.ctx.Err()
		case o.again == attempts:
			return 0, fmt.Errorf("reading %s: the connection broke %d times, last after %d of %d bytes: %w", o.url, o.again+1, o.at, o.size, unexpected(err))
		}
		o.again++
		_ = o.r.Close() // it is broken
		r, err := o.open(o.at)
		if err != nil {
			r = io.NopCloser(failing{fmt.Errorf("reading %s from byte %d: %w", o.url, o.at, err)})
			o.again = attempts
		}
		o.r = r
	}
}

func (o *body) Close() error { return o.r.Close() }

// failing gives an error to who reads it.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// unexpected is an error for an end that is too early. It is none of package io: who reads would take it for the end of what was stored.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ended too early")
	}
	return err
}

// answer is what a storage said, with the error that callers tell it by.
type answer struct {
	text string
	kind error
}

func (a answer) Error() string { return a.text }
func (a answer) Unwrap() error { return a.kind }
