package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/etcdbackup/upload/store"
)

// storage is how a backup is read: by a Secret of the operator's namespace, or by files where there is none yet.
type storage struct {
	operator, secret string
	region           string
	credentials      string // files
	key, ca          string
}

func (s *storage) addFlags(cmd *cobra.Command) {
	s.operator = "hypershift"
	f := cmd.Flags()
	f.StringVar(&s.operator, "operator-namespace", s.operator, "Namespace of the operator")
	f.StringVar(&s.secret, "credentials", "", "Secret of the operator's namespace that the backup was made with")
	f.StringVar(&s.region, "region", "us-east-1", "Region of the bucket")
	f.StringVar(&s.credentials, "credentials-file", "", "AWS credentials file, or Azure credentials, if there is no such Secret")
	f.StringVar(&s.key, "encryption-key-file", "", "File with the key that encrypts the backup, if there is no such Secret")
	f.StringVar(&s.ca, "ca-bundle-file", "", "File with certificates that the storage is trusted by")
	cmd.MarkFlagsMutuallyExclusive("credentials", "credentials-file")
}

// opened is a storage that can be read, and what etcd needs to read it, too.
type opened struct {
	store.Store
	file string // name of the snapshot in the store
	key  bundle.Key
	data map[string][]byte // of Secret etcd-restore
}

// open reads Secret and files. The folder for what libraries take as files is removed by done.
func (s *storage) open(ctx context.Context, c client.Client, from string) (_ opened, done func(), _ error) {
	o := opened{data: map[string][]byte{backups.RegionKey: []byte(s.region)}}
	dir, err := os.MkdirTemp("", "restore-")
	if err != nil {
		return o, nil, err
	}
	done = func() { _ = os.RemoveAll(dir) } // it is a temporary one
	if err = s.read(ctx, c, o.data, strings.HasPrefix(from, backups.Scheme)); err == nil {
		o.key, err = keyOf(o.data)
	}
	if err != nil {
		done()
		return o, nil, err
	}
	options := store.Options{Region: s.region}
	for key, into := range map[string]*string{backups.CredentialsKey: &options.Credentials, backups.CABundleKey: &options.CABundle} {
		if len(o.data[key]) == 0 {
			continue
		}
		*into = filepath.Join(dir, key)
		if err := os.WriteFile(*into, o.data[key], 0o600); err != nil {
			done()
			return o, nil, err
		}
	}
	if o.Store, o.file, err = store.OpenURL(ctx, from, options); err != nil {
		done()
		return o, nil, fmt.Errorf("--from: %w", err)
	}
	return o, done, nil
}

func keyOf(data map[string][]byte) (bundle.Key, error) {
	raw := data[backups.EncryptionKey]
	if len(raw) == 0 {
		return nil, errors.New("there is no key to decrypt the backup with: pass --encryption-key-file, or a Secret with key " + backups.EncryptionKey + " by --credentials")
	}
	return bundle.ParseKey(raw)
}

// read reads Secret and files. inS3 says what credentials are of.
func (s *storage) read(ctx context.Context, c client.Client, data map[string][]byte, inS3 bool) error {
	if s.secret != "" {
		secret := &corev1.Secret{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: s.operator, Name: s.secret}, secret); err != nil {
			return fmt.Errorf("--credentials: reading Secret %s/%s: %w", s.operator, s.secret, err)
		}
		if len(secret.Data[backups.VolumeKey]) > 0 {
			return fmt.Errorf("Secret %s/%s names a volume, which etcd of another namespace can't read: copy the files of the backup into a bucket, and restore from there", s.operator, s.secret)
		}
		for _, key := range []string{backups.CredentialsKey, backups.EncryptionKey, backups.CABundleKey} {
			if len(secret.Data[key]) > 0 {
				data[key] = secret.Data[key]
			}
		}
		// etcd finds what is in another key of the Secret where it looks for credentials.
		if _, key, err := backups.AzureOf(secret.Data); !inS3 && err == nil {
			data[backups.CredentialsKey] = secret.Data[key]
		}
	}
	for key, file := range map[string]string{backups.CredentialsKey: s.credentials, backups.EncryptionKey: s.key, backups.CABundleKey: s.ca} {
		if file == "" {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		data[key] = raw
	}
	text := strings.TrimSpace(string(data[backups.CredentialsKey]))
	switch {
	case text == "":
		return errors.New("there are no credentials of the storage: give --credentials-file, or a Secret by --credentials")
	case !inS3:
		return readsAzure(text)
	case strings.HasPrefix(text, "arn:"):
		return errors.New("the credentials are a role that only the operator's Jobs can take: give keys that may read the bucket by --credentials-file")
	}
	return nil
}

// readsAzure says why credentials are of no use to this command and to etcd.
func readsAzure(text string) error {
	c, err := backups.ParseAzure([]byte(text))
	if err != nil {
		return fmt.Errorf("the credentials of the storage: %w", err)
	}
	if mode, _ := c.Mode(); mode == backups.AzureWorkloadIdentity { // ParseAzure has asked
		return errors.New("the credentials are an identity that only the operator's Jobs have: give JSON with tenantId, clientId and clientSecret of one that may read the container by --credentials-file")
	}
	return nil
}
