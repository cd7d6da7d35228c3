package render

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// run calls the command with the control plane and the release of testdata, unless args name others.
func run(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	all := append([]string{"components"}, args...)
	if !strings.Contains(strings.Join(args, " "), "-f ") {
		all = append(all, "-f", "testdata/hcp.yaml")
	}
	if !strings.Contains(strings.Join(args, " "), "--release-metadata") {
		all = append(all, "--release-metadata", "testdata/release.json")
	}
	cmd := Command()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	var out, errOut bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetArgs(all)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

// files reads a folder: path below root → content.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		found[rel] = string(raw)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestComponents(t *testing.T) {
	t.Run("When nothing exists yet it should show what a first pass makes, and say what the rest waits for", func(t *testing.T) {
		g := NewWithT(t)
		dir := filepath.Join(t.TempDir(), "new")
		_, said, err := run(t, "", "--no-signing", "--output-dir", dir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).To(ContainSubstring("etcd: 6 objects\nkube-apiserver: 3 objects\n"))
		g.Expect(said).To(ContainSubstring("kube-scheduler: nothing, waits for kube-apiserver\n"))
		got := files(t, dir)
		g.Expect(got).To(HaveKey("etcd/statefulset_etcd.yaml"))
		g.Expect(got).NotTo(HaveKey("kube-scheduler/deployment_kube-scheduler.yaml"))
		var obj map[string]any
		g.Expect(yaml.Unmarshal([]byte(got["kube-apiserver/deployment_kube-apiserver.yaml"]), &obj)).To(Succeed())
		g.Expect(obj).To(HaveKeyWithValue("kind", "Deployment"))
		g.Expect(obj).NotTo(HaveKey("status"))
		info, err := os.Stat(filepath.Join(dir, "etcd", "statefulset_etcd.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(Equal(fs.FileMode(0o600)))
	})

	t.Run("When the same is rendered twice it should give the same bytes", func(t *testing.T) {
		g := NewWithT(t)
		var rounds []map[string]string
		for range 2 {
			dir := t.TempDir()
			_, _, err := run(t, "", "--no-signing", "--all", "--with-status", "--output-dir", dir)
			g.Expect(err).NotTo(HaveOccurred())
			rounds = append(rounds, files(t, dir))
		}
		g.Expect(rounds[0]).To(Equal(rounds[1]))
		g.Expect(rounds[0]).To(HaveKey("kube-scheduler/controlplanecomponent_kube-scheduler.yaml"))
	})

	t.Run("When a text is an equals sign alone it should be quoted, for readers of YAML 1.1", func(t *testing.T) {
		g := NewWithT(t)
		obj := map[string]any{"value": "=", "list": []any{"=", "a="}, "text": "a: =\n"}
		raw, err := document(obj)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).To(Equal("list:\n- \"=\"\n- a=\ntext: |\n  a: =\nvalue: \"=\"\n"))
		g.Expect(obj).To(HaveKeyWithValue("value", "="), "what is written should stay")
	})

	t.Run("When what a component waits for is among the objects it should be there", func(t *testing.T) {
		g := NewWithT(t)
		out, _, err := run(t, "", "--no-signing", "--component", "kube-scheduler", "--objects", "testdata/ready.yaml")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(ContainSubstring("kind: Deployment"))
	})

	t.Run("When certificates are made it should keep Secrets to itself, unless told otherwise", func(t *testing.T) {
		g := NewWithT(t)
		out, _, err := run(t, "", "--all", "--management-capabilities", "all")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).NotTo(ContainSubstring("PRIVATE KEY"))
	})

	t.Run("When a HostedCluster is given it should render the control plane that it becomes", func(t *testing.T) {
		g := NewWithT(t)
		out, _, err := run(t, hostedCluster, "-f", "-", "--no-signing", "--all", "--component", "etcd", "-o", "json")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(ContainSubstring(`"namespace": "clusters-demo"`))
	})

	t.Run("When the hypershift-operator is asked for it should render without owners", func(t *testing.T) {
		g := NewWithT(t)
		out, said, err := run(t, "", "--no-signing", "--operator", "hypershift-operator")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).To(HavePrefix("control-plane-operator: 4 objects\n"))
		g.Expect(out).To(ContainSubstring("name: control-plane-operator"))
		g.Expect(out).NotTo(ContainSubstring("ownerReferences"))
	})
}

func TestComponentsRefused(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		says  string
	}{
		"When the folder has something in it":        {args: []string{"--no-signing", "--output-dir", full}, says: "is not empty: give a new folder, or --overwrite"},
		"When the release lacks an image":            {args: []string{"--no-signing", "--release-metadata", "testdata/bare.json"}, says: "component etcd: "},
		"When a component does not exist":            {args: []string{"--component", "nope"}, says: "has no such component; it has [etcd "},
		"When the input is something else":           {stdin: "apiVersion: v1\nkind: Pod\n", args: []string{"-f", "-"}, says: "no HostedControlPlane or HostedCluster"},
		"When an API server would refuse the object": {stdin: strings.Replace(hostedCluster, "managementType: Managed", "managementType: Nope", 1), args: []string{"-f", "-"}, says: "an API server would refuse it: spec.etcd"},
		"When the operator is unknown":               {args: []string{"--operator", "x"}, says: "use control-plane-operator, hypershift-operator or karpenter-operator"},
	} {
		t.Run(name+" it should say so", func(t *testing.T) {
			_, _, err := run(t, tc.stdin, tc.args...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.says)))
		})
	}
	t.Run("When one fails and it should go on it should render the others and still fail", func(t *testing.T) {
		g := NewWithT(t)
		out, said, err := run(t, "", "--no-signing", "--keep-going", "--all", "--release-metadata", "testdata/bare.json")
		g.Expect(err).To(MatchError(ContainSubstring("components failed")))
		g.Expect(said).To(ContainSubstring("component etcd: "))
		g.Expect(out).To(ContainSubstring("kind: Deployment"))
	})
}

const hostedCluster = `
apiVersion: hypershift.openshift.io/v1beta1
kind: HostedCluster
metadata: {name: demo, namespace: clusters}
spec:
  release: {image: registry.example.com/release:1.36.3}
  pullSecret: {name: pull}
  sshKey: {name: ""}
  platform: {type: None}
  networking:
    clusterNetwork: [{cidr: 10.132.0.0/14}]
    serviceNetwork: [{cidr: 172.31.0.0/16}]
  services:
  - {service: APIServer, servicePublishingStrategy: {type: LoadBalancer}}
  - {service: Ignition, servicePublishingStrategy: {type: NodePort, nodePort: {address: 10.0.0.1}}}
  - {service: Konnectivity, servicePublishingStrategy: {type: NodePort, nodePort: {address: 10.0.0.1}}}
  - {service: OAuthServer, servicePublishingStrategy: {type: NodePort, nodePort: {address: 10.0.0.1}}}
  etcd: {managementType: Managed, managed: {storage: {type: PersistentVolume}}}
`
