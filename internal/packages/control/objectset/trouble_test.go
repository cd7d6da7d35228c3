package objectset

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTroubles(t *testing.T) {
	down, gone := errors.New("a webhook does not answer"), errors.New("a slice is gone")
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "objectsets"}, "a", errors.New("it changed"))
	type pass struct {
		after time.Duration
		err   error
		want  string
	}
	for name, passes := range map[string][]pass{
		"When a pass fails once it should tell nothing":             {{0, down, ""}, {time.Minute, nil, ""}},
		"When passes go on failing it should tell it once":          {{0, down, ""}, {time.Second, down, ""}, {5 * time.Second, down, down.Error()}, {time.Hour, down, ""}},
		"When passes lose a race again and again it is no trouble":  {{0, conflict, ""}, {time.Minute, conflict, ""}},
		"When passes fail with something else it should tell that":  {{0, down, ""}, {5 * time.Second, down, down.Error()}, {6 * time.Second, gone, ""}, {time.Minute, gone, gone.Error()}},
		"When a pass came through it should begin from the start":   {{0, down, ""}, {5 * time.Second, down, down.Error()}, {6 * time.Second, nil, ""}, {time.Hour, down, ""}},
		"When a race is lost in between passes still go on to fail": {{0, down, ""}, {time.Second, conflict, ""}, {5 * time.Second, down, down.Error()}},
		"When one ObjectSet fails another's failures do not matter": {{0, gone, ""}, {time.Second, gone, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var all troubles
			all.of("other", gone, noon.Add(-time.Hour))
			for i, p := range passes {
				NewWithT(t).Expect(all.of("uid", p.err, noon.Add(p.after))).To(Equal(p.want), "pass %d", i)
			}
		})
	}
}
