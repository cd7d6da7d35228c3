// Package access says whose request it is, and what they may see.
//
// Own is for a console on a person's own machine: whoever has the token that the command printed is that person, and what their kubeconfig may read is
// what there is. Tokens is for a console in a cluster: TokenReview says who a bearer token is of, SubjectAccessReview what they may list. There is no
// anonymous mode, and there are no cookies, so that no other site can send a request in somebody's name.
package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reader reads objects, and follows what becomes of them.
type Reader interface {
	client.Reader
	Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error)
}

// Viewer is somebody who looks.
type Viewer struct {
	// Name for people and for the audit log.
	Name string
	// ID is the same for requests of the same person with the same credentials. It says nothing about them.
	ID string
	// Client reads with the viewer's own rights.
	Client Reader
	// Writer changes things with the viewer's own rights, so that the API server's audit log names them. Ask MayChange first.
	Writer client.Writer
	// may answers what they may do; nil: all that Client may.
	may func(ctx context.Context, verb string, resource Resource, namespace string) (bool, error)
	// mayChange answers whether they may do something to one object; nil: nothing can be changed.
	mayChange func(ctx context.Context, what authorizationv1.ResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error)
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

// ErrRefused is that of somebody who may not change an object.
var ErrRefused = errors.New("you may not do this")

// MayChange asks the API server whether the viewer may do something, such as patch, to one object; namespace is empty for objects without one. Nothing is
// remembered: what was true half a minute ago is good enough for what is shown, and not for what is done. Its error is ErrRefused with what to ask for, or
// that the API server could not be asked.
func (v *Viewer) MayChange(ctx context.Context, verb string, resource Resource, namespace, name string) error {
	if v.mayChange == nil || v.Writer == nil {
		return fmt.Errorf("%w: this console changes nothing", ErrRefused)
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTime)
	defer cancel()
	status, err := v.mayChange(ctx, authorizationv1.ResourceAttributes{Verb: verb, Group: resource.Group, Resource: resource.Name, Namespace: namespace, Name: name})
	if err != nil {
		return fmt.Errorf("asking whether %s may %s %s: %w", v.Name, verb, resource, err)
	}
	if !status.Allowed {
		return fmt.Errorf("%w: ask for a role with verb %s on %s", ErrRefused, verb, resource)
	}
	return nil
}

// ErrNobody is that of a request whose sender can't be told.
var ErrNobody = errors.New("no valid token: send header Authorization: Bearer TOKEN")

// ErrTooMany is that of a request whose token isn't asked about, as too many came from where it comes from that nobody knew.
var ErrTooMany = errors.New("too many unknown tokens come from your address: wait a second")

// Gate tells whose request it is. Its error is ErrNobody, ErrTooMany, or that the API server could not be asked.
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
