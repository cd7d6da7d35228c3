package tools

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/ignition/imagefiles"
	"hcp.internal/platform/internal/ignition/payload"
)

// Paths in images.
const (
	imageTemplates  = "etc/mcc/templates"
	imageManifests  = "manifests"
	imageOSRelease  = "usr/lib/os-release"
	imageReferences = "release-manifests/image-references"
	imageBin        = "usr/bin/"
	rhel9Suffix     = ".rhel9"
)

// programs of the machine-config-operator's image.
var programs = []string{"machine-config-operator", "machine-config-controller", "machine-config-server"}

// imageFolders are where the files of the release's images are.
type imageFolders struct {
	release, mco, gates string
	// suffix of the programs of mco.
	suffix string
}

// images fetches what is needed of the release's images.
func (g *Generator) images(ctx context.Context, in payload.Inputs, m minor) (imageFolders, error) {
	get := func(image string, files ...imagefiles.Want) (string, error) {
		dir, err := g.Images.Get(ctx, imagefiles.Request{Image: image, PullSecret: in.PullSecret, TrustBundle: in.TrustBundle, Files: files})
		if errors.Is(err, imagefiles.ErrMissing) || errors.Is(err, imagefiles.ErrHostile) {
			return "", &payload.InvalidError{Err: fmt.Errorf("release %s: %w", in.Version, err)}
		}
		return dir, err
	}
	of := imageFolders{}
	var err error
	if m.atLeast(13) {
		if of.release, err = get(pinned(in.OpenShift), imagefiles.Want{Path: imageReferences}); err != nil {
			return of, err
		}
	}
	wants := []imagefiles.Want{{Path: imageTemplates}, {Path: imageOSRelease, Optional: true}}
	for _, program := range programs {
		wants = append(wants, imagefiles.Want{Path: imageBin + program}, imagefiles.Want{Path: imageBin + program + rhel9Suffix, Optional: true})
	}
	if of.mco, err = get(in.Images[tagMCO], wants...); err != nil {
		return of, err
	}
	of.suffix = suffixFor(rhelOf(filepath.Join(of.mco, imageOSRelease)), g.HostRHEL)
	if m.atLeast(15) {
		of.gates, err = get(in.Images[tagConfigAPI], imagefiles.Want{Path: imageBin + "render"}, imagefiles.Want{Path: imageManifests, Optional: true})
	} else {
		of.gates, err = get(in.Images[tagConfigCluster], imagefiles.Want{Path: imageBin + tagConfigCluster})
	}
	return of, err
}

// pinned is the release by its digest, so that a tag that moves gives no files of another release.
func pinned(o *payload.OpenShift) string {
	if o.Digest == "" || strings.Contains(o.Release, "@") {
		return o.Release
	}
	repository := o.Release
	if colon := strings.LastIndex(repository, ":"); colon > strings.LastIndex(repository, "/") {
		repository = repository[:colon]
	}
	return repository + "@" + o.Digest
}

// suffixFor is that of the programs that run here: an image of RHEL 8 brings those for RHEL 9 beside.
func suffixFor(image, host string) string {
	if image == "8" && host == "9" {
		return rhel9Suffix
	}
	return ""
}

var (
	osID      = regexp.MustCompile(`(?m)^(?:ID|ID_LIKE)=.*\b(?:rhel|centos)\b`)
	osVersion = regexp.MustCompile(`(?m)^VERSION_ID="?([0-9]+)`)
)

// rhelOf is the major version of RHEL that a file os-release tells of; empty: none.
func rhelOf(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, 64<<10))
	found := osVersion.FindSubmatch(data)
	if err != nil || found == nil || !osID.Match(data) {
		return ""
	}
	return string(found[1])
}

// HostRHEL is the major version of RHEL that this program runs on; empty: it is another system.
func HostRHEL() string { return rhelOf("/etc/os-release") }

// file is one to write before the first program runs.
type file struct {
	path string // in the place
	data []byte
}

// clusterFiles are those of ConfigMap machine-config-server that a payload can't be made without.
var clusterFiles = []string{
	"root-ca.crt", "signer-ca.crt", "cluster-dns-02-config.yaml", "cluster-infrastructure-02-config.yaml", "cluster-network-02-config.yaml",
	"cluster-proxy-01-config.yaml", "image-config.yaml", "cluster-apiserver-config.yaml", "install-config.yaml",
	"master.machineconfigpool.yaml", "worker.machineconfigpool.yaml",
}

// plainName is what a key of a ConfigMap has to be for a file of its name.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// layout is what lies in the place before the first program runs.
func layout(in payload.Inputs, pair certificate) ([]file, error) {
	if len(in.BootstrapKubeconfig) == 0 {
		return nil, errors.New("the bootstrap kubeconfig is empty")
	}
	var files []file
	for _, name := range clusterFiles {
		if in.OpenShift.Cluster[name] == "" {
			return nil, fmt.Errorf("ConfigMap machine-config-server has no key %s yet", name)
		}
	}
	for _, name := range sortedKeys(in.OpenShift.Cluster) {
		if plainName.MatchString(name) {
			files = append(files, file{path: dirConfig + "/" + name, data: []byte(in.OpenShift.Cluster[name])})
		}
	}
	secret, err := pullSecretManifest(in.PullSecret)
	if err != nil {
		return nil, err
	}
	files = append(files,
		file{path: dirConfig + "/" + filePullSecret, data: secret},
		file{path: dirGates + "/manifests/" + fileFeatureGate, data: in.OpenShift.FeatureGate},
		file{path: dirMCS + "/kubeconfig", data: in.BootstrapKubeconfig},
		file{path: dirMCS + "/tls.crt", data: pair.cert}, file{path: dirMCS + "/tls.key", data: pair.key},
	)
	if in.Config != "" {
		files = append(files, file{path: dirMCC + "/custom.yaml", data: []byte(in.Config)})
	}
	if len(in.OpenShift.CloudConfig) > 0 {
		files = append(files, file{path: dirMCO + "/" + fileCloudConfig, data: in.OpenShift.CloudConfig})
	}
	return files, nil
}

// emptyFolders are there for programs that write into them, and don't make them.
var emptyFolders = []string{dirBin, dirMCO, dirMCC, dirMCS, dirGates + "/output", dirGates + "/input/manifests", dirGates + "/input/bootstrap-manifests", dirGates + "/image"}

// pullSecretManifest is the pull secret as a manifest.
func pullSecretManifest(pullSecret []byte) ([]byte, error) {
	out, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "pull-secret", "namespace": "default"}, "type": "kubernetes.io/dockerconfigjson",
		"data": map[string]any{".dockerconfigjson": base64.StdEncoding.EncodeToString(pullSecret)},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the pull secret: %w", err)
	}
	return out, nil
}

// streamManifest asks for a stream of RHEL CoreOS.
func streamManifest(stream string) ([]byte, error) {
	out, err := yaml.Marshal(map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "OSImageStream", "metadata": map[string]any{"name": "cluster"},
		"spec": map[string]any{"defaultStream": stream},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the OSImageStream: %w", err)
	}
	return out, nil
}

// prepare writes the layout, and puts the files of the images into it.
func (w *work) prepare() error {
	for _, dir := range emptyFolders {
		if err := os.MkdirAll(w.place.at(dir), 0o700); err != nil {
			return fmt.Errorf("making a folder for the payload: %w", err)
		}
	}
	files, err := layout(w.in, w.pair)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := w.write(f.path, f.data); err != nil {
			return err
		}
	}
	if w.images.release != "" {
		if err := copyFile(filepath.Join(w.images.release, imageReferences), w.place.at(dirConfig, fileReferences), 0o600); err != nil {
			return err
		}
	}
	if err := copyTree(filepath.Join(w.images.mco, imageTemplates), w.place.at(dirMCC, templates)); err != nil {
		return err
	}
	if err := copyTree(filepath.Join(w.images.gates, imageManifests), w.place.at(dirGates, "image")); err != nil {
		return err
	}
	return w.installPrograms()
}

// installPrograms makes hard links where it can: the programs have some hundred megabytes.
func (w *work) installPrograms() error {
	link := func(from, to string) error {
		if err := os.Link(from, to); err == nil {
			return nil
		}
		return copyFile(from, to, 0o700)
	}
	for _, program := range programs {
		from := filepath.Join(w.images.mco, imageBin+program)
		if w.images.suffix != "" {
			if _, err := os.Stat(from + w.images.suffix); err == nil {
				from += w.images.suffix
			}
		}
		if err := link(from, w.place.at(dirBin, program)); err != nil {
			return err
		}
	}
	gates := "render"
	if !w.minor.atLeast(15) {
		gates = tagConfigCluster
	}
	return link(filepath.Join(w.images.gates, imageBin+gates), w.place.at(dirBin, gates))
}

// between gives the controller what the operator made, and over it what is the cluster's own.
func (w *work) between() error {
	if err := copyFlat(w.place.at(dirMCO, "bootstrap", "manifests"), w.place.at(dirMCC)); err != nil {
		return err
	}
	for _, name := range sortedKeys(w.in.OpenShift.Cluster) {
		if plainName.MatchString(name) && (strings.HasSuffix(name, ".machineconfigpool.yaml") || name == "cluster-apiserver-config.yaml" || name == "image-config.yaml") {
			if err := w.write(dirMCC+"/"+name, []byte(w.in.OpenShift.Cluster[name])); err != nil {
				return err
			}
		}
	}
	gate, err := w.featureGate()
	if err != nil {
		return err
	}
	if err := w.write(dirMCC+"/"+fileFeatureGate, gate); err != nil {
		return err
	}
	if w.in.OpenShift.OSStream == "" {
		return nil
	}
	stream, err := streamManifest(w.in.OpenShift.OSStream)
	if err != nil {
		return err
	}
	return w.write(dirMCC+"/99_osimagestream.yaml", stream)
}

// featureGate is what the first program made of the user's: in place, or beside.
func (w *work) featureGate() ([]byte, error) {
	candidates := []string{w.place.at(dirGates, "manifests", fileFeatureGate), w.place.at(dirGates, "output", "manifests", fileFeatureGate)}
	if !w.minor.atLeast(15) {
		slices.Reverse(candidates)
	}
	for _, at := range candidates {
		data, err := readBounded(at)
		if err == nil && nonEmpty(data) {
			return data, nil
		}
	}
	return nil, fmt.Errorf("the feature gate stage of release %s left no %s", w.in.Version, fileFeatureGate)
}

// maxFile bounds what a program leaves behind that is read or copied.
const maxFile = 32 << 20

// readBounded reads a plain file that a program made: no link leads out of the folder.
func readBounded(at string) ([]byte, error) {
	info, err := os.Lstat(at)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s is not a file of at most %d bytes", filepath.Base(at), maxFile)
	}
	return os.ReadFile(at)
}

// write replaces a file, and what a program may have put in its place.
func (w *work) write(path string, data []byte) error {
	at := w.place.at(path)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return fmt.Errorf("making the folder of %s: %w", path, err)
	}
	if err := os.RemoveAll(at); err != nil {
		return fmt.Errorf("replacing %s: %w", path, err)
	}
	if err := os.WriteFile(at, data, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("reading %s: %w", filepath.Base(from), err)
	}
	defer func() { _ = in.Close() }() // it was only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(to), err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(to), err)
	}
	return nil
}

// copyTree copies the plain files of a folder of imagefiles; one that isn't there has none.
func copyTree(from, to string) error {
	err := filepath.WalkDir(from, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, at)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		return copyFile(at, filepath.Join(to, rel), 0o600)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// copyFlat copies the plain files right in a folder that a program wrote.
func copyFlat(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return errors.New("the machine-config-operator left no manifests for the controller")
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		data, err := readBounded(filepath.Join(from, e.Name()))
		if err != nil {
			return fmt.Errorf("the machine-config-operator's manifest %s: %w", e.Name(), err)
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), data, 0o600); err != nil {
			return fmt.Errorf("writing %s: %w", e.Name(), err)
		}
	}
	return nil
}

// secretsOf are the texts of the inputs that no message may repeat.
func secretsOf(in payload.Inputs) []string {
	var list []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		case string:
			list = append(list, v)
			if decoded, err := base64.StdEncoding.DecodeString(v); err == nil && len(decoded) > 0 {
				list = append(list, string(decoded))
				if _, password, ok := bytes.Cut(decoded, []byte(":")); ok {
					list = append(list, string(password))
				}
			}
		}
	}
	for _, document := range [][]byte{in.PullSecret, credentialsOf(in.BootstrapKubeconfig)} {
		var v any
		if json.Unmarshal(document, &v) == nil {
			walk(v)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// credentialsOf are the users of a kubeconfig, in JSON: the rest of it is no secret.
func credentialsOf(kubeconfig []byte) []byte {
	var parsed struct {
		Users []struct{ User map[string]any }
	}
	if yaml.Unmarshal(kubeconfig, &parsed) != nil {
		return nil
	}
	out, err := json.Marshal(parsed.Users)
	if err != nil {
		return nil
	}
	return out
}
