package konnectivity

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// target is where a tunnel is to end: host is an IP address without zone, or a DNS name.
type target struct {
	host string
	port uint16
}

func (t target) String() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

// parseTarget reads the authority of a CONNECT request.
func parseTarget(authority string) (target, error) {
	if len(authority) > maxTargetLength {
		return target{}, fmt.Errorf("a target of %d bytes; at most %d are allowed", len(authority), maxTargetLength)
	}
	host, port, err := net.SplitHostPort(authority)
	if err != nil {
		return target{}, errors.New("the target isn't of the form host:port")
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || port[0] == '+' {
		return target{}, errors.New("the target's port isn't a number from 1 to 65535")
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return target{}, errors.New("the target's address has a zone")
		}
		return target{addr.Unmap().String(), uint16(number)}, nil
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if len(validation.IsDNS1123Subdomain(host)) > 0 {
		return target{}, errors.New("the target's host is neither an IP address nor a DNS name")
	}
	return target{host, uint16(number)}, nil
}

// allowed refuses addresses that mean the agent's own machine or link, such as the metadata service of a cloud: nothing that
// kube-apiserver has to reach is there, and users of the hosted API could aim at it.
func allowed(addr netip.Addr) error {
	addr = addr.Unmap()
	if addr.IsLoopback() || addr.IsUnspecified() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsInterfaceLocalMulticast() {
		return fmt.Errorf("connections to %s are not forwarded", addr)
	}
	return nil
}

// Identifiers are what an agent says it is good for.
type Identifiers struct {
	// Default agents take whatever nobody has claimed.
	Default bool
	// Hosts are addresses and names that are reached through this agent: before all others the one that it is on, and others like everything else.
	Hosts map[string]bool
}

// ParseIdentifiers reads what --agent-identifiers has, in the form of a URL query: default-route=true, ipv4=ADDRESS,
// ipv6=ADDRESS, host=NAME; each may be repeated. cidr and uid are known to other servers, and have no meaning here.
func ParseIdentifiers(text string) (Identifiers, error) {
	ids := Identifiers{Hosts: map[string]bool{}}
	if len(text) > maxIdentifiersLength {
		return ids, fmt.Errorf("agent identifiers of %d bytes; at most %d are allowed", len(text), maxIdentifiersLength)
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return ids, fmt.Errorf("reading agent identifiers: %w", err)
	}
	count := 0
	for key, list := range values {
		if count += len(list); count > maxIdentifiers {
			return ids, fmt.Errorf("more than %d agent identifiers", maxIdentifiers)
		}
		for _, value := range list {
			switch key {
			case "default-route":
				on, err := strconv.ParseBool(value)
				if err != nil {
					return ids, fmt.Errorf("agent identifier default-route is neither true nor false")
				}
				ids.Default = ids.Default || on
			case "ipv4", "ipv6":
				addr, err := netip.ParseAddr(value)
				if err != nil || addr.Zone() != "" {
					return ids, fmt.Errorf("agent identifier %s is not an IP address", key)
				}
				ids.Hosts[addr.Unmap().String()] = true
			case "host":
				name := strings.TrimSuffix(strings.ToLower(value), ".")
				if len(validation.IsDNS1123Subdomain(name)) > 0 {
					return ids, errors.New("agent identifier host is not a DNS name")
				}
				ids.Hosts[name] = true
			case "cidr", "uid":
			default:
				return ids, errors.New("unknown agent identifier; known are default-route, ipv4, ipv6, host, cidr, uid")
			}
		}
	}
	return ids, nil
}
