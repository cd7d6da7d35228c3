// Package nodetrust is what the control-plane-operator and the hosted-cluster-config-operator agree on while authorities are replaced that nodes know:
// the control-plane-operator writes which certificates nodes are to trust, the config operator carries them to every node and reports when all have them,
// and the successors sign no earlier than that.
package nodetrust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"strings"
)

// ConfigMap, in the namespace of the control plane and in kube-system of the hosted cluster, holds what nodes trust. It is there from the first replacement
// of an authority on: until then nodes have what they booted with.
const ConfigMap = "node-trust"

// Keys of the ConfigMap.
const (
	// RootKey are the authorities of the hosted API server, in PEM, in the order of Sorted.
	RootKey = "root-ca.crt"
	// KubeletKey are the authorities of who may call kubelets, likewise.
	KubeletKey = "kubelet-ca.crt"
	// AwaitedKey is "true" while a successor waits for the nodes; it is in the control plane's ConfigMap alone.
	AwaitedKey = "awaited"
)

// hashLength of Hash, in hexadecimal digits.
const hashLength = 16

// reportPrefix comes before the hash at the end of the condition's message.
const reportPrefix = "trust="

// Sorted are the certificates of bundles in PEM, each once, in an order that does not depend on theirs: which of them signs at present is nothing to nodes.
func Sorted(bundles ...[]byte) []byte {
	var blocks []string
	for _, rest := range bundles {
		for {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			if block.Type == "CERTIFICATE" {
				blocks = append(blocks, string(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})))
			}
		}
	}
	slices.Sort(blocks)
	return []byte(strings.Join(slices.Compact(blocks), ""))
}

// Hash identifies what nodes are to trust; 16 hexadecimal digits.
func Hash(root, kubelet []byte) string {
	sum := sha256.New()
	sum.Write(root)
	sum.Write([]byte{0})
	sum.Write(kubelet)
	return hex.EncodeToString(sum.Sum(nil))[:hashLength]
}

// HashOf is Hash of a ConfigMap's data; empty when it lacks a key.
func HashOf(data map[string]string) string {
	if data[RootKey] == "" || data[KubeletKey] == "" {
		return ""
	}
	return Hash([]byte(data[RootKey]), []byte(data[KubeletKey]))
}

// Holds says whether a ConfigMap's data has a certificate, given in PEM.
func Holds(data map[string]string, cert []byte) bool {
	cert = bytes.TrimSpace(Sorted(cert))
	return len(cert) > 0 && (strings.Contains(data[RootKey], string(cert)) || strings.Contains(data[KubeletKey], string(cert)))
}

// Report is the end of the message of condition NodesTrustAuthorities: what all nodes trust.
func Report(hash string) string { return reportPrefix + hash }

// Reported is the hash of what all nodes trust, from the message of condition NodesTrustAuthorities while that is True; empty: nobody says so.
func Reported(message string) string {
	_, hash, found := strings.Cut(message, reportPrefix)
	if !found || len(hash) != hashLength {
		return ""
	}
	return hash
}
