package inplace

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestSharedObjects(t *testing.T) {
	t.Run("When a configuration is delivered it should be in a Secret and nowhere else", func(t *testing.T) {
		g := NewWithT(t)
		objects := sharedObjects("workers", "target", "the bootstrap credential and a pull secret")
		g.Expect(objects).To(HaveLen(2))
		g.Expect(objects[0]).To(BeAssignableToTypeOf(&corev1.Namespace{}))
		secret, ok := objects[1].(*corev1.Secret)
		g.Expect(ok).To(BeTrue())
		g.Expect(secret.Data).To(Equal(map[string][]byte{"config": []byte("the bootstrap credential and a pull secret"), "hash": []byte("target")}))

		pod := daemon("workers", "w-1", settings{image: "image"})
		for _, v := range pod.Spec.Volumes {
			g.Expect(v.ConfigMap).To(BeNil())
			if v.Secret != nil {
				g.Expect(v.Secret.SecretName).To(Equal(secret.Name))
				g.Expect(*v.Secret.DefaultMode & 0o077).To(BeZero())
			}
		}
	})
}
