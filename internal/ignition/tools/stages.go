package tools

import (
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/version"
)

// Tags of a payload whose images hold the programs.
const (
	tagMCO           = "machine-config-operator"
	tagConfigAPI     = "cluster-config-api"
	tagConfigCluster = "cluster-config-operator"
	tagMDNS          = "mdns-publisher"
)

// imageFlags are the flags by which payloads before 4.13, which can't read image-references, are told of images, with the tags of those.
var imageFlags = []struct{ flag, tag string }{
	{"machine-config-operator-image", tagMCO},
	{"machine-config-oscontent-image", "machine-os-content"},
	{"infra-image", "pod"},
	{"keepalived-image", "keepalived-ipfailover"},
	{"coredns-image", "coredns"},
	{"haproxy-image", "haproxy-router"},
	{"baremetal-runtimecfg-image", "baremetal-runtimecfg"},
}

// minor is a version as far as flags depend on it; pre-releases count as what they lead to.
type minor struct{ major, minor uint }

func minorOf(text string) (minor, error) {
	v, err := version.ParseSemantic(text)
	if err != nil {
		return minor{}, fmt.Errorf("parsing version %q: %w", text, err)
	}
	return minor{v.Major(), v.Minor()}, nil
}

// atLeast compares with a minor of OpenShift 4.
func (m minor) atLeast(fourDot uint) bool { return m.major > 4 || m.major == 4 && m.minor >= fourDot }

// place is where everything of one payload is.
type place struct{ dir string }

func (p place) at(parts ...string) string { return filepath.Join(append([]string{p.dir}, parts...)...) }

// Folders in a place.
const (
	dirBin    = "bin"
	dirConfig = "config" // of the cluster, and what the machine-config-operator is told
	dirGates  = "gates"  // of the feature gate stage
	dirMCO    = "mco"    // what the machine-config-operator makes
	dirMCC    = "mcc"    // what the machine-config-controller reads
	dirMCS    = "mcs"    // what the machine-config-server serves
	templates = "etc/mcc/templates"
)

// Files of more than one stage.
const (
	fileFeatureGate = "99_feature-gate.yaml"
	filePullSecret  = "pull-secret.yaml"
	fileReferences  = "image-references"
	fileCloudConfig = "cloud.conf.configmap.yaml"
)

// request is what the flags depend on.
type request struct {
	version     string
	release     string            // pull spec
	images      map[string]string // tag → pull spec
	cloudConfig bool
	// securePort and insecurePort are the machine-config-server's.
	securePort, insecurePort int
}

// stage is a program to run.
type stage struct {
	name    string
	program string // in dirBin
	args    []string
}

// stagesFor are the programs of a payload in their order, the last of which is a server. It is an error when the version can't be read.
func stagesFor(r request, p place) (gates, operator, controller, server stage, err error) {
	m, err := minorOf(r.version)
	if err != nil {
		return gates, operator, controller, server, err
	}
	gates = gateStage(r, m, p)
	operator = operatorStage(r, m, p)
	controller = stage{name: "machine-config-controller", program: "machine-config-controller", args: []string{
		"bootstrap", "--manifest-dir=" + p.at(dirMCC), "--templates=" + p.at(dirMCC, templates),
		"--pull-secret=" + p.at(dirMCC, "machineconfigcontroller-pull-secret"), "--dest-dir=" + p.at(dirMCS),
	}}
	server = stage{name: "machine-config-server", program: "machine-config-server", args: []string{
		"bootstrap", "--server-basedir=" + p.at(dirMCS), "--bootstrap-kubeconfig=" + p.at(dirMCS, "kubeconfig"),
		"--cert=" + p.at(dirMCS, "tls.crt"), "--key=" + p.at(dirMCS, "tls.key"),
		fmt.Sprintf("--secure-port=%d", r.securePort), fmt.Sprintf("--insecure-port=%d", r.insecurePort),
	}}
	if m.atLeast(14) {
		controller.args = append(controller.args, "--payload-version="+r.version)
		server.args = append(server.args, "--payload-version="+r.version)
	}
	return gates, operator, controller, server, nil
}

// gateStage makes the FeatureGate with the gates of the release.
func gateStage(r request, m minor, p place) stage {
	if m.atLeast(15) {
		return stage{name: "render of cluster-config-api", program: "render", args: []string{
			"--asset-output-dir=" + p.at(dirGates, "output"), "--image-manifests=" + p.at(dirGates, "image"),
			"--rendered-manifest-dir=" + p.at(dirGates, "manifests"), "--cluster-profile=ibm-cloud-managed", "--payload-version=" + r.version,
		}}
	}
	s := stage{name: "cluster-config-operator", program: "cluster-config-operator", args: []string{
		"render", "--config-output-file=" + p.at(dirGates, "config.yaml"), "--asset-input-dir=" + p.at(dirGates, "input"), "--asset-output-dir=" + p.at(dirGates, "output"),
	}}
	if m.atLeast(14) {
		s.args = append(s.args, "--rendered-manifest-files="+p.at(dirGates, "manifests"), "--payload-version="+r.version)
	}
	return s
}

// operatorStage renders the cluster's manifests.
func operatorStage(r request, m minor, p place) stage {
	config := func(name string) string { return p.at(dirConfig, name) }
	s := stage{name: "machine-config-operator", program: "machine-config-operator", args: []string{
		"bootstrap", "--root-ca=" + config("root-ca.crt"),
		"--infra-config-file=" + config("cluster-infrastructure-02-config.yaml"), "--network-config-file=" + config("cluster-network-02-config.yaml"),
		"--proxy-config-file=" + config("cluster-proxy-01-config.yaml"), "--config-file=" + config("install-config.yaml"),
		"--dns-config-file=" + config("cluster-dns-02-config.yaml"), "--pull-secret=" + config(filePullSecret), "--dest-dir=" + p.at(dirMCO),
		"--additional-trust-bundle-config-file=" + config("user-ca-bundle-config.yaml"), "--release-image=" + r.release,
	}}
	if m.atLeast(13) {
		s.args = append(s.args, "--image-references="+config(fileReferences), "--kube-ca="+config("signer-ca.crt"))
	} else {
		s.args = append(s.args, "--kube-ca="+config("root-ca.crt"))
		for _, f := range imageFlags {
			s.args = append(s.args, fmt.Sprintf("--%s=%s", f.flag, r.images[f.tag]))
		}
	}
	if image := r.images[tagMDNS]; image != "" {
		s.args = append(s.args, "--mdns-publisher-image="+image)
	}
	if m.atLeast(14) {
		s.args = append(s.args, "--payload-version="+r.version)
	}
	if r.cloudConfig {
		s.args = append(s.args, "--cloud-config-file="+p.at(dirMCO, fileCloudConfig))
	}
	return s
}

// missing are the tags that a payload of a version can't be made machines of without, and that it lacks.
func missing(m minor, images map[string]string) []string {
	needed := []string{tagMCO, gateTag(m)}
	if !m.atLeast(13) {
		for _, f := range imageFlags {
			needed = append(needed, f.tag)
		}
	}
	var lacking []string
	seen := map[string]bool{}
	for _, tag := range needed {
		if images[tag] == "" && !seen[tag] {
			lacking = append(lacking, tag)
		}
		seen[tag] = true
	}
	return lacking
}

// gateTag is the image that has the program of the feature gate stage.
func gateTag(m minor) string {
	if m.atLeast(15) {
		return tagConfigAPI
	}
	return tagConfigCluster
}
