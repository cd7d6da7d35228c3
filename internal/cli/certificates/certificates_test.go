package certificates

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/pki"
)

var (
	demo = client.ObjectKey{Namespace: "clusters", Name: "demo"}
	noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
)

func world(t *testing.T, annotations map[string]string) client.Client {
	t.Helper()
	plan := pki.PlanFor(pki.Spec{Namespace: "clusters-demo", Name: "demo", InfraID: "demo-x"}, pki.Observed{}, pki.Source{Now: noon, Keys: pki.NewKey, Rand: rand.Reader})
	builder := fake.NewClientBuilder().WithScheme(connect.Scheme()).WithObjects(
		&hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: demo.Name, Annotations: annotations}})
	for _, wave := range [][]pki.Write{plan.Authorities, plan.Leaves, plan.Copies} {
		for _, w := range wave {
			if w.Secret != nil {
				builder.WithObjects(w.Secret)
			}
		}
	}
	return builder.Build()
}

func TestList(t *testing.T) {
	t.Run("When a control plane has certificates it should list them without keys, the first to end at the top", func(t *testing.T) {
		g := NewWithT(t)
		report, err := List(t.Context(), world(t, nil), demo)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(report.Certificates)).To(BeNumerically(">", 20))
		raw, err := json.Marshal(report)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).NotTo(ContainSubstring("PRIVATE"))
		var out bytes.Buffer
		g.Expect(table(&out, false, noon.Add(24*time.Hour), report)).To(Succeed())
		g.Expect(out.String()).To(MatchRegexp(`SECRET +KEY +KIND +SUBJECT +ISSUER +ENDS IN +KEPT BY +NEXT\nkas-bootstrap-client +tls.crt +Leaf +.* +5d.* +control-plane-operator +renewed 2026-11-06\n`))
		g.Expect(out.String()).To(MatchRegexp(`root-ca +ca.crt +Authority +"root-ca" +"root-ca" +9y.* +control-plane-operator +prepared 2034-`))
	})
	t.Run("When no cluster is named it should list those of all, each with its cluster", func(t *testing.T) {
		g := NewWithT(t)
		reports, err := listAll(t.Context(), world(t, nil), "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(reports).To(HaveLen(1))
		other := Report{Cluster: "clusters/other", Certificates: []pki.Certificate{{Secret: "x", NotAfter: noon.Add(48 * time.Hour)}}}
		var out bytes.Buffer
		g.Expect(table(&out, true, noon.Add(24*time.Hour), append(reports, other)...)).To(Succeed())
		g.Expect(out.String()).To(MatchRegexp(`CLUSTER +SECRET .*\nclusters/other +x .* 24h .*\n` + demo.String() + ` +kas-bootstrap-client `))
		reports, err = listAll(t.Context(), world(t, nil), "elsewhere")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(reports).To(BeEmpty())
	})
	t.Run("When names are asked for each Secret should be there once", func(t *testing.T) {
		g := NewWithT(t)
		var out bytes.Buffer
		g.Expect(printNames(&out, Report{Certificates: []pki.Certificate{{Secret: "x", Key: "a"}, {Secret: "y"}, {Secret: "x", Key: "b"}}}, Report{Certificates: []pki.Certificate{{Secret: "x"}}})).To(Succeed())
		g.Expect(out.String()).To(Equal("secret/x\nsecret/y\nsecret/x\n"))
	})
	t.Run("When there is no such cluster it should say so", func(t *testing.T) {
		g := NewWithT(t)
		_, err := List(t.Context(), world(t, nil), client.ObjectKey{Namespace: "clusters", Name: "other"})
		g.Expect(err).To(MatchError(ContainSubstring("there is no HostedCluster clusters/other")))
		g.Expect(exit.Code(err)).To(Equal(exit.NotFound))
	})
}

func TestRotate(t *testing.T) {
	t.Run("When all authorities are to be replaced it should note the time on the HostedCluster", func(t *testing.T) {
		g := NewWithT(t)
		c := world(t, nil)
		_, err := rotate(t.Context(), c, demo, rotation{}, noon)
		g.Expect(err).NotTo(HaveOccurred())
		hc := &hyperv1.HostedCluster{}
		g.Expect(c.Get(t.Context(), demo, hc)).To(Succeed())
		g.Expect(hc.Annotations).To(HaveKeyWithValue(pki.RotateBeforeAnnotation, "2026-11-01T12:00:00Z"))
		g.Expect(hc.Annotations).NotTo(HaveKey(pki.RevokeBeforeAnnotation))
	})
	t.Run("When old authorities are revoked it should note when their replacement was asked for, as their successors are not meant", func(t *testing.T) {
		g := NewWithT(t)
		c := world(t, map[string]string{pki.RotateBeforeAnnotation: "2026-11-01T12:00:00Z"})
		said, err := rotate(t.Context(), c, demo, rotation{revoke: true}, noon.Add(3*time.Hour))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).To(ContainSubstring("made before 2026-11-01T12:00:00Z, when their replacement was asked for, are trusted no more"))
		hc := &hyperv1.HostedCluster{}
		g.Expect(c.Get(t.Context(), demo, hc)).To(Succeed())
		g.Expect(hc.Annotations).To(HaveKeyWithValue(pki.RevokeBeforeAnnotation, "2026-11-01T12:00:00Z"))
	})
	t.Run("When old authorities are revoked and no replacement was asked for it should say what to do first", func(t *testing.T) {
		for _, annotations := range []map[string]string{nil, {pki.RotateBeforeAnnotation: "yesterday"}} {
			g := NewWithT(t)
			c := world(t, annotations)
			_, err := rotate(t.Context(), c, demo, rotation{revoke: true}, noon)
			g.Expect(err).To(MatchError(And(ContainSubstring("run `hypershift rotate authorities demo -n clusters` first"), ContainSubstring("--step forget"))))
			hc := &hyperv1.HostedCluster{}
			g.Expect(c.Get(t.Context(), demo, hc)).To(Succeed())
			g.Expect(hc.Annotations).NotTo(HaveKey(pki.RevokeBeforeAnnotation))
		}
	})
	t.Run("When authorities are replaced again a time of revocation that is too late should be put right", func(t *testing.T) {
		for revoked, want := range map[string]string{"2026-10-01T15:00:00Z": "2026-10-01T12:00:00Z", "2026-10-01T12:00:00Z": "2026-10-01T12:00:00Z", "2026-09-01T12:00:00Z": "2026-09-01T12:00:00Z"} {
			g := NewWithT(t)
			c := world(t, map[string]string{pki.RotateBeforeAnnotation: "2026-10-01T12:00:00Z", pki.RevokeBeforeAnnotation: revoked})
			_, err := rotate(t.Context(), c, demo, rotation{}, noon)
			g.Expect(err).NotTo(HaveOccurred())
			hc := &hyperv1.HostedCluster{}
			g.Expect(c.Get(t.Context(), demo, hc)).To(Succeed())
			g.Expect(hc.Annotations).To(Equal(map[string]string{pki.RotateBeforeAnnotation: "2026-11-01T12:00:00Z", pki.RevokeBeforeAnnotation: want}))
		}
	})
	t.Run("When nodes are given up it should note the time, and ask for no new authorities", func(t *testing.T) {
		g := NewWithT(t)
		c := world(t, nil)
		r := rotation{force: true}
		g.Expect(r.check()).To(Succeed())
		said, err := rotate(t.Context(), c, demo, r, noon)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).To(ContainSubstring("recreate the nodes"))
		hc := &hyperv1.HostedCluster{}
		g.Expect(c.Get(t.Context(), demo, hc)).To(Succeed())
		g.Expect(hc.Annotations).To(Equal(map[string]string{pki.LeaveNodesAnnotation: "2026-11-01T12:00:00Z"}))
	})
	t.Run("When one authority takes a step it should be asked for on its Secret", func(t *testing.T) {
		g := NewWithT(t)
		c := world(t, nil)
		r := rotation{authority: pki.EtcdSigner}
		g.Expect(r.check()).To(Succeed())
		_, err := rotate(t.Context(), c, demo, r, noon)
		g.Expect(err).NotTo(HaveOccurred())
		s := &corev1.Secret{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "clusters-demo", Name: pki.EtcdSigner}, s)).To(Succeed())
		g.Expect(s.Annotations).To(HaveKeyWithValue(pki.RotationAnnotation, pki.RotationSwitch))
	})
	t.Run("When nothing would come of a step it should refuse it and say what would", func(t *testing.T) {
		for _, tc := range []struct {
			step, pending string
			prepared      bool
			former        int
			want          string
		}{
			{step: pki.RotationForget, want: "authority etcd-signer can't take step forget: no former authority is trusted: take step switch first"},
			{step: pki.RotationForget, prepared: true, want: "no former authority is trusted"},
			{step: pki.RotationForget, former: 1},
			{step: pki.RotationForget, former: 1, prepared: true},
			{step: pki.RotationForget, former: 1, pending: pki.RotationSwitch, want: "step switch, which was asked for, isn't done yet"},
			{step: pki.RotationForget, former: 10, pending: pki.RotationSwitch}, // else the switch waits for years
			{step: pki.RotationPrepare, former: 1},
			{step: pki.RotationPrepare, prepared: true, want: "it has a successor already: switch is the next step"},
			{step: pki.RotationPrepare, former: 10, want: "10 former authorities are still trusted: wait until the first of them ends at "},
			{step: pki.RotationSwitch, former: 1, prepared: true},
			{step: pki.RotationSwitch, former: 10, want: "end trust in all of them with step forget"},
			{step: pki.RotationSwitch, former: 10, prepared: true},
		} {
			g := NewWithT(t)
			c := world(t, nil)
			s := &corev1.Secret{}
			g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "clusters-demo", Name: pki.EtcdSigner}, s)).To(Succeed())
			if tc.prepared {
				s.Data["next.crt"], s.Data["next.key"] = s.Data["ca.crt"], s.Data["ca.key"]
			}
			if tc.former > 0 {
				s.Data["previous.crt"] = bytes.Repeat(s.Data["ca.crt"], tc.former)
			}
			if tc.pending != "" {
				s.Annotations = map[string]string{pki.RotationAnnotation: tc.pending}
			}
			g.Expect(c.Update(t.Context(), s)).To(Succeed())
			_, err := rotate(t.Context(), c, demo, rotation{authority: pki.EtcdSigner, step: tc.step}, noon)
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s), s)).To(Succeed())
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred(), "%+v", tc)
				g.Expect(s.Annotations).To(HaveKeyWithValue(pki.RotationAnnotation, tc.step), "%+v", tc)
				continue
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)), "%+v", tc)
			g.Expect(s.Annotations[pki.RotationAnnotation]).To(Equal(tc.pending), "%+v", tc)
		}
	})
	t.Run("When the control plane has no such authority it should say what lists them", func(t *testing.T) {
		g := NewWithT(t)
		_, err := rotate(t.Context(), world(t, nil), demo, rotation{authority: pki.IgnitionCA, step: pki.RotationSwitch}, noon)
		g.Expect(err).To(MatchError(ContainSubstring("get certificates demo -n clusters --authorities")))
		g.Expect(exit.Code(err)).To(Equal(exit.NotFound))
	})
	t.Run("When nobody makes certificates it should refuse", func(t *testing.T) {
		_, err := rotate(t.Context(), world(t, map[string]string{hyperv1.DisablePKIReconciliationAnnotation: "true"}), demo, rotation{}, noon)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no certificates are managed for it; remove it first")))
	})
	for what, c := range map[string]struct {
		rotation rotation
		want     string
	}{
		"When a step has no authority it should say how to write it":            {rotation{step: "switch"}, "--step is for one authority"},
		"When an authority is unknown it should name what lists them":           {rotation{authority: "kas-server-crt"}, "is none of a control plane's"},
		"When nodes are given up together with something else it should refuse": {rotation{force: true, revoke: true}, "stands alone"},
		"When a step is unknown it should list those there are":                 {rotation{authority: pki.RootCA, step: "now"}, "write prepare, switch or forget"},
		"When one authority is revoked it should say how that is asked for":     {rotation{authority: pki.RootCA, revoke: true}, "write --step forget"},
	} {
		t.Run(what, func(t *testing.T) {
			NewWithT(t).Expect(c.rotation.check()).To(MatchError(ContainSubstring(c.want)))
		})
	}
}
