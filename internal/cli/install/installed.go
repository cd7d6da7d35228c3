package install

import (
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/version"
)

// installedVersion is on each definition: the semantic version, without "v", of the program or the chart that installed it.
const installedVersion = "hypershift.openshift.io/installed-version"

// hostedClusters is the definition that every installation has.
const hostedClusters = "hostedclusters.hypershift.openshift.io"

// ErrSkew is returned by Run when the cluster has a version that this one may not replace at once. Nothing has been written then.
var ErrSkew = errors.New("this version can't replace the one that is installed")

// marked puts the version on definitions.
func marked(crds []client.Object) []client.Object {
	for _, crd := range crds {
		annotations := crd.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[installedVersion] = version.Semver()
		crd.SetAnnotations(annotations)
	}
	return crds
}

// refuseSkew compares the version that the definitions in the cluster are of with this one. Definitions of before versions were noted pass.
func refuseSkew(ctx context.Context, c client.Client) error {
	live := &apiextensionsv1.CustomResourceDefinition{}
	err := c.Get(ctx, client.ObjectKey{Name: hostedClusters}, live)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading CustomResourceDefinition %s: %w", hostedClusters, err)
	}
	if skew := version.CompareUpgrade(live.Annotations[installedVersion], version.Semver()); skew.Verdict == version.Unsupported {
		return fmt.Errorf("%w: %s", ErrSkew, skew.Message)
	}
	return nil
}
