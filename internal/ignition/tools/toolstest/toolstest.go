// Package toolstest plays the machine-config tools of OpenShift releases: programs with the published flags, which check what they are given as the real
// ones would, and write what those write, as far as somebody reads it. They are real processes: the images have scripts that start the test again, whose
// TestMain has to call Main first.
package toolstest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"hcp.internal/platform/internal/release/releasetest"
)

// argument is by what the test, started again, knows that it is to play.
const argument = "play-machine-config-tool"

// Main plays a program, and does not return then, if the process was started for it.
func Main() {
	if len(os.Args) < 5 || os.Args[1] != argument {
		return
	}
	t := tool{version: os.Args[2], name: os.Args[3], mode: Mode(os.Args[4])}
	if err := t.run(os.Args[5:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Mode is how a program behaves.
type Mode string

// Modes. Hostile programs do one bad thing and go on, or wait.
const (
	Good        Mode = "good"
	Exit        Mode = "exit"        // refuses its input, and repeats its secrets
	Hang        Mode = "hang"        // never ends
	Fork        Mode = "fork"        // starts processes, in sessions of their own, that never end
	Leave       Mode = "leave"       // ends, and leaves such a process behind
	Memory      Mode = "memory"      // takes MemoryTaken, and waits
	Fill        Mode = "fill"        // fills the disk with DiskFilled in many files, and waits
	BigFile     Mode = "bigfile"     // writes one file of a gigabyte
	Talk        Mode = "talk"        // says a gigabyte
	Link        Mode = "link"        // leaves a link to a file of the system as its output
	Huge        Mode = "huge"        // serves more than anybody reads
	NoIgnition  Mode = "no-ignition" // serves something else
	Unavailable Mode = "unavailable" // serves an error
)

// What hostile programs take: twice what a test should allow them. A bound that is broken stays so until it is looked at, which takes as long as it takes on a busy
// machine, and the machine's other tests keep their memory and their disk meanwhile.
const (
	MemoryTaken = 512 << 20
	DiskFilled  = 128 << 20
)

// Release is a release to publish.
type Release struct {
	Version string
	// Modes by program; missing: Good.
	Modes map[string]Mode
	// Layers go over those of the machine-config-operator's image.
	Layers []map[string][]byte
	// Tags are further ones, and what is to be there in place of those that there are; an empty one is left out.
	Tags map[string]string
}

// Push publishes a release with the tools, and returns its reference, by tag.
func Push(t testing.TB, r *releasetest.Registry, rel Release) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := func(program string) []byte {
		mode := rel.Modes[program]
		if mode == "" {
			mode = Good
		}
		return fmt.Appendf(nil, "#!/bin/sh\nexec '%s' %s %s %s %s \"$@\"\n", binary, argument, rel.Version, program, mode)
	}
	layers := []map[string][]byte{{
		"usr/lib/os-release": []byte("ID=\"rhel\"\nVERSION_ID=\"9.4\"\n"), "etc/passwd": []byte("root"),
		"etc/mcc/templates/master/00-master/_base/files/old.yaml": []byte("removed by a later layer"),
	}, {
		"usr/bin/machine-config-operator":                             script("machine-config-operator"),
		"usr/bin/machine-config-controller":                           script("machine-config-controller"),
		"usr/bin/machine-config-server":                               script("machine-config-server"),
		"etc/mcc/templates/master/00-master/_base/files/.wh.old.yaml": nil,
		"etc/mcc/templates/master/00-master/_base/files/kubelet.yaml": []byte("path: /etc/kubernetes/kubelet.conf\n"),
		"etc/mcc/templates/common/_base/units/kubelet.service.yaml":   []byte("name: kubelet.service\n"),
	}}
	mco := releasetest.Image(t, append(layers, rel.Layers...)...)
	config := releasetest.Image(t, map[string][]byte{"usr/bin/render": script("render"), "manifests/0000_10_crd.yaml": []byte("kind: CustomResourceDefinition\n")})
	old := releasetest.Image(t, map[string][]byte{"usr/bin/cluster-config-operator": script("cluster-config-operator")})
	tags := map[string]string{
		"machine-config-operator": digestOf(t, r, "mco:"+rel.Version, mco), "cluster-config-api": digestOf(t, r, "config-api:"+rel.Version, config),
		"cluster-config-operator": digestOf(t, r, "config:"+rel.Version, old),
	}
	for _, tag := range []string{"machine-os-content", "pod", "keepalived-ipfailover", "coredns", "haproxy-router", "baremetal-runtimecfg"} {
		tags[tag] = r.Host + "/" + tag + "@sha256:" + strings.Repeat("1", 64)
	}
	for tag, image := range rel.Tags {
		if tags[tag] = image; image == "" {
			delete(tags, tag)
		}
	}
	return r.Push(t, "ocp-release:"+rel.Version, releasetest.Image(t, map[string][]byte{"release-manifests/image-references": References(t, rel.Version, tags)}))
}

// References is an image-references file whose Kubernetes has a version of its own.
func References(t testing.TB, version string, tags map[string]string) []byte {
	t.Helper()
	var stream map[string]any
	if err := json.Unmarshal(releasetest.References(t, version, tags), &stream); err != nil {
		t.Fatal(err)
	}
	for _, tag := range stream["spec"].(map[string]any)["tags"].([]any) {
		tag.(map[string]any)["annotations"] = map[string]any{"io.openshift.build.versions": "kubernetes=1.35.2"}
	}
	out, err := json.Marshal(stream)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
