package autoscaler

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/responses"
)

// maxAnswer bounds an answer of the hosted API. A page of pods of usual size has 2 MiB.
const maxAnswer = 32 << 20

// pageSize is how many objects are asked for at a time, smallPage when so many were too large.
const (
	pageSize  = 250
	smallPage = 10 // of 1.5 MiB, the most that an object may have
)

// hostedConfig is the connection to the hosted API in a kubeconfig file, with bounds: tenants may be hostile.
func hostedConfig(path string) (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading the hosted cluster's kubeconfig %q: %w", path, err)
	}
	cfg.QPS, cfg.UserAgent = -1, FieldOwner // the hosted API's priority and fairness is enough
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	cfg.WarningHandlerWithContext = rest.NoWarnings{}
	responses.Limit(cfg, maxAnswer)
	return cfg, nil
}

// pages calls visit for each page of a list, until there are no more or visit has enough. list is used again for each page.
func pages(ctx context.Context, c client.Reader, list client.ObjectList, visit func() (more bool), options ...client.ListOption) error {
	limit, token := int64(pageSize), ""
	for {
		err := c.List(ctx, list, append([]client.ListOption{client.Limit(limit), client.Continue(token)}, options...)...)
		if errors.Is(err, responses.ErrTooLarge) && limit > smallPage {
			limit = smallPage
			continue
		}
		if err != nil {
			return fmt.Errorf("listing %T: %w", list, err)
		}
		token = list.GetContinue()
		if !visit() || token == "" {
			return nil
		}
	}
}

// hostedMapper knows the few kinds that are read, so that starting needs no answer of a hosted API that may be down.
func hostedMapper(scheme *runtime.Scheme) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, group := range []schema.GroupVersion{corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, policyv1.SchemeGroupVersion} {
		for kind := range scheme.KnownTypes(group) {
			scope := meta.RESTScopeNamespace
			if kind == "Node" {
				scope = meta.RESTScopeRoot
			}
			mapper.Add(group.WithKind(kind), scope)
		}
	}
	return mapper
}
