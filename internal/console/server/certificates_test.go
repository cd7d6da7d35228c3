package server_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/consoletest"
)

func TestCertificates(t *testing.T) {
	env, c := fleet(t)
	w := picture(t, c)
	srv := serve(t, w, access.NewTokens(c, env.Config, clock.RealClock{}))
	all := person(t, c, "certificates-all", everywhere("certificates-all", readAll))
	staging := person(t, c, "certificates-staging", inNamespaces("certificates-staging", "staging", "staging-orders"))
	// All but Secrets, as people have who look after a fleet and not its keys.
	without := person(t, c, "certificates-without", everywhere("certificates-without", []rbacv1.PolicyRule{{APIGroups: []string{"hypershift.openshift.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}}))
	noKeys := func(g Gomega, body string) {
		g.Expect(body).NotTo(Or(ContainSubstring("private key"), ContainSubstring("BEGIN"), ContainSubstring(base64.StdEncoding.EncodeToString([]byte(consoletest.KeyMaterial)))))
	}
	t.Run("When who may list Secrets asks for those of a hosted cluster it should list them without keys, the first to end at the beginning", func(t *testing.T) {
		g := NewWithT(t)
		resp, body := ask(t, srv, "/api/v1/hc/production/payments-eu/certificates", all) //nolint:bodyclose // because ask closes it
		g.Expect(resp.StatusCode).To(Equal(http.StatusOK), body)
		var out struct {
			Rows []struct {
				Secret, Kind, Keeper string
				Soon                 bool
			}
			Command string
		}
		g.Expect(json.Unmarshal([]byte(body), &out)).To(Succeed())
		var names []string
		soon := map[string]bool{}
		for _, r := range out.Rows {
			names = append(names, r.Secret)
			soon[r.Secret] = r.Soon
		}
		g.Expect(names).To(Equal([]string{"kas-bootstrap-client", "ingress-crt", "etcd-server-tls", "root-ca"}))
		g.Expect(soon).To(Equal(map[string]bool{"kas-bootstrap-client": false, "ingress-crt": true, "etcd-server-tls": true, "root-ca": false}), "what lives for a week only always ends soon")
		g.Expect(out.Command).To(Equal("hypershift get certificates payments-eu -n production"))
		noKeys(g, body)
	})
	type found struct {
		Checked, Left, Refused, Clusters int
		Rows                             []struct{ Ns, Name, Secret string }
	}
	sweep := func(g Gomega, token string) (out found) {
		for {
			resp, body := ask(t, srv, "/api/v1/certificates", token) //nolint:bodyclose // because ask closes it
			if resp.StatusCode == http.StatusTooManyRequests {
				continue
			}
			g.Expect(resp.StatusCode).To(Equal(http.StatusOK), body)
			noKeys(g, body)
			out = found{}
			g.Expect(json.Unmarshal([]byte(body), &out)).To(Succeed())
			if out.Left == 0 {
				return out
			}
		}
	}
	t.Run("When who may list Secrets asks for the fleet's it should name those that end soon", func(t *testing.T) {
		g := NewWithT(t)
		out := sweep(g, all)
		g.Expect(out.Checked).To(Equal(21))
		g.Expect(out.Clusters).To(Equal(1))
		g.Expect(out.Rows).To(HaveLen(2))
		g.Expect(out.Rows[0].Secret).To(Equal("ingress-crt"))
	})
	t.Run("When who may see one namespace asks it should tell of that one alone", func(t *testing.T) {
		g := NewWithT(t)
		out := sweep(g, staging)
		g.Expect(out.Checked).To(Equal(1))
		g.Expect(out.Refused).To(Equal(5))
		g.Expect(out.Rows).To(BeEmpty())
	})
	t.Run("When somebody may list no Secrets it should say of how many nothing is known", func(t *testing.T) {
		g := NewWithT(t)
		out := sweep(g, without)
		g.Expect(out.Checked).To(BeZero())
		g.Expect(out.Refused).To(Equal(21))
		resp, body := ask(t, srv, "/api/v1/hc/production/payments-eu/certificates", without)
		g.Expect(resp.StatusCode).To(Equal(http.StatusForbidden), body)
	})
}
