package rollout

import (
	"bytes"
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/exit"
)

// ended is how a command ended.
type ended struct {
	out string // what it printed as its result
	err error
}

// status starts "rollout status". What it says meanwhile goes to said.
func (w *tour) status(said *gbytes.Buffer, args ...string) <-chan ended {
	done := make(chan ended, 1)
	go func() {
		cmd := Command()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(said)
		cmd.SetArgs(append([]string{"status", "hostedclusterpackage/" + w.ns, "--kubeconfig", w.kubeconfig}, args...))
		err := cmd.ExecuteContext(w.Context())
		done <- ended{out.String(), err}
	}()
	return done
}

// TestStatusInAFormat is one test with ordered steps. A format says how the result is printed, not whether the command waits, nor how it ends.
func TestStatusInAFormat(t *testing.T) {
	w := newTour(t)
	w.apply("v1")
	w.work("")
	end := func(g Gomega, done <-chan ended) ended {
		var e ended
		g.Eventually(done).Should(Receive(&e))
		return e
	}
	status := func(g Gomega, out string) packagesv1.HostedClusterPackageStatus {
		var s packagesv1.HostedClusterPackageStatus
		g.Expect(yaml.UnmarshalStrict([]byte(out), &s)).To(Succeed(), "one document and nothing else")
		return s
	}
	t.Run("When the rollout is complete it should print the status and say so", func(t *testing.T) {
		g := NewWithT(t)
		said := gbytes.NewBuffer()
		e := end(g, w.status(said, "-o", "json"))
		g.Expect(e.err).NotTo(HaveOccurred())
		g.Expect(json.Valid([]byte(e.out))).To(BeTrue())
		s := status(g, e.out)
		g.Expect(s.UpdatedPackages).To(Equal(s.TotalPackages))
		g.Expect(said).To(gbytes.Say("complete: "))
	})
	w.apply("v2")
	w.work("v2")
	t.Run("When it is only to look it should print the status and succeed", func(t *testing.T) {
		g := NewWithT(t)
		e := end(g, w.status(gbytes.NewBuffer(), "-o", "yaml", "--watch=false"))
		g.Expect(e.err).NotTo(HaveOccurred())
		s := status(g, e.out)
		g.Expect(s.UpdatedPackages).To(BeNumerically("<", s.TotalPackages))
	})
	t.Run("When the time is up it should print the status that it saw last", func(t *testing.T) {
		g := NewWithT(t)
		e := end(g, w.status(gbytes.NewBuffer(), "-o", "json", "--timeout", "10ms"))
		g.Expect(exit.Code(e.err)).To(Equal(exit.TimedOut))
		s := status(g, e.out)
		g.Expect(s.UpdatedPackages).To(BeNumerically("<", s.TotalPackages))
	})
	t.Run("When the rollout goes on it should wait for its end", func(t *testing.T) {
		g := NewWithT(t)
		said := gbytes.NewBuffer()
		done := w.status(said, "-o", "json")
		g.Eventually(said).Should(gbytes.Say("waiting for rollout of "))
		g.Expect(done).NotTo(Receive())
		w.apply("v3")
		w.work("")
		e := end(g, done)
		g.Expect(e.err).NotTo(HaveOccurred())
		s := status(g, e.out)
		g.Expect(s.UpdatedPackages).To(Equal(s.TotalPackages))
	})
	t.Run("When it is held it should print the status and exit as without a format", func(t *testing.T) {
		g := NewWithT(t)
		_, err := w.run("pause", "hostedclusterpackage/"+w.ns)
		g.Expect(err).NotTo(HaveOccurred())
		w.apply("v4")
		w.work("")
		e := end(g, w.status(gbytes.NewBuffer(), "-o", "yaml"))
		g.Expect(exit.Code(e.err)).To(Equal(exit.Held))
		g.Expect(e.err).To(MatchError(ContainSubstring("held: it is paused")))
		status(g, e.out)
		_, err = w.run("resume", "hostedclusterpackage/"+w.ns)
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When it is deleted it should print nothing and say so", func(t *testing.T) {
		g := NewWithT(t)
		said := gbytes.NewBuffer()
		done := w.status(said, "-o", "json")
		g.Eventually(said).Should(gbytes.Say("waiting for rollout of "))
		p := &packagesv1.HostedClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}
		g.Expect(w.c.Get(t.Context(), client.ObjectKey{Name: w.ns}, p)).To(Succeed())
		p.Finalizers = nil
		g.Expect(w.c.Update(t.Context(), p)).To(Succeed())
		g.Expect(w.c.Delete(t.Context(), p)).To(Succeed())
		e := end(g, done)
		g.Expect(exit.Code(e.err)).To(Equal(exit.NotFound))
		g.Expect(e.out).To(BeEmpty())
	})
}
