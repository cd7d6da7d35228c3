package resources

import (
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/images"
)

// localStorage is the default storage class of releases that bring the program for it: volumes are folders of the node that a
// pod runs on. A user who wants another default marks it so; the newest of several defaults counts.
func localStorage(in Input) ([]client.Object, error) {
	image, ok := in.Images[images.LocalStorage]
	if !ok {
		return nil, nil
	}
	objects := load("local-storage.yaml")
	complete(&find[*appsv1.DaemonSet](objects).Spec.Template, image)
	return objects, nil
}
