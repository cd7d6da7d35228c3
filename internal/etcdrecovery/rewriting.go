package etcdrecovery

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/encryption"
)

// keysAnnotation on the Secret with kube-apiserver's encryption keys is when the data that they encrypt was last taken back.
const keysAnnotation = "etcd.hypershift.openshift.io/data-taken-back"

// forgetRewriting has a change of encryption keys write everything again from the first object. How far that has come is a position in the data that is lost: in the data that
// goes on, what is before it may still be encrypted with a key that is dropped at the end. Progress counts for one version of the Secret alone, so any change of the Secret does.
//
// It comes while no member runs. What begins to write again later begins anew, and what began before can't read a page of the data that goes on. No progress is deleted, since
// somebody whose request just fails may be about to store it once more.
func (q Quorum) forgetRewriting(ctx context.Context) error {
	keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: q.Namespace, Name: encryption.ConfigSecret}}
	err := q.patch(ctx, keys, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, keysAnnotation, time.Now().UTC().Format(time.RFC3339Nano)))
	return client.IgnoreNotFound(err) // without the Secret nothing is encrypted
}
