package memory_test

import (
	"strconv"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"hcp.internal/platform/internal/kube/memory"
)

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "clusters", Name: name}
}

func TestMemory(t *testing.T) {
	t.Run("When nothing was stored it should know nothing, and forgetting should do no harm", func(t *testing.T) {
		g := NewWithT(t)
		var m memory.Of[int]
		m.Forget(key("a"))
		m.ForgetWhere(func(int) bool { return true })
		v, known := m.Get(key("a"))
		g.Expect(v).To(BeZero())
		g.Expect(known).To(BeFalse())
	})
	t.Run("When an object was stored it should be known until it is forgotten, and no other one", func(t *testing.T) {
		g := NewWithT(t)
		var m memory.Of[int]
		m.Put(key("a"), 0)
		m.Put(key("b"), 2)
		_, known := m.Get(key("a"))
		g.Expect(known).To(BeTrue())
		m.Forget(key("a"))
		_, known = m.Get(key("a"))
		g.Expect(known).To(BeFalse())
		v, known := m.Get(key("b"))
		g.Expect(v).To(Equal(2))
		g.Expect(known).To(BeTrue())
	})
	t.Run("When values match they should be forgotten, others should stay", func(t *testing.T) {
		g := NewWithT(t)
		var m memory.Of[int]
		for i := range 4 {
			m.Put(key(strconv.Itoa(i)), i)
		}
		m.ForgetWhere(func(v int) bool { return v%2 == 0 })
		for i := range 4 {
			_, known := m.Get(key(strconv.Itoa(i)))
			g.Expect(known).To(Equal(i%2 == 1), "%d", i)
		}
	})
	t.Run("When there are too many objects it should forget one for each new one, and keep the new one", func(t *testing.T) {
		g := NewWithT(t)
		var m memory.Of[int]
		for i := range memory.Most + 10 {
			m.Put(key(strconv.Itoa(i)), i)
		}
		_, known := m.Get(key(strconv.Itoa(memory.Most + 9)))
		g.Expect(known).To(BeTrue())
		left := 0
		m.ForgetWhere(func(int) bool { left++; return false })
		g.Expect(left).To(Equal(memory.Most))
	})
	t.Run("When a full memory learns more of an object that it knows it should forget nobody", func(t *testing.T) {
		g := NewWithT(t)
		var m memory.Of[int]
		for i := range memory.Most {
			m.Put(key(strconv.Itoa(i)), i)
		}
		m.Put(key("0"), -1)
		for i := range memory.Most {
			_, known := m.Get(key(strconv.Itoa(i)))
			g.Expect(known).To(BeTrue(), "%d", i)
		}
	})
	t.Run("When many count at the same time no count should be lost", func(t *testing.T) {
		g := NewWithT(t)
		var m memory.Of[int]
		var all sync.WaitGroup
		for range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				for range 100 {
					m.Update(key("a"), func(n int) int { return n + 1 })
				}
			}()
		}
		all.Wait()
		n, _ := m.Get(key("a"))
		g.Expect(n).To(Equal(800))
	})
}
