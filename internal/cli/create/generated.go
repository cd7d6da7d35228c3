package create

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"

	"golang.org/x/crypto/ssh"
)

// encryptionKeyLength is that of an AES-256 key.
const encryptionKeyLength = 32

// Generated is what is random about a cluster.
type Generated struct {
	InfraID       string
	EncryptionKey []byte // of Secrets in etcd
	SSHPublic     []byte // one line of authorized_keys; nil: nobody may log in to nodes
	SSHPrivate    []byte // PEM; nil when the user gave the public key
}

// generate makes what o doesn't give, from the random source.
func generate(o Options, random io.Reader) (Generated, error) {
	g := Generated{InfraID: o.InfraID, SSHPublic: o.SSHPublicKey, EncryptionKey: make([]byte, encryptionKeyLength)}
	if _, err := io.ReadFull(random, g.EncryptionKey); err != nil {
		return Generated{}, fmt.Errorf("generating an encryption key: %w", err)
	}
	if g.InfraID == "" {
		suffix, err := randomSuffix(random)
		if err != nil {
			return Generated{}, err
		}
		g.InfraID = infraID(o.Name, suffix)
	}
	if g.SSHPublic == nil && o.GenerateSSH {
		var err error
		if g.SSHPublic, g.SSHPrivate, err = sshKey(random); err != nil {
			return Generated{}, err
		}
	}
	return g, nil
}

// sshKey makes a P-256 key: made at once, and allowed on nodes in FIPS mode, which Ed25519 isn't everywhere.
func sshKey(random io.Reader) (public, private []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, nil, fmt.Errorf("generating an SSH key: %w", err)
	}
	sshPublic, err := ssh.NewPublicKey(&key.PublicKey)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the SSH key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the SSH key: %w", err)
	}
	return ssh.MarshalAuthorizedKey(sshPublic), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// checkSSHPublicKey says what is wrong with the content of a public key file. A private key given by mistake must not end up
// in a Secret that nodes read.
func checkSSHPublicKey(raw []byte) error {
	if _, _, _, _, err := ssh.ParseAuthorizedKey(raw); err != nil {
		return fmt.Errorf("must hold a public key in the form of authorized_keys, such as ~/.ssh/id_ed25519.pub: %w", err)
	}
	return nil
}

// randomSuffix returns 5 lower-case letters and digits. 32 symbols, so that a byte maps to them evenly.
func randomSuffix(random io.Reader) (string, error) {
	raw := make([]byte, infraIDSuffixLength)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", fmt.Errorf("generating an infrastructure id: %w", err)
	}
	const symbols = "abcdefghijklmnopqrstuvwxyz234567"
	for i, b := range raw {
		raw[i] = symbols[b%32]
	}
	return string(raw), nil
}
