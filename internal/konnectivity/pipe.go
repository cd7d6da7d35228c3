package konnectivity

import (
	"io"
	"sync"
)

var buffers = sync.Pool{New: func() any { b := make([]byte, copyBuffer); return &b }}

// copyAll copies until one side ends, calling flush after each write. It reads no further while a write blocks, which is how
// a slow receiver slows its sender.
func copyAll(dst io.Writer, src io.Reader, flush func() error) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for {
		n, err := src.Read(*buf)
		if n > 0 {
			if _, werr := dst.Write((*buf)[:n]); werr != nil {
				return werr
			}
			if flush != nil {
				if ferr := flush(); ferr != nil {
					return ferr
				}
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
