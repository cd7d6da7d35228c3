package certificates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/pki"
)

// RotateCommand is `hypershift rotate`.
func RotateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rotate", Short: "Replace what a hosted cluster's trust rests on, while it runs",
		Example: "  hypershift rotate authorities demo",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(authoritiesCommand())
	return cmd
}

// rotation is what `rotate authorities` asks for.
type rotation struct {
	authority, step string
	revoke, force   bool
}

func authoritiesCommand() *cobra.Command {
	var flags connect.Flags
	var r rotation
	name, namespace := "", connect.DefaultNamespace
	cmd := &cobra.Command{
		Use:   "authorities",
		Short: "Replace certificate authorities of a hosted cluster in two steps",
		Long: `Replace the certificate authorities of a hosted cluster. Each authority gets a successor, whose certificate first joins every bundle and kubeconfig. Once all
components run with it, and an hour has passed, the successor signs, and every certificate is issued again. Old authorities remain trusted until nothing that they
signed can be valid any more: 400 days, and two years for that of nodes' certificates (cluster-signer-ca). You can replace authorities again before that, until ten old
ones of one authority are trusted: then it isn't replaced before the first of them has come to its end, and condition Degraded of the HostedCluster says when that is.
--revoke ends trust in old authorities as soon as all components have the new certificates, for example after a key was stolen. It leaves
out the authority for nodes' certificates (cluster-signer-ca), because nodes would be locked out: replace the nodes, then use --authority cluster-signer-ca --step forget.

Nodes are updated automatically: the authorities that they know (root-ca, kube-apiserver-to-kubelet-signer, cluster-signer-ca) are not switched before every node has
reported that it trusts the successors. Condition NodesTrustAuthorities of the HostedCluster names the nodes that the switch waits for. --force stops waiting for them in
the present replacement; you then have to recreate these nodes.

With --authority, one authority takes one step: prepare, switch (which prepares first), or forget. docs/certificates.md says what is updated automatically and what isn't.`,
		Example: `  hypershift rotate authorities demo
  hypershift get certificates demo --authorities
  hypershift rotate authorities demo --revoke
  hypershift rotate authorities demo --force   # nodes that condition NodesTrustAuthorities names are gone for good
  hypershift rotate authorities demo --authority etcd-signer --step switch`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.check(); err != nil {
				return err
			}
			c, err := flags.Client()
			if err != nil {
				return err
			}
			said, err := rotate(cmd.Context(), c, client.ObjectKey{Namespace: namespace, Name: name}, r, time.Now())
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), said+flags.DryRun.Suffix())
			}
			return err
		},
	}
	clusterFlags(cmd, &flags, &name, &namespace)
	flags.DryRun.AddFlag(cmd)
	cmd.Flags().StringVar(&r.authority, "authority", "", "Secret of the one authority to replace, such as root-ca; all by default")
	cmd.Flags().StringVar(&r.step, "step", "", "With --authority: prepare, switch or forget; switch by default")
	cmd.Flags().BoolVar(&r.revoke, "revoke", false, "End trust in previous authorities as soon as all components have new certificates")
	cmd.Flags().BoolVar(&r.force, "force", false, "Stop waiting for nodes that don't trust the present successors; you then have to recreate these nodes")
	_ = cmd.RegisterFlagCompletionFunc("step", cobra.FixedCompletions([]string{pki.RotationPrepare, pki.RotationSwitch, pki.RotationForget}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (r *rotation) check() error {
	switch {
	case r.force && (r.authority != "" || r.step != "" || r.revoke):
		return errors.New("--force is for the replacement that is under way, and stands alone: leave --authority, --step and --revoke out")
	case r.authority == "" && r.step != "":
		return errors.New("--step is for one authority: add --authority, or leave --step out to replace all")
	case r.authority != "" && r.revoke:
		return errors.New("--revoke is for all authorities: write --step forget with --authority")
	case r.authority == "":
		return nil
	case !pki.IsAuthority(r.authority):
		return fmt.Errorf("--authority %q is none of a control plane's: `hypershift get certificates NAME --authorities` lists them", r.authority)
	}
	switch r.step {
	case "":
		r.step = pki.RotationSwitch
	case pki.RotationPrepare, pki.RotationSwitch, pki.RotationForget:
	default:
		return fmt.Errorf("--step is %q: write %s, %s or %s", r.step, pki.RotationPrepare, pki.RotationSwitch, pki.RotationForget)
	}
	return nil
}

// rotate asks the control plane for it, and says what was asked.
func rotate(ctx context.Context, c client.Client, cluster client.ObjectKey, r rotation, now time.Time) (string, error) {
	hc, err := find(ctx, c, cluster)
	if err != nil {
		return "", err
	}
	if _, off := hc.Annotations[hyperv1.DisablePKIReconciliationAnnotation]; off {
		return "", fmt.Errorf("HostedCluster %s has annotation %s: no certificates are managed for it; remove it first", cluster, hyperv1.DisablePKIReconciliationAnnotation)
	}
	var obj client.Object = hc
	key, value := pki.RotateBeforeAnnotation, now.UTC().Truncate(time.Second).Format(time.RFC3339)
	said := fmt.Sprintf("authorities of %s that were made before %s are replaced: `hypershift get certificates %s -n %s --authorities` shows how far that is", cluster, value, hc.Name, hc.Namespace)
	switch {
	case r.force:
		key = pki.LeaveNodesAnnotation
		said = fmt.Sprintf("successors of authorities of %s that were created before %s no longer wait for nodes: recreate the nodes that don't trust them", cluster, value)
	case r.revoke:
		key = pki.RevokeBeforeAnnotation
		said = fmt.Sprintf("previous authorities of %s that were made before %s are trusted no more once all components have new certificates", cluster, value)
	case r.authority != "":
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = names.NamespaceOf(hc), r.authority
		obj, key, value = secret, pki.RotationAnnotation, r.step
		said = fmt.Sprintf("authority %s of %s is asked for step %s", r.authority, cluster, r.step)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		return "", err
	}
	if err := c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(connect.FieldOwner)); err != nil {
		return "", fmt.Errorf("annotating %s: %w", connect.Describe(obj), err)
	}
	return said, nil
}
