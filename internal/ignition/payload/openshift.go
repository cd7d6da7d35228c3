package payload

import (
	"context"
	"fmt"
)

// OpenShift stands for payloads of OpenShift releases, which only programs of the release itself can make. Nothing runs those, so Generate returns
// an *UnsupportedError.
type OpenShift struct{}

// UnsupportedError says that payloads of a kind of release cannot be made.
type UnsupportedError struct{ Version string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("making machines of OpenShift release %s is not supported: use a Kubernetes release, one whose version starts with 1", e.Version)
}

// Generate implements Generator.
func (OpenShift) Generate(_ context.Context, in Inputs) ([]byte, error) {
	return nil, &InvalidError{Err: &UnsupportedError{Version: in.Version}}
}
