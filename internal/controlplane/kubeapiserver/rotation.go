package kubeapiserver

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// aesKey is a key and the name under which etcd's values remember it.
type aesKey struct {
	name string
	data []byte
}

func newKey(data []byte) aesKey { return aesKey{name: keyName(dataHash(data)), data: data} }

// dataHash is the fingerprint of a key, as status.secretEncryption has it.
func dataHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// keyName tells keys apart without telling what they are. It depends on nothing but the key, so that a key keeps its name
// when it moves from active to backup, or to another Secret.
func keyName(hash string) string { return "key-" + hash[:min(16, len(hash))] }

// rotation is what the order of keys is decided from.
type rotation struct {
	// live are the keys that kube-apiserver is configured with, the writing one first. Empty before the first time.
	live []aesKey
	// converged is true when every server that runs has exactly the live configuration.
	converged bool
	// want is the key that is to write: the target of a rotation, else the one in the spec.
	want aesKey
	// known are further keys that the spec or the status name: the backup key, the key that data is still encrypted with.
	known []aesKey
	// migrated is true when everything stored is encrypted with want, so that all other keys can go.
	migrated bool
}

// maxKeys bounds the keys that are kept for reading while nobody says that what they encrypted is gone.
const maxKeys = 8

// order gives the keys of the next configuration, the writing one first.
//
// No server ever writes with a key that another one that runs could not read: a new key is first added behind the one that
// writes, and moves to the front only when every server has it. And no key goes while something stored may need it.
func (r rotation) order() []aesKey {
	keys := slices.Clone(r.live)
	at := slices.IndexFunc(keys, func(k aesKey) bool { return k.name == r.want.name })
	switch {
	case len(keys) == 0: // Nothing is encrypted yet.
		keys = []aesKey{r.want}
	case at < 0:
		keys = slices.Insert(keys, 1, r.want)
	case at > 0 && r.converged:
		keys = slices.Insert(slices.Delete(keys, at, at+1), 0, r.want)
	}
	if r.migrated && keys[0].name == r.want.name {
		keys = keys[:1]
	}
	for _, key := range r.known {
		if !slices.ContainsFunc(keys, func(k aesKey) bool { return k.name == key.name }) {
			keys = append(keys, key)
		}
	}
	return keys[:min(len(keys), maxKeys)]
}
