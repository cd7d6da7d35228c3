package nodeconfig

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

const machineConfigHead = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata:\n  name: "

// mc is a MachineConfig with a spec.config in YAML, two spaces of indentation less than it needs.
func mc(name, config string) string {
	return machineConfigHead + name + "\nspec:\n  config:\n    ignition: {version: 3.2.0}\n" + indent(config, "    ")
}

func indent(s, by string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for n := range lines {
		lines[n] = by + lines[n]
	}
	return strings.Join(lines, "\n") + "\n"
}

func file(path, content string) string {
	return fmt.Sprintf("storage:\n  files:\n  - path: %s\n    contents: {source: 'data:,%s'}", path, content)
}

func kubelet(fields string) string {
	return "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata: {name: limits}\nspec:\n  kubeletConfig:\n" + indent(fields, "    ")
}

func runtimeConfig(fields string) string {
	return "apiVersion: machineconfiguration.openshift.io/v1\nkind: ContainerRuntimeConfig\nmetadata: {name: runtime}\nspec:\n  containerRuntimeConfig:\n" + indent(fields, "    ")
}

func idms(entries string) string {
	return "apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata: {name: mirrors}\nspec:\n  imageDigestMirrors:\n" + indent(entries, "  ")
}

func TestValidate(t *testing.T) {
	kubernetes, inPlace := Target{Kubernetes: true}, Target{Kubernetes: true, InPlace: true}
	appended := "storage: {files: [{path: /etc/hosts, append: [{source: 'data:,10.0.0.1%20registry'}]}]}"
	for name, tc := range map[string]struct {
		target  Target
		sources []Source
		want    string // "" for none
	}{
		"When there is nothing it should be fine":         {target: kubernetes},
		"When there are only comments it should be fine":  {target: kubernetes, sources: []Source{{"ConfigMap a", "# nothing\n---\n\n---\n# here\n"}}},
		"When a file is added it should be fine":          {target: kubernetes, sources: []Source{{"ConfigMap a", mc("50-motd", file("/etc/motd", "hello"))}}},
		"When Ignition is older it should be translated":  {target: kubernetes, sources: []Source{{"ConfigMap a", strings.Replace(mc("50-motd", file("/etc/motd", "hello")), "3.2.0", "3.0.0", 1)}}},
		"When Ignition is newer it should be if possible": {target: kubernetes, sources: []Source{{"ConfigMap a", strings.Replace(mc("50-motd", file("/etc/motd", "hello")), "3.2.0", "3.5.0", 1)}}},
		"When it is not YAML it should name the document": {
			target: kubernetes, sources: []Source{{"ConfigMap a", mc("x", "") + "---\n{"}},
			want: "ConfigMap a, document 2: it is not YAML: "},
		"When it is a list it should say what to write": {
			target: kubernetes, sources: []Source{{"ConfigMap a", "- x"}}, want: "ConfigMap a, document 1: it is not an object"},
		"When the kind is another it should list the kinds": {
			target: kubernetes, sources: []Source{{"ConfigMap a", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}"}},
			want: `ConfigMap a, document 1: unsupported config type: kind "Secret"; write one of ClusterImagePolicy, ContainerRuntimeConfig`},
		"When the apiVersion is another it should say which": {
			target: kubernetes, sources: []Source{{"ConfigMap a", "apiVersion: v1\nkind: MachineConfig\nmetadata: {name: s}"}},
			want: `ConfigMap a, MachineConfig "s": unsupported config type: apiVersion "v1"`},
		"When there is no name it should ask for one": {
			target: kubernetes, sources: []Source{{"ConfigMap a", strings.Replace(mc("x", ""), "name: x", "labels: {}", 1)}},
			want: "ConfigMap a, MachineConfig in document 1: metadata.name is missing"},
		"When a field is mistyped it should name it": {
			target: kubernetes, sources: []Source{{"ConfigMap a", machineConfigHead + "x\nspec: {configs: {}}"}},
			want: `ConfigMap a, MachineConfig "x": unknown field "configs"`},
		"When a key comes twice it should say so": {
			target: kubernetes, sources: []Source{{"ConfigMap a", machineConfigHead + "x\nspec: {}\nspec: {fips: true}"}},
			want: `key "spec" already set`},
		"When the Ignition version is 2 it should say which are taken": {
			target: kubernetes, sources: []Source{{"ConfigMap a", strings.Replace(mc("x", file("/a", "b")), "3.2.0", "2.2.0", 1)}},
			want: "not a valid Ignition configuration (of version 3.0 to 3.5)"},
		"When Ignition is invalid it should say why": {
			target: kubernetes, sources: []Source{{"ConfigMap a", mc("x", file("relative", "b"))}}, want: "path not absolute"},
		"When a newer feature is used it should name it": {
			target:  kubernetes,
			sources: []Source{{"ConfigMap a", strings.Replace(mc("x", "kernelArguments: {shouldExist: [quiet]}"), "3.2.0", "3.3.0", 1)}},
			want:    `uses what Ignition 3.2.0 does not know: unknown field "kernelArguments"`},
		"When kernel arguments are given it should refuse them": {
			target: kubernetes, sources: []Source{{"ConfigMap a", machineConfigHead + "x\nspec: {kernelArguments: [quiet]}"}},
			want: "spec.kernelArguments is not supported with Kubernetes releases"},
		"When the release is OpenShift's it should leave kernel arguments to its tools": {
			sources: []Source{{"ConfigMap a", machineConfigHead + "x\nspec: {kernelArguments: [quiet]}"}}},
		"When a disk is given it should refuse it": {
			target: kubernetes, sources: []Source{{"ConfigMap a", mc("x", "storage: {disks: [{device: /dev/sda}]}")}}, want: "disks, raid, luks and filesystems"},
		"When a source is remote it should refuse it": {
			target:  kubernetes,
			sources: []Source{{"ConfigMap a", mc("x", "storage: {files: [{path: /a, contents: {source: 'https://example.com/x'}}]}")}},
			want:    "file /a: its source must be a data URL"},
		"When a configuration is merged in from elsewhere it should refuse it": {
			target: kubernetes, sources: []Source{{"ConfigMap a", strings.Replace(mc("x", ""), "{version: 3.2.0}", "{version: 3.2.0, config: {merge: [{source: 'data:,x'}]}}", 1)}},
			want: "spec.config.ignition.config is not supported"},
		"When another user is given it should refuse it": {
			target: kubernetes, sources: []Source{{"ConfigMap a", mc("x", "passwd: {users: [{name: root, sshAuthorizedKeys: [k]}]}")}}, want: `user "core"`},
		"When a password is given it should refuse it": {
			target: kubernetes, sources: []Source{{"ConfigMap a", mc("x", "passwd: {users: [{name: core, passwordHash: k}]}")}}, want: "only sshAuthorizedKeys"},
		"When two write one file otherwise it should name both": {
			target: kubernetes, sources: []Source{{"ConfigMap a", mc("x", file("/etc/motd", "a"))}, {"ConfigMap b", mc("z", file("/etc/motd", "b"))}},
			want: `ConfigMap b, MachineConfig "z": it conflicts: ConfigMap a, MachineConfig "x" writes /etc/motd with another content`},
		"When two write the same it should be fine": {
			target: kubernetes, sources: []Source{{"ConfigMap a", mc("x", file("/etc/motd", "a"))}, {"ConfigMap b", mc("z", file("/etc/motd", "a"))}}},
		"When one name has two contents it should name both": {
			target: kubernetes, sources: []Source{{"ConfigMap a", mc("x", file("/etc/motd", "a"))}, {"ConfigMap b", mc("x", file("/etc/issue", "b"))}},
			want: `ConfigMap b, MachineConfig "x": it conflicts: ConfigMap a, MachineConfig "x" has the same name`},
		"When a file of the machine's own is written it should say what to use": {
			target: kubernetes, sources: []Source{{"ConfigMap a", mc("x", file("/etc/kubernetes/kubelet.conf", "a"))}},
			want: "belongs to the machine's own configuration"},
		"When a unit of the machine's own is replaced it should refuse it": {
			target: kubernetes, sources: []Source{{"ConfigMap a", mc("x", "systemd: {units: [{name: kubelet.service, mask: true}]}")}},
			want: "unit kubelet.service belongs to the machine's own configuration"},
		"When a drop-in is added to it it should be fine": {
			target:  kubernetes,
			sources: []Source{{"ConfigMap a", mc("x", "systemd: {units: [{name: kubelet.service, dropins: [{name: 10-x.conf, contents: \"[Service]\\nNice=5\"}]}]}")}}},
		"When units disagree it should name both": {
			target: kubernetes,
			sources: []Source{{"ConfigMap a", mc("x", "systemd: {units: [{name: a.service, enabled: true}]}")},
				{"ConfigMap b", mc("z", "systemd: {units: [{name: a.service, enabled: false}]}")}},
			want: `ConfigMap b, MachineConfig "z": it conflicts: ConfigMap a, MachineConfig "x" enables or masks unit a.service otherwise`},
		"When the kubelet gets a limit it should be fine": {target: kubernetes, sources: []Source{{"ConfigMap a", kubelet("maxPods: 20\nsystemReserved: {memory: 1Gi}")}}},
		"When a field of the kubelet is mistyped it should name it": {
			target: kubernetes, sources: []Source{{"ConfigMap a", kubelet("maxPod: 20")}},
			want: `ConfigMap a, KubeletConfig "limits": spec.kubeletConfig is not a KubeletConfiguration: unknown field "maxPod"`},
		"When a field has the wrong type it should name it": {
			target: kubernetes, sources: []Source{{"ConfigMap a", kubelet("maxPods: many")}}, want: "cannot unmarshal string into Go struct field KubeletConfiguration.maxPods"},
		"When a machine could not join with it it should refuse it": {
			target: kubernetes, sources: []Source{{"ConfigMap a", kubelet("clusterDNS: [1.1.1.1]")}}, want: "spec.kubeletConfig.clusterDNS cannot be set"},
		"When a quantity is none it should name it": {
			target: kubernetes, sources: []Source{{"ConfigMap a", kubelet("kubeReserved: {cpu: lots}")}}, want: `spec.kubeletConfig.kubeReserved.cpu is "lots"`},
		"When a percentage is none it should name it": {
			target: kubernetes, sources: []Source{{"ConfigMap a", kubelet("imageGCLowThresholdPercent: 101")}}, want: "imageGCLowThresholdPercent is 101"},
		"When there are two KubeletConfigs it should ask for one": {
			target: kubernetes, sources: []Source{{"ConfigMap a", kubelet("maxPods: 20") + "---\n" + strings.Replace(kubelet("maxPods: 20"), "limits", "other", 1)}},
			want: `KubeletConfig "other": it conflicts: KubeletConfig "limits" is another KubeletConfig`},
		"When the runtime gets a level it should be fine":    {target: kubernetes, sources: []Source{{"ConfigMap a", runtimeConfig("logLevel: debug\npidsLimit: 100")}}},
		"When the level is unknown it should list them":      {target: kubernetes, sources: []Source{{"ConfigMap a", runtimeConfig("logLevel: loud")}}, want: "write one of fatal, panic"},
		"When too few processes are allowed it should say":   {target: kubernetes, sources: []Source{{"ConfigMap a", runtimeConfig("pidsLimit: 3")}}, want: "at least 20"},
		"When crun is asked for it should say that it's not": {target: kubernetes, sources: []Source{{"ConfigMap a", runtimeConfig("defaultRuntime: crun")}}, want: "crun is not supported"},
		"When a mirror of a registry is given it should be fine": {
			target: kubernetes, sources: []Source{{"ConfigMap a", idms("- source: quay.io\n  mirrors: [mirror.example.com:5000/quay]\n  mirrorSourcePolicy: NeverContactSource")}}},
		"When a mirror has another path it should say which it needs": {
			target: kubernetes, sources: []Source{{"ConfigMap a", idms("- source: quay.io/a/b\n  mirrors: [mirror.example.com/c]")}},
			want: `spec.imageDigestMirrors[0].mirrors[0] "mirror.example.com/c" must end with the path of the source, a/b`},
		"When only a path must not be contacted it should say what is possible": {
			target: kubernetes, sources: []Source{{"ConfigMap a", idms("- source: quay.io/a\n  mirrors: [m.io/a]\n  mirrorSourcePolicy: NeverContactSource")}},
			want: "supported for whole registries only: write source quay.io"},
		"When the source is a wildcard it should refuse it": {
			target: kubernetes, sources: []Source{{"ConfigMap a", idms("- source: '*.quay.io'\n  mirrors: [m.io]")}}, want: "wildcards are not supported"},
		"When the source would break out of a file it should refuse it": {
			target: kubernetes, sources: []Source{{"ConfigMap a", idms("- source: '../../etc'\n  mirrors: [m.io]")}}, want: `source "../../etc"`},
		"When signatures are to be checked it should say that nobody would": {
			target: kubernetes, sources: []Source{{"ConfigMap a", "apiVersion: config.openshift.io/v1\nkind: ClusterImagePolicy\nmetadata: {name: p}\nspec: {}"}}, want: "does not check signatures"},
		"When a file that machines bring is appended to, and they are changed in place, it should name the file and the remedy": {
			target: inPlace, sources: []Source{{"ConfigMap a", mc("x", appended)}},
			want: `ConfigMap a, MachineConfig "x": file /etc/hosts has append and no contents`},
		"When nothing is appended to it in an older Ignition it should say so all the same": {
			target: inPlace, sources: []Source{{"ConfigMap a", strings.Replace(mc("x", "storage: {files: [{path: /etc/hosts, append: [{}]}]}"), "3.2.0", "3.0.0", 1)}},
			want: "file /etc/hosts has append and no contents"},
		"When machines are changed in place it should allow append to contents, and files without either": {
			target: inPlace, sources: []Source{{"ConfigMap a", mc("x", file("/etc/motd", "hello")+"\n    append: [{source: 'data:,x'}]\n  - {path: /etc/hosts, mode: 384}")}}},
		"When machines are replaced it should allow append": {target: kubernetes, sources: []Source{{"ConfigMap a", mc("x", appended)}}},
		"When a payload's own daemon changes machines in place it should leave append to it": {
			target: Target{InPlace: true}, sources: []Source{{"ConfigMap a", mc("x", appended)}}},
		"When it is too large it should say so": {
			target: kubernetes, sources: []Source{{"ConfigMap a", "# " + strings.Repeat("x", MaxSize)}}, want: "ConfigMap a: the configuration is larger than 4 MiB"},
		"When there are too many documents it should say so": {
			target: kubernetes, sources: []Source{{"ConfigMap a", strings.Repeat(mc("x", "")+"---\n", MaxItems+1)}}, want: "more than 500 documents"},
		"When there are many problems it should count the rest": {
			target: kubernetes, sources: []Source{{"ConfigMap a", strings.Repeat("kind: X\n---\n", 30)}}, want: "and 20 more"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := Validate(tc.target, tc.sources...)
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			g.Expect(len(err.Error())).To(BeNumerically("<", 8000), "the message ends up in a condition")
		})
	}
}

// What a file holds must never show in a message, because conditions are read by more people than ConfigMaps.
func TestErrorsHoldNoContent(t *testing.T) {
	g := NewWithT(t)
	err := Validate(Target{Kubernetes: true}, Source{"a", mc("x", file("/etc/kubernetes/a", "s3cr3t"))}, Source{"b", mc("z", file("/etc/b", "s3cr3t"))},
		Source{"c", mc("z", file("/etc/b", "S3CR3T"))})
	g.Expect(err).To(HaveOccurred())
	g.Expect(strings.ToLower(err.Error())).NotTo(ContainSubstring("s3cr3t"))
}

func TestParseDoesNotDependOnOrder(t *testing.T) {
	documents := []string{
		mc("a", file("/etc/a", "1")), mc("b", file("/etc/b", "2")), mc("c", file("/etc/a", "1")),
		mc("u", "systemd: {units: [{name: b.service, enabled: true, contents: \"[Service]\\nExecStart=/bin/true\"}]}"),
		mc("v", "systemd: {units: [{name: kubelet.service, dropins: [{name: 20-b.conf, contents: \"[Service]\\nNice=5\"}]}]}"),
		mc("x", "systemd: {units: [{name: kubelet.service, dropins: [{name: 10-a.conf, contents: \"[Service]\\nNice=5\"}]}]}"),
		mc("k", "passwd: {users: [{name: core, sshAuthorizedKeys: [b, a]}]}"),
		kubelet("maxPods: 7"), runtimeConfig("logLevel: warn"), idms("- {source: quay.io, mirrors: [a.io, b.io]}\n- {source: docker.io, mirrors: [c.io]}"),
	}
	want, err := Parse(Target{Kubernetes: true}, Source{Data: strings.Join(documents, "\n---\n")})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	rapid.Check(t, func(t *rapid.T) {
		g := NewWithT(t)
		order := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed"))).Perm(len(documents))
		cut := rapid.IntRange(0, len(documents)).Draw(t, "cut")
		var sources [2][]string
		for n, d := range order {
			if n < cut {
				sources[0] = append(sources[0], documents[d])
			} else {
				sources[1] = append(sources[1], documents[d])
			}
		}
		got, err := Parse(Target{Kubernetes: true}, Source{Data: strings.Join(sources[0], "\n---\n")}, Source{Data: strings.Join(sources[1], "\n---\n")})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal(want))
	})
}

func FuzzParse(f *testing.F) {
	f.Add(mc("a", file("/etc/a", "1")))
	f.Add(kubelet("maxPods: 7") + "---\n" + runtimeConfig("logLevel: warn"))
	f.Add(idms("- {source: quay.io, mirrors: [a.io, b.io]}"))
	f.Fuzz(func(t *testing.T, data string) {
		for _, target := range []Target{{}, {Kubernetes: true}} {
			first, err1 := Parse(target, Source{Name: "x", Data: data})
			_, err2 := Parse(target, Source{Name: "x", Data: data})
			if (err1 == nil) != (err2 == nil) || (first == nil) != (err1 != nil) {
				t.Fatalf("not the same twice: %v, %v", err1, err2)
			}
		}
	})
}
