package privatelink

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestRotatedKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	r := &Services{Region: "eu-west-1", Open: OpenProvider, Credentials: file}
	t.Run("When access keys are rotated another client should take the new ones", func(t *testing.T) {
		g := NewWithT(t)
		for _, key := range []string{"OLD", "NEW"} {
			g.Expect(os.WriteFile(file, fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = x\n", key), 0o600)).To(Succeed())
			p, err := r.open(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			keys, err := p.ec2.Options().Credentials.Retrieve(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(keys.AccessKeyID).To(Equal(key))
			g.Expect(r.open(t.Context())).To(BeIdenticalTo(p), "it is kept as long as the file stays as it is")
		}
	})
}
