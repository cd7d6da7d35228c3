package encryption

import (
	"fmt"
	"slices"
)

// Wanted is what the order of keys is decided from.
type Wanted struct {
	// Live are the keys that kube-apiserver is configured with, the writing one first. Empty before the first time.
	Live []Key
	// Converged is true when servers run, and every one of them has exactly the live configuration.
	Converged bool
	// Unencrypted is true when servers were made before there was a configuration: they write without encryption, and read
	// nothing else.
	Unencrypted bool
	// Active is status.activeKey, what everything is encrypted with that Target did not encrypt; nil while nobody has said, and
	// Plain when the status has a target only.
	Active *Key
	// Target is status.targetKey; nil outside of a rotation.
	Target *Key
	// Promoted is what is to become of Target, see Observed.Promotion.
	Promoted Promotion
	// Spec is the active key of the spec. It counts only while Active is nil: from then on the status says when a change of
	// the spec begins.
	Spec *Key
	// Backup is the backup key of the spec, which is read with for as long as it is named there.
	Backup *Key
}

// MaxKeys bounds a configuration. Rotations end with one key, so that more than this are no rotations any more but a loop.
const MaxKeys = 8

// Order gives the keys of the next configuration, the writing one first.
//
// No server ever writes with a key that another one that runs could not read: a new key is first added behind the one that
// writes, and moves to the front only when every server has it. A server that can't use one of its keys does not get ready, so
// that a key which can't be used never moves. And no key goes while something stored may need it; when that would make too
// many, it is an error.
func Order(w Wanted) ([]Key, error) {
	keys := slices.Clone(w.Live)
	switch {
	case w.Active == nil && len(keys) == 0 && w.Unencrypted:
		keys = readWith([]Key{Plain}, w.Spec)
	case w.Active == nil:
		keys = writeWith(keys, w.Spec, w.Converged)
	case len(keys) == 0 && w.Target != nil && w.Promoted == PromotionDone:
		keys = []Key{*w.Target} // All servers were writing with it, so that all of them can read it.
	case len(keys) == 0:
		keys = readWith([]Key{*w.Active}, w.Target)
	case w.Target != nil && w.Promoted == PromotionOff:
		if at := index(keys, w.Target.Hash()); at > 0 {
			keys = slices.Delete(keys, at, at+1) // It never wrote.
		}
	case w.Target != nil:
		keys = writeWith(keys, w.Target, w.Converged)
	case keys[0].Hash() == w.Active.Hash():
		keys = keys[:1] // Everything is encrypted with it.
	}
	keys = readWith(readWith(keys, w.Active), w.Backup)
	for i := len(keys) - 1; i > 0; i-- {
		if keys[i].plain() {
			keys = slices.Delete(keys, i, i+1) // What is stored as it is can always be read.
		}
	}
	if len(keys) > MaxKeys {
		return nil, fmt.Errorf("there would be %d encryption keys, and at most %d are possible: undo the last change of spec.secretEncryption until condition EtcdDataEncryptionUpToDate is True", len(keys), MaxKeys)
	}
	return keys, nil
}

// writeWith takes the next step towards writing with key.
func writeWith(keys []Key, key *Key, converged bool) []Key {
	if key == nil {
		return keys
	}
	switch at := index(keys, key.Hash()); {
	case len(keys) == 0:
		return []Key{*key}
	case at < 0:
		return slices.Insert(keys, 1, *key)
	case at > 0 && converged:
		key := keys[at] // under the name that etcd's values know
		return slices.Insert(slices.Delete(keys, at, at+1), 0, key)
	}
	return keys
}

// readWith adds key at the end, unless it is there.
func readWith(keys []Key, key *Key) []Key {
	if key == nil || index(keys, key.Hash()) >= 0 {
		return keys
	}
	return append(keys, *key)
}
