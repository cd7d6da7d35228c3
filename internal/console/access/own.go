package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Own is the gate of a console on a person's own machine. Ticket makes a word that is good for one exchange; Exchange gives a token for it that is good
// for as long as the process lives. Neither is good anywhere else.
type Own struct {
	// User names the person for the page.
	User string
	// Client reads and writes with their kubeconfig.
	Client client.WithWatch

	mu      sync.Mutex
	ticket  string
	session string
}

// Ticket makes a new ticket. The one before is good no more.
func (o *Own) Ticket() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ticket = rand.Text()
	return o.ticket
}

// Exchange gives the session's token for a ticket; false: it is not the ticket, or it was used before.
func (o *Own) Exchange(ticket string) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ticket == "" || subtle.ConstantTimeCompare([]byte(ticket), []byte(o.ticket)) != 1 {
		return "", false
	}
	o.ticket = ""
	if o.session == "" {
		o.session = rand.Text()
	}
	return o.session, true
}

// Viewer is the person, for requests with the session's token.
func (o *Own) Viewer(r *http.Request) (*Viewer, error) {
	o.mu.Lock()
	session := o.session
	o.mu.Unlock()
	if session == "" || subtle.ConstantTimeCompare([]byte(bearer(r)), []byte(session)) != 1 {
		return nil, ErrNobody
	}
	return &Viewer{Name: o.User, ID: "own", Client: o.Client, Writer: o.Client, mayChange: o.mayChange}, nil
}

func (o *Own) mayChange(ctx context.Context, what authorizationv1.ResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	err := o.Client.Create(ctx, review)
	return review.Status, err
}
