package images

import (
	"errors"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/oci/signature"
)

// keyVariable is where a private key may be instead of in a file.
const keyVariable = "HYPERSHIFT_SIGNING_KEY"

func signCommand() *cobra.Command {
	var o options
	var t target
	var keyFile string
	cmd := &cobra.Command{
		Use:   "sign [IMAGE...]",
		Short: "Sign images in a registry, as cosign does with a key",
		Long: `Sign images in a registry, as cosign does with a key: a signature is an image beside the signed image, at tag sha256-DIGEST.sig, which
cosign verify --key accepts, too.

Name images, or with --from and --to a bundle that was pushed there. Signatures by others stay, and an image that the key has already signed isn't signed again.
The key is an unencrypted ECDSA P-256 key in PEM format, in a file or in the variable  ` + keyVariable + `. Who may install what is said by
hypershift install --image-signature-policy.`,
		Example: `  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out signing.key
  openssl pkey -in signing.key -pubout -out signing.pub
  hypershift images sign --key signing.key --from dist/images --to registry.example.com/team
  hypershift images sign --key signing.key registry.example.com/team/web@sha256:…`,
		RunE: func(cmd *cobra.Command, args []string) error {
			raw := []byte(os.Getenv(keyVariable))
			if keyFile != "" {
				var err error
				if raw, err = connect.ReadFile(keyFile); err != nil {
					return fmt.Errorf("--key: %w", err)
				}
			}
			if len(raw) == 0 {
				return errors.New("--key is required: name the file with the private key, or set " + keyVariable)
			}
			key, err := signature.ParsePrivateKey(raw)
			if err != nil {
				return fmt.Errorf("--key: %w", err)
			}
			if (len(args) > 0) == (o.from != "") {
				return errors.New("name images, or a bundle that was pushed by --from and --to; not both")
			}
			refs, err := t.references(o, args)
			if err != nil {
				return err
			}
			options := []remote.Option{remote.WithContext(cmd.Context()), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithUserAgent("hypershift")}
			for _, ref := range refs {
				digest, err := digestIn(ref, options)
				if err != nil {
					return fmt.Errorf("reading %s: %w", ref, err)
				}
				added, err := signature.Attach(cmd.Context(), key, ref.Context(), digest, options...)
				if err != nil {
					return err
				}
				done := "signed"
				if !added {
					done = "was signed already:"
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", done, ref.Context().Digest(digest.String()))
			}
			return nil
		},
	}
	o.addFlags(cmd)
	t.addFlags(cmd)
	for flag, usage := range map[string]string{"from": "Bundle whose images are signed, where images push brought them", "to": "Registry that the bundle was pushed to"} {
		cmd.Flags().Lookup(flag).Usage = usage
	}
	cmd.Flags().StringVar(&keyFile, "key", "", "File with the private key (default: $"+keyVariable+")")
	return cmd
}

// references are the images to sign.
func (t *target) references(o options, args []string) ([]name.Reference, error) {
	var insecure []name.Option
	if t.plainHTTP {
		insecure = append(insecure, name.Insecure)
	}
	if o.from != "" {
		r, err := t.registry()
		if err != nil {
			return nil, err
		}
		b, entries, err := o.open()
		if err != nil {
			return nil, err
		}
		defer b.Close()
		for _, e := range entries {
			ref, err := b.DigestIn(r, e)
			if err != nil {
				return nil, err
			}
			args = append(args, ref)
		}
	}
	var refs []name.Reference
	for _, arg := range args {
		ref, err := name.ParseReference(arg, insecure...)
		if err != nil {
			return nil, fmt.Errorf("%q: write it as registry/repository:tag or registry/repository@sha256:digest: %w", arg, err)
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

func digestIn(ref name.Reference, options []remote.Option) (v1.Hash, error) {
	desc, err := remote.Head(ref, options...)
	if err != nil {
		return v1.Hash{}, err
	}
	return desc.Digest, nil
}
