package capi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/hostedcluster/migration"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/testenv"
)

// TestMigrateAsk calls the command as people do; what an operator makes of the annotations is tested where it is.
func TestMigrateAsk(t *testing.T) {
	env, private, standard := management(t)
	g, ctx := NewWithT(t), t.Context()
	scheme := runtime.NewScheme()
	g.Expect(errors.Join(clientgoscheme.AddToScheme(scheme), hyperv1.AddToScheme(scheme))).To(Succeed())
	c := env.Client(t, scheme)
	const fails = hyperv1.PrivateCAPIMigrationFailedAnnotation
	for ns, annotations := range map[string]map[string]string{
		private:  {hyperv1.PrivateCAPITypesAnnotation: "true"},
		standard: {hyperv1.HostedClusterScopeAnnotation: hyperv1.LegacyScope, fails: string(migration.ReasonScaleDown)},
	} {
		hc := testenv.HostedCluster(ns, "demo")
		hc.Annotations = annotations
		g.Expect(c.Create(ctx, hc)).To(Succeed())
	}
	migrate := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := call(ctx, t, env, &out, append([]string{"migrate", "--operator-namespace", standard}, args...)...)
		return out.String(), err
	}
	annotations := func(g Gomega, o client.Object, ns, name string) map[string]string {
		g.Expect(c.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, o)).To(Succeed())
		return o.GetAnnotations()
	}
	settings := func(g Gomega) migration.Settings {
		s, err := migration.ParseSettings(annotations(g, &corev1.ConfigMap{}, standard, migration.StateName))
		g.Expect(err).NotTo(HaveOccurred())
		return s
	}
	t.Run("When the operator was installed without private types asking for all should say how to install", func(t *testing.T) {
		_, err := migrate("--all")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("there is no ConfigMap " + standard + "/private-capi-state: install with --private-capi-types")))
	})
	g.Expect(c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: standard, Name: migration.StateName}})).To(Succeed())
	for _, tc := range []struct {
		flag, says string
		want       migration.Settings
	}{
		{"--pause", "no move will begin\n", migration.Settings{Limit: 1, Paused: true}},
		{"--all", "all hosted clusters will be moved, one after the other\n", migration.Settings{Limit: 1, Paused: true, Automatic: true}},
		{"--resume", "moves may begin again\n", migration.Settings{Limit: 1, Automatic: true}},
		{"--resume", "moves may begin again\n", migration.Settings{Limit: 1, Automatic: true}},
	} {
		t.Run("When all hosted clusters are meant the operator should find what was asked for: "+tc.flag, func(t *testing.T) {
			g := NewWithT(t)
			hc := &hyperv1.HostedCluster{}
			before := annotations(g, hc, standard, "demo")
			g.Expect(migrate(tc.flag)).To(Equal(tc.says))
			g.Expect(settings(g)).To(Equal(tc.want))
			g.Expect(annotations(g, hc, standard, "demo")).To(Equal(before))
		})
	}
	for flags, says := range map[string]string{
		"":                    "name a hosted cluster, or say --all",
		"--all demo":          "leave the name out",
		"--pause demo":        "leave the name out",
		"--all --pause":       "none of the others can be",
		"--resume --rollback": "none of the others can be",
		"--rollback":          "name a hosted cluster",
		"nobody":              `reading HostedCluster clusters/nobody: `,
	} {
		t.Run("When it is not clear what is meant nothing should be changed: "+flags, func(t *testing.T) {
			g := NewWithT(t)
			before := settings(g)
			_, err := migrate(strings.Fields(flags)...)
			g.Expect(err).To(MatchError(ContainSubstring(says)))
			g.Expect(settings(g)).To(Equal(before))
		})
	}
	t.Run("When one is named that failed it should be asked for again", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(migrate("-n", standard, "demo")).To(HavePrefix("asked for the move of HostedCluster " + standard + "/demo to private types"))
		g.Expect(annotations(g, &hyperv1.HostedCluster{}, standard, "demo")).To(And(HaveKeyWithValue(hyperv1.PrivateCAPIMigrateAnnotation, "true"), Not(HaveKey(fails))))
	})
	t.Run("When it is where it should be nothing should be asked for", func(t *testing.T) {
		g := NewWithT(t)
		for ns, args := range map[string][]string{private: {"demo"}, standard: {"--rollback", "demo"}} {
			hc := &hyperv1.HostedCluster{}
			before := annotations(g, hc, ns, "demo")
			g.Expect(migrate(append(args, "-n", ns)...)).To(MatchRegexp("has (private|standard) types already\n$"))
			g.Expect(annotations(g, hc, ns, "demo")).To(Equal(before))
		}
	})
	t.Run("When a private one is asked back the operator should be told, and status should show both", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(migrate("--rollback", "-n", private, "demo")).To(ContainSubstring("to standard types"))
		g.Expect(annotations(g, &hyperv1.HostedCluster{}, private, "demo")).To(HaveKeyWithValue(hyperv1.PrivateCAPIRollbackAnnotation, "true"))
		var out bytes.Buffer
		g.Expect(call(ctx, t, env, &out, "migrate", "status", "-o", "json")).To(Succeed())
		var list []Status
		g.Expect(json.Unmarshal(out.Bytes(), &list)).To(Succeed(), "%s", &out)
		g.Expect(list).To(ContainElements(Status{HostedCluster: private + "/demo", Types: "Private", State: "Asked"}, Status{HostedCluster: standard + "/demo", Types: "Standard", State: "Asked"}))
		// Which of the two would be the first depends on the names of their namespaces.
		asked := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: private, Name: "demo"}}
		g.Expect(c.Patch(ctx, asked, patch.Annotation(hyperv1.PrivateCAPIRollbackAnnotation, nil))).To(Succeed())
	})
	t.Run("When the operator has looked at it status should tell what is held from what waits, and --watch end with 2", func(t *testing.T) {
		g := NewWithT(t)
		disco, err := discovery.NewDiscoveryClientForConfig(env.Config)
		g.Expect(err).NotTo(HaveOccurred())
		key := client.ObjectKey{Namespace: standard, Name: "demo"}
		_, err = (&migration.Controller{Direct: c, Cached: c, Discovery: disco, Clock: clock.RealClock{}, Namespace: standard}).Reconcile(ctx, ctrl.Request{NamespacedName: key})
		g.Expect(err).NotTo(HaveOccurred())
		var out bytes.Buffer
		o := &migrateOptions{namespace: standard, operator: standard, watch: true, every: time.Millisecond}
		ends, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		err = o.follow(ends, c, &out, io.Discard, output.JSON, "demo")
		g.Expect(exit.Code(err)).To(Equal(exit.Held))
		g.Expect(err).To(MatchError(ContainSubstring(standard + "/demo (Held)")))
		var list []Status
		g.Expect(json.Unmarshal(out.Bytes(), &list)).To(Succeed(), "%s", &out)
		g.Expect(list).To(HaveExactElements(And(HaveField("State", stateHeld), HaveField("Message", HavePrefix(migration.Refused)))))
	})
	t.Run("When something speaks against a move a dry run should say so, end with 2 and change nothing", func(t *testing.T) {
		g := NewWithT(t)
		hc := &hyperv1.HostedCluster{}
		before := annotations(g, hc, standard, "demo")
		version := hc.ResourceVersion
		err := call(ctx, t, env, io.Discard, "migrate", "--operator-namespace", standard, "--dry-run", "-n", standard, "demo")
		var ended *ExitError
		g.Expect(errors.As(err, &ended)).To(BeTrue(), "%v", err)
		g.Expect(ended.Code).To(Equal(ExitRefused))
		g.Expect(annotations(g, hc, standard, "demo")).To(Equal(before))
		g.Expect(hc.ResourceVersion).To(Equal(version))
	})
}
