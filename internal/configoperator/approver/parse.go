package approver

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Content is what the bytes of a request ask for.
type Content struct {
	Key           string // SHA-256 of the public key, in hexadecimal digits
	CommonName    string
	Organizations []string
	OtherSubject  bool // anything in the subject besides one common name and organizations
	DNS           []string
	IPs           []string // in the form of netip.Addr
	OtherNames    bool     // e-mail addresses or URIs
}

// maxRequestBytes bounds a request; an RSA key of 8192 bits with many names has 4 KiB.
const maxRequestBytes = 16 << 10

var (
	oidCommonName   = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidOrganization = asn1.ObjectIdentifier{2, 5, 4, 10}
)

// parse reads a request in PEM. Its errors are in our words: the bytes are a stranger's.
func parse(data []byte) (Content, error) {
	if len(data) > maxRequestBytes {
		return Content{}, fmt.Errorf("the request has %d bytes; at most %d are allowed", len(data), maxRequestBytes)
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return Content{}, errors.New("the request isn't one PEM block of type CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return Content{}, errors.New("the request isn't a PKCS #10 certificate request")
	}
	if err := strongKey(request.PublicKey); err != nil {
		return Content{}, err
	}
	if request.CheckSignature() != nil {
		return Content{}, errors.New("the request isn't signed by its own key")
	}
	if len(request.DNSNames)+len(request.IPAddresses) > maxNames {
		return Content{}, fmt.Errorf("the request has more than %d names and addresses", maxNames)
	}
	key := sha256.Sum256(request.RawSubjectPublicKeyInfo)
	c := Content{
		Key: hex.EncodeToString(key[:]), CommonName: request.Subject.CommonName, Organizations: request.Subject.Organization,
		OtherNames: len(request.EmailAddresses)+len(request.URIs) > 0,
	}
	commonNames := 0
	for _, name := range request.Subject.Names {
		switch {
		case name.Type.Equal(oidCommonName):
			commonNames++
		case !name.Type.Equal(oidOrganization):
			c.OtherSubject = true
		}
	}
	c.OtherSubject = c.OtherSubject || commonNames != 1
	for _, name := range request.DNSNames {
		if !isName(name) {
			return Content{}, errors.New("the request has a name that is no DNS name")
		}
		c.DNS = append(c.DNS, name)
	}
	for _, ip := range request.IPAddresses {
		addr, ok := netip.AddrFromSlice(ip)
		if !ok {
			return Content{}, errors.New("the request has an address that is no IP address")
		}
		c.IPs = append(c.IPs, addr.Unmap().String())
	}
	return c, nil
}

// strongKey keeps out keys that are too weak, and those whose size makes checking them slow.
func strongKey(key any) error {
	switch k := key.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return nil
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < 2048 || bits > 8192 {
			return fmt.Errorf("an RSA key of %d bits; 2048 to 8192 are allowed", bits)
		}
		return nil
	default:
		return errors.New("the kind of key isn't known; ECDSA, Ed25519 and RSA are")
	}
}

func isName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }
