package destroy

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/exit"
)

// checkProtection refuses to destroy what bears annotation delete-protection, also where no admission policy does. What is being deleted already goes on.
func checkProtection(kind string, obj client.Object) error {
	if obj.GetAnnotations()[hyperv1.DeleteProtectionAnnotation] != "true" || !obj.GetDeletionTimestamp().IsZero() {
		return nil
	}
	return exit.With(exit.Held, fmt.Errorf("%[1]s %[2]s/%[3]s is protected from deletion. If it is to go, remove the protection first: kubectl annotate %[4]s %[3]s -n %[2]s %[5]s-",
		kind, obj.GetNamespace(), obj.GetName(), map[string]string{"HostedCluster": "hostedcluster", "NodePool": "nodepool"}[kind], hyperv1.DeleteProtectionAnnotation))
}
