package upgrade

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/version"
)

// of reads objects of one component.
func of(t *testing.T, docs ...string) rendered {
	t.Helper()
	out := rendered{"c": {}}
	for _, d := range docs {
		u := unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(d), &u.Object); err != nil {
			t.Fatal(err)
		}
		out["c"][strings.ToLower(u.GetKind())+"_"+u.GetName()+".yaml"] = u
	}
	return out
}

const deployment = `{kind: Deployment, metadata: {name: d}, spec: {replicas: 1, template: {metadata: {annotations: {hypershift.openshift.io/config-hash: a}}, spec: {containers: [{name: x, image: "i:1", args: [--a, --b=1]}, {name: side, image: "y:1"}]}}}}`

func TestCompare(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after []string
		want          []string
		restarts      []string
	}{
		"When nothing differs it should tell nothing": {[]string{deployment}, []string{deployment}, nil, nil},
		"When an image differs it should name container and pods": {[]string{deployment}, []string{strings.Replace(deployment, "i:1", "i:2", 1)},
			[]string{`Deployment d spec.template.spec.containers[x].image: "i:1" → "i:2"`}, []string{"Deployment d"}},
		"When arguments differ it should name them whatever their order": {[]string{deployment}, []string{strings.Replace(deployment, "--a, --b=1", "--b=2, --a", 1)},
			[]string{"Deployment d spec.template.spec.containers[x].args: removed, was --b=1", "Deployment d spec.template.spec.containers[x].args: added --b=2"}, []string{"Deployment d"}},
		"When the number of replicas differs it should keep pods": {[]string{deployment}, []string{strings.Replace(deployment, "replicas: 1", "replicas: 3", 1)},
			[]string{"Deployment d spec.replicas: 1 → 3"}, nil},
		"When a key has dots it should be in brackets": {[]string{deployment}, []string{strings.Replace(deployment, "config-hash: a", "config-hash: b", 1)},
			[]string{`Deployment d spec.template.metadata.annotations[hypershift.openshift.io/config-hash]: "a" → "b"`}, []string{"Deployment d"}},
		"When a container comes it should be shown": {[]string{deployment}, []string{strings.Replace(deployment, `{name: side, image: "y:1"}`, `{name: side, image: "y:1"}, {name: z}`, 1)},
			[]string{"Deployment d spec.template.spec.containers[z]: added name: z"}, []string{"Deployment d"}},
		"When objects come and go it should say so": {[]string{`{kind: Service, metadata: {name: old}}`}, []string{`{kind: Service, metadata: {name: new}}`},
			[]string{"Service new would be made", "Service old would go"}, nil},
		"When a file of a ConfigMap differs it should show the first line that does": {[]string{`{kind: ConfigMap, metadata: {name: f}, data: {x.json: "a\nb\nc\n"}}`},
			[]string{`{kind: ConfigMap, metadata: {name: f}, data: {x.json: "a\nB\nC\n"}}`}, []string{`ConfigMap f data[x.json] line 2: "b" → "B"`}, nil},
		"When a Secret differs it should hide its values": {[]string{`{kind: Secret, metadata: {name: s}, data: {key: aHVudGVyMg==}}`},
			[]string{`{kind: Secret, metadata: {name: s}, data: {key: b3RoZXI=}}`}, []string{"Secret s data.key: (hidden) → (hidden)"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			changes, restarts := compare(of(t, tc.before...), of(t, tc.after...))
			var got []string
			for _, c := range changes {
				got = append(got, c.String())
			}
			g.Expect(got).To(Equal(tc.want))
			g.Expect(restarts).To(Equal(tc.restarts))
		})
	}
}

func TestVerdict(t *testing.T) {
	stays := Cluster{Pools: []Pool{{Name: "a", Machines: 3}}, Restarts: []string{"Deployment d"}}
	for name, tc := range map[string]struct {
		report Report
		code   int
	}{
		"When pods restart and machines stay it should be 0":        {Report{Clusters: []Cluster{stays}}, 0},
		"When machines would be replaced it should be 2":            {Report{Clusters: []Cluster{{Pools: []Pool{{Rolls: true, Held: true, Machines: 3}}}}}, exit.Held},
		"When an API in use goes it should be 2":                    {Report{Clusters: []Cluster{{Removed: []string{"x"}}}}, exit.Held},
		"When a release is refused it should be 2":                  {Report{Clusters: []Cluster{{Refused: "too far"}}}, exit.Held},
		"When objects are stored in what goes it should be 2":       {Report{Definitions: []string{"x"}}, exit.Held},
		"When versions are too far apart it should be 3":            {Report{Skew: &version.Skew{Verdict: version.Unsupported}, Definitions: []string{"x"}}, exit.Skew},
		"When something can't be told it should be 1":               {Report{Clusters: []Cluster{{Problems: []string{"x"}}}}, exit.Failed},
		"When machines of a pool can't be judged it should be 1":    {Report{Clusters: []Cluster{{Pools: []Pool{{Unknown: "x"}}}}}, exit.Failed},
		"When one speaks against it and one is unknown it should 2": {Report{Clusters: []Cluster{{Problems: []string{"x"}, Refused: "no"}}}, exit.Held},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(exit.Code(tc.report.verdict())).To(Equal(tc.code)) })
	}
}

func TestRemovedIn(t *testing.T) {
	const metrics = `# TYPE apiserver_requested_deprecated_apis gauge
apiserver_requested_deprecated_apis{group="batch",removed_release="1.37",resource="cronjobs",subresource="",version="v1beta1"} 1
apiserver_requested_deprecated_apis{group="",removed_release="1.36",resource="things",subresource="",version="v1alpha1"} 1
apiserver_requested_deprecated_apis{group="x",removed_release="",resource="endpoints",subresource="",version="v1"} 1
apiserver_request_total{code="200"} 12
`
	for name, tc := range map[string]struct {
		to   string
		want []string
	}{
		"When the release has them all it should name none":   {"1.35.9", nil},
		"When the release lacks one it should name it":        {"1.36.0", []string{"things of v1alpha1, removed in 1.36"}},
		"When the release lacks several it should name them":  {"1.37.1", []string{"cronjobs of batch/v1beta1, removed in 1.37", "things of v1alpha1, removed in 1.36"}},
		"When the release is far ahead it should name theirs": {"1.40.0", []string{"cronjobs of batch/v1beta1, removed in 1.37", "things of v1alpha1, removed in 1.36"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := removedIn(strings.NewReader(metrics), tc.to)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestMissingVersions(t *testing.T) {
	crd := func(stored []string, defined ...string) *apiextensionsv1.CustomResourceDefinition {
		out := &apiextensionsv1.CustomResourceDefinition{}
		out.Name, out.Status.StoredVersions = "things.example.com", stored
		for _, v := range defined {
			out.Spec.Versions = append(out.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: v})
		}
		return out
	}
	t.Run("When a stored version is not defined any more it should be named", func(t *testing.T) {
		NewWithT(t).Expect(missingVersions(crd([]string{"v1alpha1", "v1"}), crd(nil, "v1"))).To(Equal([]string{"version v1alpha1 of things.example.com, in which objects are stored"}))
	})
	t.Run("When a definition is not ours or has them all it should be silent", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(missingVersions(crd([]string{"v1"}), nil)).To(BeEmpty())
		g.Expect(missingVersions(crd([]string{"v1"}), crd(nil, "v1", "v2"))).To(BeEmpty())
	})
}
