package connect

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// CheckCertificates says what is wrong with a bundle of PEM certificates. Private keys are refused: the bundle goes into a
// ConfigMap that anybody may read.
func CheckCertificates(raw []byte) error {
	count := 0
	for rest := raw; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("holds a %s; it must hold certificates only", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("certificate %d: %w", count+1, err)
		}
		count++
	}
	if count == 0 {
		return errors.New("holds no PEM certificate")
	}
	return nil
}
