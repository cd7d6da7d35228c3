package boot

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// Metadata is what a machine is told from outside, by the environment of its first process.
type Metadata struct {
	ProviderID string // MACHINE_PROVIDER_ID
	NodeName   string // MACHINE_NODE_NAME
	NodeIP     string // MACHINE_NODE_IP
	Bounds     Bounds
}

// MetadataFile is where units find it.
const MetadataFile = "/run/metadata/machine"

var (
	validNode     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	validProvider = regexp.MustCompile(`^[a-z]+://[-a-z0-9./]{1,500}$`)
)

// ReadMetadata takes it from the environment.
func ReadMetadata(getenv func(string) string) (Metadata, error) {
	m := Metadata{ProviderID: getenv("MACHINE_PROVIDER_ID"), NodeName: getenv("MACHINE_NODE_NAME"), NodeIP: getenv("MACHINE_NODE_IP")}
	var problems []error
	if !validProvider.MatchString(m.ProviderID) {
		problems = append(problems, fmt.Errorf("MACHINE_PROVIDER_ID %q is not such as local://namespace/name", m.ProviderID))
	}
	if !validNode.MatchString(m.NodeName) {
		problems = append(problems, fmt.Errorf("MACHINE_NODE_NAME %q is no name of a node", m.NodeName))
	}
	if _, err := netip.ParseAddr(m.NodeIP); err != nil {
		problems = append(problems, fmt.Errorf("MACHINE_NODE_IP %q is no address", m.NodeIP))
	}
	var err error
	if m.Bounds, err = readBounds(getenv); err != nil {
		problems = append(problems, err)
	}
	return m, errors.Join(problems...)
}

// file is the content of MetadataFile: lines for EnvironmentFile=.
func (m Metadata) file() []byte {
	var b strings.Builder
	for _, line := range [][2]string{{"MACHINE_NODE_IP", m.NodeIP}, {"MACHINE_NODE_NAME", m.NodeName}, {"MACHINE_PROVIDER_ID", m.ProviderID}} {
		fmt.Fprintf(&b, "%s=%s\n", line[0], line[1])
	}
	return []byte(b.String())
}
