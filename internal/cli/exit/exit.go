// Package exit says with which code a command ends, so that a script can tell why.
package exit

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Codes that commands end with. They don't change between versions.
const (
	// Failed is everything that has no code of its own: a wrong flag, a refusal, an error of the cluster.
	Failed = 1
	// Held is when what was waited for doesn't go on by itself: somebody has to do something first.
	Held = 2
	// Skew is when client and server are further apart than supported.
	Skew = 3
	// NotFound is when what the command is about doesn't exist.
	NotFound = 4
	// TimedOut is when the time of --timeout or of a request was up, as timeout(1) ends.
	TimedOut = 124
)

// Help lists the codes, for the help of the program.
const Help = `Exit codes: 0 done; 1 failed or refused; 2 held, somebody has to act first; 3 versions of client and server too far apart;
4 not found; 124 time is up.`

// Error ends the process with a code. Err is printed unless it is nil.
type Error struct {
	Code int
	Err  error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap gives Err.
func (e *Error) Unwrap() error { return e.Err }

// With gives an error a code.
func With(code int, err error) error { return &Error{Code: code, Err: err} }

// Code is what a process ends with after err.
func Code(err error) int {
	var coded *Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		return coded.Code
	case apierrors.IsNotFound(err):
		return NotFound
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	}
	return Failed
}

// Silent says that err is only a code, with nothing to print.
func Silent(err error) bool {
	var coded *Error
	return errors.As(err, &coded) && coded.Err == nil
}
