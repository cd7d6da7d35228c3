package certificates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
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
--revoke ends trust in the authorities that the last replacement of all has replaced, as soon as all components have the new certificates, for example after a key
was stolen. It leaves out the authority for nodes' certificates (cluster-signer-ca), because nodes would be locked out: replace the nodes, then use
--authority cluster-signer-ca --step forget.

Nodes are updated automatically: the authorities that they know (root-ca, kube-apiserver-to-kubelet-signer, cluster-signer-ca) are not switched before every node has
reported that it trusts the successors. Condition NodesTrustAuthorities of the HostedCluster names the nodes that the switch waits for. --force stops waiting for them in
the present replacement; you then have to recreate these nodes.

With --authority, one authority takes one step: prepare, switch (which prepares first), or forget. A step of which nothing would come is refused, such as forget before
the successor signs. docs/certificates.md says what is updated automatically and what isn't.`,
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
	w, err := wishFor(ctx, c, hc, r, now.UTC().Truncate(time.Second))
	if err != nil {
		return "", err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": w.annotations}})
	if err != nil {
		return "", err
	}
	if err := c.Patch(ctx, w.on, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(connect.FieldOwner)); err != nil {
		return "", fmt.Errorf("annotating %s: %w", connect.Describe(w.on), err)
	}
	return w.said, nil
}

// wish is what is written to ask for a rotation.
type wish struct {
	on          client.Object
	annotations map[string]string
	said        string
}

func wishFor(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, r rotation, now time.Time) (wish, error) {
	cluster, value := client.ObjectKeyFromObject(hc), now.Format(time.RFC3339)
	switch {
	case r.force:
		return wish{hc, map[string]string{pki.LeaveNodesAnnotation: value},
			fmt.Sprintf("successors of authorities of %s that were created before %s no longer wait for nodes: recreate the nodes that don't trust them", cluster, value)}, nil
	case r.revoke:
		return revocation(hc)
	case r.authority != "":
		return oneStep(ctx, c, hc, r)
	}
	w := wish{hc, map[string]string{pki.RotateBeforeAnnotation: value},
		fmt.Sprintf("authorities of %s that were made before %s are replaced: `hypershift get certificates %s -n %s --authorities` shows how far that is", cluster, value, hc.Name, hc.Namespace)}
	before, replaced := timeOf(hc, pki.RotateBeforeAnnotation)
	if revoked, ok := timeOf(hc, pki.RevokeBeforeAnnotation); ok && replaced && revoked.After(before) {
		// An earlier command wrote when it was called. Authorities that were successors then are replaced now, and nobody means to revoke them.
		w.annotations[pki.RevokeBeforeAnnotation] = hc.Annotations[pki.RotateBeforeAnnotation]
	}
	return w, nil
}

// revocation is of what the last replacement of all authorities was asked for: with a later time, which stays, their successors would be revoked when they are replaced.
func revocation(hc *hyperv1.HostedCluster) (wish, error) {
	cluster, value := client.ObjectKeyFromObject(hc), hc.Annotations[pki.RotateBeforeAnnotation]
	if _, ok := timeOf(hc, pki.RotateBeforeAnnotation); !ok {
		return wish{}, fmt.Errorf("authorities of %s have no successors yet that somebody asked for: run `hypershift rotate authorities %s -n %s` first, and with --revoke when the new ones are there; "+
			"to end trust in the former ones of a single authority, use --authority with --step %s", cluster, hc.Name, hc.Namespace, pki.RotationForget)
	}
	return wish{hc, map[string]string{pki.RevokeBeforeAnnotation: value},
		fmt.Sprintf("previous authorities of %s that were made before %s, when their replacement was asked for, are trusted no more once all components have new certificates", cluster, value)}, nil
}

// oneStep is refused when nothing would come of it.
func oneStep(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, r rotation) (wish, error) {
	key := client.ObjectKey{Namespace: names.NamespaceOf(hc), Name: r.authority}
	secret := &corev1.Secret{}
	err := c.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return wish{}, exit.With(exit.NotFound, fmt.Errorf("there is no Secret %s: `hypershift get certificates %s -n %s --authorities` lists the authorities that there are", key, hc.Name, hc.Namespace))
	}
	if err != nil {
		return wish{}, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if problem := pki.StepProblem(secret, r.step); problem != "" {
		return wish{}, fmt.Errorf("authority %s can't take step %s: %s", r.authority, r.step, problem)
	}
	on := &corev1.Secret{}
	on.Namespace, on.Name = key.Namespace, key.Name
	return wish{on, map[string]string{pki.RotationAnnotation: r.step},
		fmt.Sprintf("authority %s of %s is asked for step %s", r.authority, client.ObjectKeyFromObject(hc), r.step)}, nil
}

// timeOf reads a time from an annotation, and says whether there is one.
func timeOf(hc *hyperv1.HostedCluster, annotation string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, hc.Annotations[annotation])
	return at, err == nil
}
