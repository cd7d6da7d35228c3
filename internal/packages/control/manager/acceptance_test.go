package manager_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	. "hcp.internal/platform/internal/packages/packagestest"
)

// told lists the events about an object, as type, reason and note.
func told(ctx context.Context, w *World, ns, kind, name string) []string {
	list := &eventsv1.EventList{}
	if err := w.Client.List(ctx, list, client.InNamespace(ns)); err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, e := range list.Items {
		if e.Regarding.Kind == kind && e.Regarding.Name == name {
			out = append(out, e.Type+" "+e.Reason+" "+e.Note)
		}
	}
	return out
}

func TestRecoversFromCollision(t *testing.T) {
	t.Run("When the object in the way goes it should roll out by itself within 30 s, and events should tell", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		theirs := configMap(ns, "cm")
		g.Expect(w.Client.Create(t.Context(), theirs)).To(Succeed())
		os := ObjectSet(ns, "set", 1, Phase("a", ConfigMap("cm", nil), ConfigMap("other", nil)))
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, HasCondition(os, &os.Status.Conditions, "Available", "False", "CollisionDetected", ""))
		g.Eventually(func() []string { return told(t.Context(), w, ns, "ObjectSet", "set") }, Timeout).Should(ContainElement(
			HavePrefix("Warning CollisionDetected object %s/cm kind:ConfigMap: refusing adoption", ns)))
		g.Expect(w.Client.Delete(t.Context(), theirs)).To(Succeed())
		w.Eventually(t, os, available(os))
	})
}

func TestEvents(t *testing.T) {
	t.Run("When a deployment rolls out and is paused events should tell, about the kind that it is", func(t *testing.T) {
		t.Parallel()
		for _, cluster := range []bool{false, true} {
			g, w := NewWithT(t), Start(t)
			ns := w.Namespace(t)
			od, kind, events := client.Object(ObjectDeployment(ns, "web", Phase("a", ConfigMap("cm", nil)))), "ObjectDeployment", ns
			if cluster {
				// Events about what has no namespace are in the default one.
				od, kind, events = (*v1alpha1.ClusterObjectDeployment)(ObjectDeployment("", ns, Phase("a", inNamespace(ns, ConfigMap("cm", nil))))), "ClusterObjectDeployment", "default"
			}
			g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
			of := func() []string { return told(t.Context(), w, events, kind, od.GetName()) }
			g.Eventually(of, Timeout).Should(ConsistOf(MatchRegexp(`^Normal Progressing Rolling out revision 1, (Cluster)?ObjectSet %s-\w+\.$`, od.GetName())))
			g.Expect(w.Client.Patch(t.Context(), od, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":true}}`)))).To(Succeed())
			g.Eventually(of, Timeout).Should(ContainElement("Normal Paused Nothing is written until it is resumed."))
			g.Expect(w.Client.Patch(t.Context(), od, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":false}}`)))).To(Succeed())
			g.Eventually(of, Timeout).Should(ContainElement("Normal Resumed Objects are written again."))
		}
	})
}

func TestTemplateMirrorsConditions(t *testing.T) {
	t.Run("When a template makes a Deployment its conditions should be the template's", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		ot := &v1alpha1.ClusterObjectTemplate{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: v1alpha1.ObjectTemplateSpec{
			Template: fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: made, namespace: %s}, spec: {replicas: 0,
  selector: {matchLabels: {app: made}}, template: {metadata: {labels: {app: made}}, spec: {containers: [{name: c, image: {{ .config.image }}}]}}}}`, ns),
			Sources: []v1alpha1.ObjectTemplateSource{{
				APIVersion: "v1", Kind: "ConfigMap", Name: "source", Namespace: ns, Items: []v1alpha1.ObjectTemplateSourceItem{{Key: "data.image", Destination: ".image"}},
			}},
		}}
		source := configMap(ns, "source")
		source.Data = map[string]string{"image": "registry.example/app"}
		g.Expect(w.Client.Create(t.Context(), source)).To(Succeed())
		g.Expect(w.Client.Create(t.Context(), ot)).To(Succeed())
		made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "made"}}
		w.Eventually(t, made, func() error { return nil })
		g.Expect(made.Spec.Template.Spec.Containers[0].Image).To(Equal("registry.example/app"))
		// Conditions of a Deployment say nothing of a generation; its status does.
		w.Eventually(t, made, func() error {
			made.Status.ObservedGeneration = made.Generation
			made.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Available", Status: "True", Reason: "MinimumReplicasAvailable", Message: "fine"}}
			return w.Client.Status().Update(t.Context(), made)
		})
		w.Eventually(t, ot, HasCondition(ot, &ot.Status.Conditions, "Available", "True", "MinimumReplicasAvailable", "fine"))
		g.Expect(w.Client.Delete(t.Context(), ot)).To(Succeed())
		w.Gone(t, made)
	})
}

func tables() *runtime.Scheme {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, v1alpha1.GroupVersion)
	_ = metav1.AddMetaToScheme(scheme) // cannot fail on an empty scheme
	return scheme
}

// TestColumns asks the API server what kubectl get shows.
func TestColumns(t *testing.T) {
	w := Serve(t)
	for resource, want := range map[string]string{
		"packages": "Name Available Progressing Unpacked Invalid Revision Age", "clusterpackages": "Name Available Progressing Unpacked Invalid Revision Age",
		"objectdeployments":        "Name Available Progressing Paused Revision Age",
		"clusterobjectdeployments": "Name Available Revision Progressing Paused Age",
		"objectsets":               "Name Available Paused Archived Succeeded InTransition Revision Age",
		"clusterobjectsets":        "Name Available Paused Archived Succeeded InTransition Revision Age",
		"objectsetphases":          "Name Available Paused Revision Age", "clusterobjectsetphases": "Name Available Paused Revision Age",
		"objectslices": "Name Age", "clusterobjectslices": "Name Age",
		"objecttemplates": "Name Invalid", "clusterobjecttemplates": "Name Invalid",
	} {
		t.Run(resource, func(t *testing.T) {
			g := NewWithT(t)
			httpClient, err := rest.HTTPClientFor(w.Env.Config)
			g.Expect(err).NotTo(HaveOccurred())
			cfg := rest.CopyConfig(w.Env.Config)
			cfg.GroupVersion, cfg.APIPath, cfg.NegotiatedSerializer = &v1alpha1.GroupVersion, "/apis", serializer.NewCodecFactory(tables()).WithoutConversion()
			c, err := rest.RESTClientForConfigAndClient(cfg, httpClient)
			g.Expect(err).NotTo(HaveOccurred())
			table := &metav1.Table{}
			err = c.Get().Resource(resource).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Into(table)
			g.Expect(err).NotTo(HaveOccurred())
			var names []string
			for _, column := range table.ColumnDefinitions {
				names = append(names, column.Name)
			}
			g.Expect(strings.Join(names, " ")).To(Equal(want))
		})
	}
}

func TestAbortedRollout(t *testing.T) {
	t.Run("When a third revision comes while the second is broken it should take over from both", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		template := func(v, broken string) []v1alpha1.ObjectSetTemplatePhase {
			return []v1alpha1.ObjectSetTemplatePhase{
				Phase("a", ConfigMap("early", map[string]any{"v": v}, "name", "early"), ConfigMap("gate", nil, "name", broken)),
				Phase("b", ConfigMap("late", map[string]any{"v": v}, "name", "late")),
			}
		}
		od := ObjectDeployment(ns, "web", template("1", "gate")...)
		od.Spec.Template.Spec.AvailabilityProbes = []v1alpha1.ObjectSetProbe{Probe("ConfigMap", ".metadata.name", ".metadata.annotations.name")}
		g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
		w.Eventually(t, od, latest(od))
		setTemplate(t, w, od, template("2", "broken")...)
		early, late := configMap(ns, "early"), configMap(ns, "late")
		w.Eventually(t, early, func() error {
			if early.Data["v"] != "2" {
				return fmt.Errorf("value is %s", early.Data["v"])
			}
			return nil
		})
		g.Expect(get(w, t, late)).To(Succeed())
		g.Expect(late.Data).To(HaveKeyWithValue("v", "1"), "phase b stays with revision 1")
		setTemplate(t, w, od, template("3", "gate")...)
		w.Eventually(t, od, func() error {
			if od.Status.Revision != 3 {
				return fmt.Errorf("at revision %d", od.Status.Revision)
			}
			return latest(od)()
		})
		for _, cm := range []client.Object{early, late} {
			w.Eventually(t, cm, func() error {
				if n := len(cm.GetOwnerReferences()); n != 1 {
					return fmt.Errorf("%d owners", n)
				}
				return nil
			})
			g.Expect(cm.GetAnnotations()).To(HaveKeyWithValue(v1alpha1.RevisionAnnotation, "3"))
		}
		for _, os := range revisions(t, w, ns) {
			if os.Spec.Revision < 3 {
				w.Eventually(t, &os, HasCondition(&os, &os.Status.Conditions, "Archived", "True", "Archived", ""))
				g.Expect(os.Spec.Phases[0].Objects).NotTo(BeEmpty(), "history has what it was")
			}
		}
	})
}
