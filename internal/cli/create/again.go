package create

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/kube/read"
)

// keep takes from the HostedCluster that is created again what nobody asked to change: whoever upgraded it wants no way back.
func (o *Options) keep(existing *hyperv1.HostedCluster) {
	o.existing = existing
	if existing.Spec.InfraID != "" {
		o.InfraID = existing.Spec.InfraID
	}
	if o.ReleaseImage == "" && o.ReleaseStream == "" {
		o.ReleaseImage, o.keepsRelease = existing.Spec.Release.Image, true
	}
}

// kept says what of a HostedCluster that is created again stays, where a new one would get something else.
func (o Options) kept(g Generated) []string {
	if o.existing == nil {
		return nil
	}
	name := o.Namespace + "/" + o.Name
	var notes []string
	if o.keepsRelease {
		notes = append(notes, fmt.Sprintf("HostedCluster %s exists already: kept its release %s; --release-image changes it", name, o.ReleaseImage))
	}
	if o.keepsNetwork {
		notes = append(notes, fmt.Sprintf("HostedCluster %s exists already: kept its network %s, which --network-type changes", name, o.NetworkType))
	}
	fresh := o
	fresh.existing = nil
	if !equality.Semantic.DeepEqual(hostedCluster(fresh, g).Spec.SecretEncryption, o.existing.Spec.SecretEncryption) {
		notes = append(notes, fmt.Sprintf("HostedCluster %s exists already: kept its spec.secretEncryption, which this command never changes", name))
	}
	return notes
}

// keepPoolRelease gives a first NodePool the release of the one that exists, if nobody named a release.
func (o Options) keepPoolRelease(ctx context.Context, c client.Client, p *progress.Printer, np *hyperv1.NodePool) error {
	if !o.keepsRelease || o.NodePool.ReleaseImage != "" {
		return nil
	}
	existing, err := read.Optional(ctx, c, client.ObjectKeyFromObject(np), &hyperv1.NodePool{})
	if existing == nil || err != nil {
		return err
	}
	if existing.Spec.Release != np.Spec.Release {
		np.Spec.Release = existing.Spec.Release
		p.Printf("NodePool %s/%s exists already: kept its release %s", np.Namespace, np.Name, np.Spec.Release.Image)
	}
	return nil
}
