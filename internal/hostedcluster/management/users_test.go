package management

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"
)

func TestNextUID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		used := sets.New(rapid.SliceOfN(rapid.Int64Range(firstUID-5, firstUID+uidRange+5), 0, 200).Draw(t, "used")...)
		uid, err := nextUID(used)
		if err != nil || used.Has(uid) || uid < firstUID || uid >= firstUID+uidRange {
			t.Fatalf("gave %d, %v", uid, err)
		}
	})
	t.Run("When all are taken it should say so", func(t *testing.T) {
		used := sets.New[int64]()
		for uid := firstUID; uid < firstUID+uidRange; uid++ {
			used.Insert(uid)
		}
		_, err := nextUID(used)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("all 10000 users")))
	})
}
