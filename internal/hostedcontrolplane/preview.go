package hostedcontrolplane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/kube/static"
	"hcp.internal/platform/internal/pki"
)

// PreviewScheme has the kinds that components read.
func PreviewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	var errs []error
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, hyperv1.AddToScheme} {
		errs = append(errs, add(scheme))
	}
	return scheme, errors.Join(errs...)
}

// PreviewInput is what a preview is made from. Context.HCP and Context.Release are required; its Reader, Signer and Context are filled in.
type PreviewInput struct {
	component.WorkloadContext
	// Components are what is previewed.
	Components []component.Component
	// Objects exist in the namespace of the control plane.
	Objects []client.Object
	// All also renders what the predicate or the dependencies of a component forbid at present.
	All bool
	// Now is what certificates start at; used only while the context is not Unsigned.
	Now time.Time
	// Each is told of every component, in the order of the list. An error that it returns ends the preview.
	Each func(component.Plan, error) error
}

// Preview shows what the components would be made of. It needs no cluster, network, or clock (but for certificates).
func Preview(ctx context.Context, in PreviewInput) error {
	scheme, err := PreviewScheme()
	if err != nil {
		return err
	}
	wctx := in.WorkloadContext
	wctx.Context, wctx.Unconditional, wctx.PublishedRights = ctx, in.All, true
	own := Images{}
	wctx.Release = own.apply(wctx.Release)
	if wctx.UserRelease == nil {
		wctx.UserRelease = wctx.Release
	} else {
		wctx.UserRelease = own.apply(wctx.UserRelease)
	}
	objs := in.Objects
	spec, problems := pkiSpec(wctx.HCP, wctx.Infra, pki.Spec{}, in.Now)
	spec.Payload = payloadSpec(wctx.HCP, wctx.Infra, flavourOf(wctx.Release))
	if !wctx.Unsigned && !spec.Disabled {
		if err := errors.Join(problems...); err != nil {
			return err
		}
		made, err := previewCertificates(ctx, scheme, spec, objs, in.Now)
		if err != nil {
			return err
		}
		objs = append(append([]client.Object{}, objs...), made...)
	}
	reader, err := static.NewReader(scheme, objs...)
	if err != nil {
		return err
	}
	wctx.Reader = reader
	source := func() pki.Source { return pki.Source{Now: in.Now, Keys: pki.NewKey, Rand: rand.Reader} }
	wctx.Signer = clientSigner{reader: reader, spec: spec, source: source}
	for _, c := range in.Components {
		plan, err := c.Plan(wctx)
		if err := in.Each(plan, errors.Join(err, plan.Err)); err != nil {
			return err
		}
	}
	return nil
}

// previewCertificates are those that the control plane's PKI would make beside what exists.
func previewCertificates(ctx context.Context, scheme *runtime.Scheme, spec pki.Spec, existing []client.Object, now time.Time) ([]client.Object, error) {
	reader, err := static.NewReader(scheme, existing...)
	if err != nil {
		return nil, err
	}
	obs, err := pki.Observe(ctx, reader, spec)
	if err != nil {
		return nil, err
	}
	plan := pki.PlanFor(spec, obs, pki.Source{Now: now, Keys: pki.NewKey, Rand: rand.Reader})
	if err := errors.Join(plan.Problems...); err != nil {
		return nil, fmt.Errorf("making certificates: %w; with --no-signing there are none", err)
	}
	var made []client.Object
	for _, wave := range [][]pki.Write{plan.Authorities, plan.Leaves, plan.Copies} {
		for _, w := range wave {
			if w.Secret != nil {
				made = append(made, w.Secret)
			} else {
				made = append(made, w.ConfigMap)
			}
		}
	}
	return made, nil
}
