// Package kmsplugin is a plugin by which kube-apiserver has its encryption keys held by another process: KMS v2, with keys from files.
//
// kube-apiserver makes a seed of keys, has the plugin encrypt it, and stores the result beside each object that it encrypts with a key of the seed. So the
// plugin is asked when a server starts, when a seed is met for the first time, and each minute whether it is well; never for an object.
//
// Each file DIR/NAME.key of 32 bytes is served on a socket of its own, NAME.sock. The folder is looked through again and again: a server of before a change
// of keys may be started anew with the configuration of after it. A key whose file goes is served on until the process ends, for the same reason.
//
// It is a subcommand of control-plane-operator and not of the sidecar binary, because it needs gRPC, which every sidecar would pay for.
package kmsplugin

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/kms/pkg/service"

	"hcp.internal/platform/internal/encryption"
)

const (
	// maxSeed bounds what is encrypted and decrypted. kube-apiserver takes no answer of more than a kilobyte.
	maxSeed = 1 << 10
	// maxRequest bounds a message: a seed, and annotations, of which we make none.
	maxRequest = 64 << 10
	// maxKeys bounds the folder; a rotation needs two.
	maxKeys = encryption.MaxKeys
	// answerTime bounds the greeting of a connection, and how long the last requests may take at the end.
	answerTime = 3 * time.Second

	version, well = "v2", "ok"
)

// Plugin serves every key of a folder.
type Plugin struct {
	Keys, Sockets string // folders
	// Interval between two looks into Keys.
	Interval time.Duration
	Log      logr.Logger

	served map[string]*grpc.Server // by the name of the key
	told   string                  // the last complaint, which is not repeated
}

// Run serves until ctx ends, which is no error. It is one when there is no usable key to begin with.
func (p *Plugin) Run(ctx context.Context) error {
	p.served = map[string]*grpc.Server{}
	defer p.stop()
	if err := p.look(ctx); err != nil {
		return err
	}
	if len(p.served) == 0 {
		return fmt.Errorf("there is no key in %s: it needs a file NAME%s of %d bytes", p.Keys, encryption.KeyFile(""), encryption.KeySize)
	}
	tick := time.NewTicker(p.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		complaint := ""
		if err := p.look(ctx); err != nil {
			complaint = err.Error()
		}
		if complaint != "" && complaint != p.told {
			p.Log.Info("a key is not served", "problem", complaint)
		}
		p.told = complaint
	}
}

// look begins to serve keys that have come. One that can't be used keeps no other from being served.
func (p *Plugin) look(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(p.Keys, "*"+encryption.KeyFile("")))
	if err != nil {
		return fmt.Errorf("looking into %s: %w", p.Keys, err)
	}
	var problems []error
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), encryption.KeyFile(""))
		if p.served[name] != nil {
			continue
		}
		if len(p.served) >= maxKeys {
			return errors.Join(append(problems, fmt.Errorf("%s has more than %d keys: the rest is not served", p.Keys, maxKeys))...)
		}
		if err := p.serve(ctx, name, file); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

func (p *Plugin) serve(ctx context.Context, name, file string) error {
	data, err := readKey(file)
	if err != nil {
		return err
	}
	if key := encryption.NewKey(data).In(encryption.InPlugin); key.Name != name {
		return fmt.Errorf("%s has another key than its name says: put the right one there", file)
	}
	k, err := newKey(name, data)
	if err != nil {
		return err
	}
	socket := encryption.Socket(p.Sockets, name)
	// Of a process of before, in the same pod.
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the socket of before: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("listening for kube-apiserver: %w", err)
	}
	// Containers of a pod may have different users; the folder is theirs alone.
	if err := os.Chmod(socket, 0o666); err != nil {
		_ = listener.Close()
		return fmt.Errorf("opening %s to the other containers: %w", socket, err)
	}
	server := grpc.NewServer(grpc.ConnectionTimeout(answerTime), grpc.MaxRecvMsgSize(maxRequest))
	kmsapi.RegisterKeyManagementServiceServer(server, service.NewGRPCService("", answerTime, k))
	p.served[name] = server
	p.Log.Info("serving a key", "key", name)
	go func() {
		if err := server.Serve(listener); err != nil {
			p.Log.Error(err, "serving a key", "key", name)
		}
	}()
	return nil
}

// stop ends all servers, and removes their sockets.
func (p *Plugin) stop() {
	for _, s := range p.served {
		done := time.AfterFunc(answerTime, s.Stop)
		s.GracefulStop()
		done.Stop()
	}
}

// readKey reads a file of the size of a key, and not more.
func readKey(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, encryption.KeySize+1))
	if err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	if len(data) != encryption.KeySize {
		return nil, fmt.Errorf("%s is no key: it must have %d bytes", file, encryption.KeySize)
	}
	return data, nil
}

// key answers for one key. Its name is the key_id of the protocol: other bytes have another name.
type key struct {
	name string
	aead cipher.AEAD
}

var _ service.Service = &key{}

func newKey(name string, data []byte) (*key, error) {
	block, err := aes.NewCipher(data)
	if err != nil {
		return nil, fmt.Errorf("using key %s: %w", name, err)
	}
	// A random nonce is safe for 2³² messages of one key, and servers ask a few times a day.
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("using key %s: %w", name, err)
	}
	return &key{name: name, aead: aead}, nil
}

// Encrypt implements service.Service.
func (k *key) Encrypt(_ context.Context, _ string, plain []byte) (*service.EncryptResponse, error) {
	if len(plain) == 0 || len(plain)+k.aead.Overhead() > maxSeed {
		return nil, fmt.Errorf("%d bytes can't be encrypted: at most %d", len(plain), maxSeed-k.aead.Overhead())
	}
	return &service.EncryptResponse{Ciphertext: k.aead.Seal(nil, nil, plain, []byte(k.name)), KeyID: k.name}, nil
}

// Decrypt implements service.Service.
func (k *key) Decrypt(_ context.Context, _ string, req *service.DecryptRequest) ([]byte, error) {
	if req.KeyID != k.name {
		return nil, fmt.Errorf("this is key %s, and not %.80q", k.name, req.KeyID)
	}
	if len(req.Ciphertext) > maxSeed {
		return nil, fmt.Errorf("%d bytes are more than %d", len(req.Ciphertext), maxSeed)
	}
	plain, err := k.aead.Open(nil, nil, req.Ciphertext, []byte(k.name))
	if err != nil {
		return nil, errors.New("it was not encrypted with this key, or changed since")
	}
	return plain, nil
}

// Status implements service.Service. It says that the key works only when it has just done so.
func (k *key) Status(ctx context.Context) (*service.StatusResponse, error) {
	probe := make([]byte, encryption.KeySize)
	if _, err := rand.Read(probe); err != nil {
		return nil, fmt.Errorf("reading random bytes: %w", err)
	}
	sealed, err := k.Encrypt(ctx, "", probe)
	if err != nil {
		return nil, err
	}
	got, err := k.Decrypt(ctx, "", &service.DecryptRequest{Ciphertext: sealed.Ciphertext, KeyID: k.name})
	if err != nil || subtle.ConstantTimeCompare(got, probe) != 1 {
		return nil, fmt.Errorf("key %s does not decrypt what it encrypted", k.name)
	}
	return &service.StatusResponse{Version: version, Healthz: well, KeyID: k.name}, nil
}
