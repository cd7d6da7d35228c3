package toolstest

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"
)

// tool is a program of a release.
type tool struct {
	version, name string
	mode          Mode
	flags         map[string]string
}

func (t tool) minor() int {
	parts := strings.Split(t.version, ".")
	n, _ := strconv.Atoi(parts[1])
	if parts[0] != "4" {
		n += 100 // later than any 4.x
	}
	return n
}

// known are the flags that a program has to be given, all of them and no others.
func (t tool) known() []string {
	since := func(minor int, flags ...string) []string {
		if t.minor() >= minor {
			return flags
		}
		return nil
	}
	switch t.name {
	case "render":
		return []string{"asset-output-dir", "image-manifests", "rendered-manifest-dir", "cluster-profile", "payload-version"}
	case "cluster-config-operator":
		return append([]string{"config-output-file", "asset-input-dir", "asset-output-dir"}, since(14, "rendered-manifest-files", "payload-version")...)
	case "machine-config-operator":
		list := []string{"root-ca", "kube-ca", "infra-config-file", "network-config-file", "proxy-config-file", "config-file", "dns-config-file", "pull-secret",
			"dest-dir", "additional-trust-bundle-config-file", "release-image"}
		list = append(list, since(14, "payload-version")...)
		if t.minor() >= 13 {
			return append(list, "image-references")
		}
		return append(list, "machine-config-operator-image", "machine-config-oscontent-image", "infra-image", "keepalived-image", "coredns-image", "haproxy-image",
			"baremetal-runtimecfg-image")
	case "machine-config-controller":
		return append([]string{"manifest-dir", "templates", "pull-secret", "dest-dir"}, since(14, "payload-version")...)
	default:
		return append([]string{"server-basedir", "bootstrap-kubeconfig", "cert", "key", "secure-port", "insecure-port"}, since(14, "payload-version")...)
	}
}

// optional are flags that some clusters have.
func (t tool) optional() []string {
	if t.name == "machine-config-operator" {
		return []string{"cloud-config-file", "mdns-publisher-image"}
	}
	return nil
}

func (t tool) run(args []string) error {
	verb := map[string]string{"render": "", "cluster-config-operator": "render"}
	want, special := verb[t.name]
	if !special {
		want = "bootstrap"
	}
	if want != "" {
		if len(args) == 0 || args[0] != want {
			return fmt.Errorf("%s: the first argument has to be %s", t.name, want)
		}
		args = args[1:]
	}
	t.flags = map[string]string{}
	for _, arg := range args {
		name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !ok || !strings.HasPrefix(arg, "--") || !slices.Contains(slices.Concat(t.known(), t.optional()), name) {
			return fmt.Errorf("%s: unknown flag: %s", t.name, arg)
		}
		if _, twice := t.flags[name]; twice || value == "" {
			return fmt.Errorf("%s: flag --%s has to be given once, with a value", t.name, name)
		}
		t.flags[name] = value
	}
	for _, name := range t.known() {
		if t.flags[name] == "" {
			return fmt.Errorf("%s: flag --%s is missing", t.name, name)
		}
	}
	if v := t.flags["payload-version"]; v != "" && v != t.version {
		return fmt.Errorf("%s: --payload-version is %s", t.name, v)
	}
	if len(os.Environ()) > 4 {
		return fmt.Errorf("%s: the environment holds more than it should: %v", t.name, os.Environ())
	}
	if err := t.misbehave(); err != nil {
		return err
	}
	switch t.name {
	case "render", "cluster-config-operator":
		return t.gates()
	case "machine-config-operator":
		return t.operator()
	case "machine-config-controller":
		return t.controller()
	}
	return t.server()
}

// misbehave does the bad thing of a mode.
func (t tool) misbehave() error {
	switch t.mode {
	case Exit:
		secret, _ := os.ReadFile(t.flags["pull-secret"])
		return fmt.Errorf("machineconfigs.machineconfiguration.openshift.io \"bad\" is invalid\npull secret: %s\npassword=hunter2hunter2\n%s", secret,
			pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("key")}))
	case Hang:
		time.Sleep(time.Hour)
	case Fork, Leave:
		n := 1
		if t.mode == Fork {
			n = 40
		}
		for range n {
			cmd := exec.Command("/bin/sleep", "3600")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				return err
			}
		}
		if t.mode == Fork {
			time.Sleep(time.Hour)
		}
	case Memory:
		var all [][]byte
		for range MemoryTaken / (8 << 20) {
			chunk := make([]byte, 8<<20)
			for i := 0; i < len(chunk); i += 4096 {
				chunk[i] = 1
			}
			all = append(all, chunk)
		}
		time.Sleep(time.Hour)
		runtime.KeepAlive(all)
	case Fill:
		for i := range DiskFilled / (1 << 20) {
			if err := os.WriteFile(fmt.Sprintf("junk-%d", i), make([]byte, 1<<20), 0o600); err != nil {
				return err
			}
		}
		time.Sleep(time.Hour)
	case BigFile:
		f, err := os.Create("big")
		if err != nil {
			return err
		}
		for range 1024 {
			if _, err := f.Write(make([]byte, 1<<20)); err != nil {
				return err
			}
		}
	case Talk:
		for range 64 { // 80 MiB, thousands of times what is kept of it
			fmt.Println(strings.Repeat("talk ", 1<<18))
		}
	}
	return nil
}

// manifest reads a file with one object of a kind.
func (t tool) manifest(path, kind string) (map[string]any, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	object := map[string]any{}
	if err := yaml.UnmarshalStrict(data, &object); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", t.name, filepath.Base(path), err)
	}
	if object["kind"] != kind {
		return nil, fmt.Errorf("%s: %s has kind %v, not %s", t.name, filepath.Base(path), object["kind"], kind)
	}
	return object, nil
}

func (t tool) certificate(flag string) error {
	data, err := os.ReadFile(t.flags[flag])
	if err != nil {
		return err
	}
	if block, _ := pem.Decode(data); block == nil {
		return fmt.Errorf("%s: --%s holds no certificate", t.name, flag)
	}
	return nil
}

func (t tool) gates() error {
	dir := t.flags["rendered-manifest-dir"]
	if t.name != "render" {
		if dir = t.flags["rendered-manifest-files"]; dir == "" {
			out := filepath.Join(t.flags["asset-output-dir"], "manifests")
			return errors.Join(os.MkdirAll(out, 0o755), os.WriteFile(filepath.Join(out, "99_feature-gate.yaml"), []byte("kind: FeatureGate\nstatus: {}\n"), 0o600))
		}
	} else if _, err := os.Stat(filepath.Join(t.flags["image-manifests"], "0000_10_crd.yaml")); err != nil {
		return err
	}
	at := filepath.Join(dir, "99_feature-gate.yaml")
	gate, err := t.manifest(at, "FeatureGate")
	if err != nil {
		return err
	}
	gate["status"] = map[string]any{"featureGates": []any{map[string]any{"version": t.version}}}
	out, err := yaml.Marshal(gate)
	if err != nil {
		return err
	}
	return os.WriteFile(at, out, 0o600)
}

func (t tool) operator() error {
	for flag, kind := range map[string]string{"infra-config-file": "Infrastructure", "network-config-file": "Network", "proxy-config-file": "Proxy", "dns-config-file": "DNS",
		"pull-secret": "Secret"} {
		if _, err := t.manifest(t.flags[flag], kind); err != nil {
			return err
		}
	}
	if err := errors.Join(t.certificate("root-ca"), t.certificate("kube-ca")); err != nil {
		return err
	}
	if at := t.flags["image-references"]; at != "" {
		if _, err := t.manifest(at, "ImageStream"); err != nil {
			return err
		}
	}
	if at := t.flags["cloud-config-file"]; at != "" {
		if _, err := t.manifest(at, "ConfigMap"); err != nil {
			return err
		}
	}
	dest := filepath.Join(t.flags["dest-dir"], "bootstrap", "manifests")
	if err := os.MkdirAll(dest, 0o755); err != nil {
		return err
	}
	secret, err := os.ReadFile(t.flags["pull-secret"])
	if err != nil {
		return err
	}
	controller := fmt.Sprintf("kind: ControllerConfig\nspec: {releaseImage: %q}\n", t.flags["release-image"])
	if t.mode == Link {
		return os.Symlink("/etc/hostname", filepath.Join(dest, "machineconfigcontroller-controllerconfig.yaml"))
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dest, "machineconfigcontroller-pull-secret"), secret, 0o600),
		os.WriteFile(filepath.Join(dest, "machineconfigcontroller-controllerconfig.yaml"), []byte(controller), 0o600),
		os.WriteFile(filepath.Join(dest, "master.machineconfigpool.yaml"), []byte("kind: MachineConfigPool\nmetadata: {name: of-the-operator}\n"), 0o600),
	)
}

// rendered is what the controller leaves to the server.
type rendered struct {
	Documents []string `json:"documents"` // kinds and names, sorted
	Configs   []any    `json:"configs"`   // Ignition configurations of MachineConfigs
	Gates     any      `json:"gates"`
}

func (t tool) controller() error {
	dir := t.flags["manifest-dir"]
	if _, err := os.Stat(filepath.Join(t.flags["templates"], "master/00-master/_base/files/kubelet.yaml")); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(t.flags["templates"], "master/00-master/_base/files/old.yaml")); err == nil {
		return errors.New("a file that a layer has removed is there")
	}
	if _, err := t.manifest(t.flags["pull-secret"], "Secret"); err != nil {
		return err
	}
	for _, name := range []string{"master", "worker"} {
		pool, err := t.manifest(filepath.Join(dir, name+".machineconfigpool.yaml"), "MachineConfigPool")
		if err != nil {
			return err
		}
		if pool["metadata"].(map[string]any)["name"] != name {
			return fmt.Errorf("the pool %s is not the cluster's own", name)
		}
	}
	gate, err := t.manifest(filepath.Join(dir, "99_feature-gate.yaml"), "FeatureGate")
	if err != nil {
		return err
	}
	out := rendered{Gates: gate["status"]}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(string(data), "\n---\n") {
			object := map[string]any{}
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				return fmt.Errorf("%s: %w", e.Name(), err)
			}
			metadata, _ := object["metadata"].(map[string]any)
			out.Documents = append(out.Documents, fmt.Sprintf("%v/%v", object["kind"], metadata["name"]))
			if spec, ok := object["spec"].(map[string]any); ok && object["kind"] == "MachineConfig" {
				out.Configs = append(out.Configs, spec["config"])
			}
			if spec, ok := object["spec"].(map[string]any); ok && object["kind"] == "OSImageStream" {
				out.Documents = append(out.Documents, fmt.Sprintf("stream %v", spec["defaultStream"]))
			}
		}
	}
	slices.Sort(out.Documents)
	data, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.flags["dest-dir"], "rendered.json"), data, 0o600)
}

func (t tool) server() error {
	if _, err := tls.LoadX509KeyPair(t.flags["cert"], t.flags["key"]); err != nil {
		return err
	}
	kubeconfig, err := os.ReadFile(t.flags["bootstrap-kubeconfig"])
	if err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(t.flags["server-basedir"], "rendered.json"))
	if err != nil {
		return err
	}
	out := rendered{}
	if err := json.Unmarshal(data, &out); err != nil {
		return err
	}
	files := []any{fileOf("/etc/kubernetes/kubeconfig", string(kubeconfig)), fileOf("/etc/documents", strings.Join(out.Documents, "\n"))}
	for _, config := range out.Configs {
		if storage, ok := config.(map[string]any)["storage"].(map[string]any); ok {
			list, _ := storage["files"].([]any)
			files = append(files, list...)
		}
	}
	payload, err := json.Marshal(map[string]any{"ignition": map[string]any{"version": "3.2.0"}, "storage": map[string]any{"files": files}})
	if err != nil {
		return err
	}
	http.HandleFunc("/config/master", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case t.mode == Unavailable:
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		case t.mode == Huge:
			for range 64 {
				_, _ = w.Write(make([]byte, 1<<20))
			}
		case t.mode == NoIgnition:
			_, _ = io.WriteString(w, "{}")
		case !strings.HasPrefix(r.Header.Get("Accept"), "application/vnd.coreos.ignition+json;version=3.2.0"):
			http.Error(w, "version", http.StatusBadRequest)
		default:
			_, _ = w.Write(payload)
		}
	})
	return http.ListenAndServe("localhost:"+t.flags["insecure-port"], nil) // a test ends it
}

func fileOf(path, text string) map[string]any {
	return map[string]any{"path": path, "contents": map[string]any{"source": "data:;base64," + base64.StdEncoding.EncodeToString([]byte(text))}}
}

// Cluster is what ConfigMap machine-config-server holds, as far as the programs look.
func Cluster() map[string]string {
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("certificate")}))
	return maps.Clone(map[string]string{
		"root-ca.crt": certificate, "signer-ca.crt": certificate, "cluster-dns-02-config.yaml": "kind: DNS", "cluster-infrastructure-02-config.yaml": "kind: Infrastructure",
		"cluster-network-02-config.yaml": "kind: Network", "cluster-proxy-01-config.yaml": "kind: Proxy", "image-config.yaml": "kind: Image",
		"cluster-apiserver-config.yaml": "kind: APIServer", "install-config.yaml": "apiVersion: v1",
		"master.machineconfigpool.yaml": "kind: MachineConfigPool\nmetadata: {name: master}", "worker.machineconfigpool.yaml": "kind: MachineConfigPool\nmetadata: {name: worker}",
	})
}
