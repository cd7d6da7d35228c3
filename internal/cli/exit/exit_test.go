package exit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestCode(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		want   int
		silent bool
	}{
		"When nothing failed it should be 0":                    {nil, 0, false},
		"When something failed it should be 1":                  {errors.New("no"), Failed, false},
		"When an error has a code it should be that":            {fmt.Errorf("doing: %w", With(Held, errors.New("held"))), Held, false},
		"When there's only a code nothing should be printed":    {With(7, nil), 7, true},
		"When the object isn't there it should be told":         {fmt.Errorf("reading: %w", apierrors.NewNotFound(schema.GroupResource{}, "x")), NotFound, false},
		"When time is up it should be as with timeout(1)":       {fmt.Errorf("waiting: %w", context.DeadlineExceeded), TimedOut, false},
		"When a code covers a cause the code should win":        {With(Held, context.DeadlineExceeded), Held, false},
		"When the user interrupts it should be a plain failure": {context.Canceled, Failed, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(Code(tc.err)).To(Equal(tc.want))
			g.Expect(Silent(tc.err)).To(Equal(tc.silent))
		})
	}
}
