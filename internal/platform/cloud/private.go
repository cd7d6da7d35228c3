package cloud

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

// Link is an object that asks for private access to a control plane, with what was said about it.
type Link struct {
	Name       string
	Conditions []metav1.Condition
}

// Private describes conditions about private access of a platform whose links nobody here makes.
type Private struct {
	// Kind is that of the objects that ask for links.
	Kind string
	// Types are the conditions; the first says what stands in the way when nobody says anything.
	Types []string
	// Good and Bad are the reasons of True and False.
	Good, Bad string
	// Remedy says what to do when there is no link: a sentence.
	Remedy string
}

// ListLinks lists the objects of a kind in a namespace; none where the management cluster doesn't serve the kind.
func ListLinks(ctx context.Context, reader client.Reader, list client.ObjectList, hcpNamespace, kind string) error {
	if err := reader.List(ctx, list, client.InNamespace(hcpNamespace)); err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("listing the %ss of namespace %s: %w", kind, hcpNamespace, err)
	}
	return nil
}

// Conditions sums up what is said of all links: one that is False makes a condition False. It is pure.
func (p Private) Conditions(links []Link) (list []metav1.Condition) {
	for i, t := range p.Types {
		list = append(list, p.condition(t, i == 0, links))
	}
	return list
}

func (p Private) condition(t string, first bool, links []Link) metav1.Condition {
	var wrong, unknown []string
	for _, l := range links {
		switch c := conditions.Get(l.Conditions, t); {
		case c == nil || c.Status == metav1.ConditionUnknown:
			unknown = append(unknown, l.Name)
		case c.Status == metav1.ConditionFalse:
			wrong = append(wrong, l.Name+": "+c.Message)
		}
	}
	switch {
	case len(wrong) > 0:
		return conditions.False(t, p.Bad, strings.Join(wrong, "; "))
	case len(links) > 0 && len(unknown) == 0:
		return conditions.True(t, p.Good, hyperv1.AllIsWellMessage)
	case first:
		return conditions.False(t, p.Bad, p.Remedy)
	case len(links) == 0:
		return conditions.Unknown(t, hyperv1.StatusUnknownReason, fmt.Sprintf("There is no %s", p.Kind))
	}
	return conditions.Unknown(t, hyperv1.StatusUnknownReason, "Nothing is known yet of "+strings.Join(unknown, ", "))
}
