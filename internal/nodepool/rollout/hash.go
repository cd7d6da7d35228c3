package rollout

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Inputs is what machines depend on: what they read when they boot, and nothing else, because another hash replaces them. All of it comes from users.
type Inputs struct {
	// Version of the release, such as 1.36.3.
	Version string
	// Config are the manifests of spec.config in canonical form, see nodeconfig.
	Config string
	// PullSecret and TrustBundle are the names of the Secret and ConfigMap in the HostedCluster. Another content under the same name
	// changes no machine.
	PullSecret, TrustBundle string
	// Global are the cluster-wide settings that reach machines, as canonical JSON.
	Global string
	// OSStream is the operating system where it is not the default of the version. Machines of Kubernetes releases don't read it, so it is set only to
	// find out what an older operator hashed.
	OSStream string
}

// hashLength is that of a hash on the wire, in characters: it is a part of the names of Secrets.
const hashLength = 8

// Hash identifies configuration and release. It is a part of names and of what machines send when they boot.
func (in Inputs) Hash() string {
	return digest("version", in.Version, "config", in.ConfigHash())
}

// ConfigHash identifies the configuration without the release.
func (in Inputs) ConfigHash() string {
	return digest("config", in.Config, "pullSecret", in.PullSecret, "trustBundle", in.TrustBundle, "global", in.Global, "osStream", in.OSStream)
}

// digest hashes names and values in turns. Each is preceded by its length, so that no two lists are the same text; an empty value counts
// as none, so that inputs added later change no hash while they are empty.
func digest(pairs ...string) string {
	h := sha256.New()
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		for _, s := range pairs[i : i+2] {
			var length [8]byte
			binary.BigEndian.PutUint64(length[:], uint64(len(s)))
			h.Write(length[:])
			h.Write([]byte(s))
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:hashLength]
}
