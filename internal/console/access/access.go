// Package access says whose request it is, and what they may see.
//
// Own is for a console on a person's own machine: whoever has the token that the command printed is that person, and what their kubeconfig may read is
// what there is. Tokens is for a console in a cluster: TokenReview says who a bearer token is of, SubjectAccessReview what they may list. There is no
// anonymous mode, and there are no cookies, so that no other site can send a request in somebody's name.
package access

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Viewer is somebody who looks.
type Viewer struct {
	// Name for people and for the audit log.
	Name string
	// ID is the same for requests of the same person with the same credentials. It says nothing about them.
	ID string
	// Client reads with the viewer's own rights.
	Client client.Reader
	// may answers what they may do; nil: all that Client may.
	may func(ctx context.Context, verb string, resource Resource, namespace string) (bool, error)
}

// Resource is a resource of the API server, in the plural.
type Resource struct {
	Group, Name string
}

// String is "hostedclusters.hypershift.openshift.io".
func (r Resource) String() string {
	if r.Group == "" {
		return r.Name
	}
	return r.Name + "." + r.Group
}

// May tells whether the viewer may do something; an empty namespace means all of them.
func (v *Viewer) May(ctx context.Context, verb string, resource Resource, namespace string) (bool, error) {
	if v.may == nil {
		return true, nil
	}
	return v.may(ctx, verb, resource, namespace)
}

// ErrNobody is that of a request whose sender can't be told.
var ErrNobody = errors.New("no valid token: send header Authorization: Bearer TOKEN")

// Gate tells whose request it is. Its error is ErrNobody, or that the API server could not be asked.
type Gate interface {
	Viewer(r *http.Request) (*Viewer, error)
}

// maxToken bounds a token, in bytes. Those of OIDC with many groups have some kB.
const maxToken = 16 << 10

// bearer is the token of a request; empty: it has none.
func bearer(r *http.Request) string {
	kind, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(kind, "Bearer") || len(token) > maxToken {
		return ""
	}
	return strings.TrimSpace(token)
}
