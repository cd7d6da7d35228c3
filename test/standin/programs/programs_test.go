package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/test/standin/checks"
)

const golden = "../../../internal/cli/render/testdata/openshift/golden"

// container is one of the rendered ones.
type container struct {
	corev1.Container
	where string
}

func (c container) line() []string { return append(append([]string{}, c.Command...), c.Args...) }

// rendered are the containers of all golden files.
func rendered(t *testing.T) []container {
	t.Helper()
	var all []container
	files, err := filepath.Glob(golden + "/*/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var object struct {
			Kind string
			Spec struct {
				Template    corev1.PodTemplateSpec
				JobTemplate batchv1.JobTemplateSpec
			}
		}
		kind := strings.SplitN(filepath.Base(file), "_", 2)[0]
		if kind != "deployment" && kind != "statefulset" && kind != "job" && kind != "cronjob" {
			continue
		}
		if err := yaml.Unmarshal(raw, &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		pod := object.Spec.Template.Spec
		if kind == "cronjob" {
			pod = object.Spec.JobTemplate.Spec.Template.Spec
		}
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			all = append(all, container{c, strings.TrimPrefix(file, golden+"/") + " " + c.Name})
		}
	}
	return all
}

// expand puts in variables as the kubelet does.
func expand(c container) []string {
	var out []string
	for _, arg := range c.line() {
		for _, e := range c.Env {
			value := e.Value
			if e.ValueFrom != nil {
				value = "from-elsewhere"
			}
			arg = strings.ReplaceAll(arg, "$("+e.Name+")", value)
		}
		out = append(out, arg)
	}
	return out
}

func TestTable(t *testing.T) {
	g := NewWithT(t)
	entries := map[string]string{}
	for _, p := range Table {
		g.Expect(func() { checks.ParseFlags(p.Flags) }).NotTo(Panic(), p.Name)
		if p.Entry {
			g.Expect(entries).NotTo(HaveKey(p.Image), "When images have an entry point it should be one program")
			entries[p.Image] = p.Name
		}
		g.Expect(p.Config == "").To(Equal(p.Read == nil), "When %s has a configuration it should be read", p.Name)
	}
}

func TestRenderedContainers(t *testing.T) {
	found := map[string]bool{}
	for _, c := range rendered(t) {
		line := expand(c)
		if len(line) > 0 && !payloadProgram(c, line[0]) {
			continue
		}
		if len(line) == 0 || strings.HasPrefix(line[0], "-") || c.Command == nil {
			line = append([]string{EntryPoint}, line...)
		}
		t.Run("When "+c.where+" is called it should be known", func(t *testing.T) {
			g := NewWithT(t)
			p, args, err := Find(c.Image, line)
			g.Expect(err).NotTo(HaveOccurred())
			found[p.Name] = true
			_, err = p.Check(args)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.CheckEnv(func(name string) string {
				if name == "KUBERNETES_SERVICE_HOST" || name == "KUBERNETES_SERVICE_PORT" {
					return "given by the kubelet"
				}
				for _, e := range c.Env {
					if e.Name == name && e.ValueFrom != nil {
						return "from-elsewhere"
					} else if e.Name == name {
						return e.Value
					}
				}
				return ""
			})).To(Succeed())
		})
	}
	for _, p := range Table {
		if !found[p.Name] && !inScripts[p.Name] {
			t.Errorf("When a program is in the table some rendered container should call it: %s", p.Name)
		}
	}
}

// inScripts are programs that only scripts call.
var inScripts = map[string]bool{"render": true, "authentication-operator": true, "cluster-image-registry-operator": true, "azure-workload-identity-webhook": true}

// payloadProgram says whether a command is that of a program that the stand-in plays: not ours, not a shell, not Kubernetes.
func payloadProgram(c container, command string) bool {
	switch filepath.Base(command) {
	case "bash", "sh", "cp", "kubectl", "control-plane-operator", "control-plane-pki-operator", "karpenter-operator", "hyperkube", "proxy-server", "proxy-agent":
		return false
	}
	switch c.Name {
	case "manager", "capi-provider": // Cluster API, of which the hypershift-operator runs ours
		return false
	}
	// Their images are of other places than the payload.
	return c.Image != "from:imagestream" && !strings.HasPrefix(c.Image, "catalogs:")
}

func TestFind(t *testing.T) {
	for what, tt := range map[string]struct {
		image string
		line  []string
		want  string
	}{
		"is called in another image": {"cli", []string{"/usr/bin/oauth-apiserver", "start"}, `oauth-apiserver is called in image "cli", and is a program of image "oauth-apiserver"; give the container that image`},
		"is unknown":                 {"cli", []string{"/bin/nothing"}, `image "cli" has no program "nothing"`},
		"isn't named":                {"cli", nil, "no command line"},
	} {
		t.Run("When a program "+what+" it should say so", func(t *testing.T) {
			_, _, err := Find(tt.image, tt.line)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}

func TestCheck(t *testing.T) {
	p := Program{Name: "p", Words: "start", Flags: "config=file! n=number v=bool many=text*", Args: "heap", Env: "A B"}
	for _, tt := range []struct {
		args string
		want string
	}{
		{"start --config=/c", ""},
		{"start --config /c -n 3 -v --many=a --many=b heap-1", ""},
		{"start", "flag --config is missing"},
		{"start --config=/c --config=/d", "flag --config is given twice"},
		{"start --config=/c --other=1", "flag --other is unknown; it knows config, many, n, v"},
		{"start --config=/c -n x", "flag --n: strconv.ParseInt"},
		{"start --config=$(CONFIG)", "refers to a variable that the container doesn't have"},
		{"start --config=", "the value is empty"},
		{"--config=/c", `lack "start"`},
		{"run --config=/c", `argument "run" instead of "start"`},
		{"start --config=/c else", `argument "else" is unknown`},
		{"start --config", "flag --config has no value"},
	} {
		t.Run(fmt.Sprintf("When the arguments are %q it should say %q", tt.args, tt.want), func(t *testing.T) {
			_, err := p.Check(strings.Fields(tt.args))
			if tt.want == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.want)))
		})
	}
	t.Run("When a variable has no value it should be named", func(t *testing.T) {
		err := p.CheckEnv(func(name string) string { return map[string]string{"A": "1"}[name] })
		NewWithT(t).Expect(err).To(MatchError("p: variable B has no value; add it to the container"))
	})
}
