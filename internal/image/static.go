package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
)

// ErrDynamic is returned, wrapped, by the functions that make images without a C library, for a program that needs one.
var ErrDynamic = errors.New("the program is linked dynamically, and the image has no C library to run it with")

// requireStatic refuses programs that the kernel could not start in an image which holds nothing but them: started as a
// container, such a program ends with "no such file or directory", which names the wrong file.
func requireStatic(sets ...[]File) error {
	var errs []error
	for _, files := range sets {
		for _, f := range files {
			if f.Source == "" {
				continue
			}
			if err := checkStatic(f.Source); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w; build it with CGO_ENABLED=0, as make build does", f.Source, err))
			}
		}
	}
	return errors.Join(errs...)
}

// checkStatic returns ErrDynamic for an ELF file that names an interpreter. What is no ELF file is somebody else's concern.
func checkStatic(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	program, err := elf.NewFile(file)
	if err != nil {
		return nil
	}
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			return ErrDynamic
		}
	}
	return nil
}
