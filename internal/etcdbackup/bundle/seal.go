package bundle

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/minio/sio"
)

const (
	// KeySize is how many bytes a key has.
	KeySize = 32
	// magic begins a sealed file. An etcd snapshot begins with a page of its database, whose number is zero.
	magic = "HCPSEAL1"
	// fingerprintSize is how many bytes name a key: enough to tell keys apart, and nothing to find one by.
	fingerprintSize = 8
	saltSize        = 32
	headerSize      = len(magic) + fingerprintSize + saltSize
)

// Errors of Open and OpenNamed.
var (
	// ErrNoKey: the file is sealed, and no key was given.
	ErrNoKey = errors.New("the file is sealed with a key, and no key was given")
	// ErrWrongKey: the file is sealed with another key.
	ErrWrongKey = errors.New("the file is sealed with another key")
	// ErrUnsealed: a key was given, and the file is not sealed.
	ErrUnsealed = errors.New("the file is not sealed, although a key was given: anyone who may write to the storage can have put it there. Use another backup; " +
		"a snapshot of your own is read, if you trust it, by a name that ends with " + SnapshotEnd)
	// ErrDamaged: something is changed, missing or too much.
	ErrDamaged = errors.New("the file is damaged: its seal does not match its content")
)

// Key is the user's.
type Key []byte

// ParseKey reads the content of a Secret or file: 32 bytes, or 32 bytes in base64, as `openssl rand -base64 32` prints them. Its errors don't show it.
func ParseKey(raw []byte) (Key, error) {
	if len(raw) == KeySize {
		return Key(raw), nil
	}
	key, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(raw)))
	if err != nil || len(key) != KeySize {
		return nil, fmt.Errorf("the encryption key must be %d bytes, or those in base64 (openssl rand -base64 %d)", KeySize, KeySize)
	}
	return Key(key), nil
}

// Fingerprint names the key: 16 hex digits. Empty for no key.
func (k Key) Fingerprint() string {
	if len(k) == 0 {
		return ""
	}
	return hex.EncodeToString(k.derive("fingerprint", nil)[:fingerprintSize])
}

// derive makes a key for one purpose, so that none is used twice.
func (k Key) derive(purpose string, salt []byte) []byte {
	out, err := hkdf.Key(sha256.New, k, salt, "hypershift backup 1: "+purpose, KeySize)
	if err != nil {
		panic(err) // only for a length that SHA-256 can't make
	}
	return out
}

// mac authenticates a manifest.
func (k Key) mac(content []byte) string {
	h := hmac.New(sha256.New, k.derive("manifest", nil))
	h.Write(content) // never fails
	return hex.EncodeToString(h.Sum(nil))
}

// Seal is a stream of src, which must not be empty, sealed. random gives the salt that makes each file's key another.
func (k Key) Seal(src io.Reader, random io.Reader) (io.Reader, error) {
	head := make([]byte, 0, headerSize)
	head = append(head, magic...)
	head = append(head, k.derive("fingerprint", nil)[:fingerprintSize]...)
	head = head[:headerSize]
	salt := head[headerSize-saltSize:]
	if _, err := io.ReadFull(random, salt); err != nil {
		return nil, fmt.Errorf("reading random bytes: %w", err)
	}
	body, err := sio.EncryptReader(src, sio.Config{MinVersion: sio.Version20, Key: k.derive("file", salt)})
	if err != nil {
		return nil, fmt.Errorf("sealing: %w", err)
	}
	return io.MultiReader(bytes.NewReader(head), body), nil
}

// Open is a stream of what was sealed. A file that isn't sealed is passed on as it is, whether there is a key or not: who relies on a key uses OpenNamed, or looks at sealed. Reading ends with ErrDamaged when
// anything was changed or is missing; what was read until then must not be used.
func Open(src io.Reader, k Key) (_ io.Reader, sealed bool, _ error) {
	head := make([]byte, headerSize)
	n, err := io.ReadFull(src, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	head = head[:n]
	if !bytes.HasPrefix(head, []byte(magic)) {
		return io.MultiReader(bytes.NewReader(head), src), false, nil
	}
	switch {
	case n < headerSize:
		return nil, true, ErrDamaged
	case len(k) == 0:
		return nil, true, ErrNoKey
	case !bytes.Equal(head[len(magic):len(magic)+fingerprintSize], k.derive("fingerprint", nil)[:fingerprintSize]):
		return nil, true, ErrWrongKey
	}
	body, err := sio.DecryptReader(src, sio.Config{MinVersion: sio.Version20, Key: k.derive("file", head[headerSize-saltSize:])})
	if err != nil {
		return nil, true, fmt.Errorf("opening: %w", err)
	}
	return opener{body}, true, nil
}

// opener says ErrDamaged where the library says what it found.
type opener struct{ r io.Reader }

func (o opener) Read(p []byte) (int, error) {
	n, err := o.r.Read(p)
	var broken sio.Error
	if errors.As(err, &broken) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrDamaged
	}
	return n, err
}
