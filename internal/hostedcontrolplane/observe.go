package hostedcontrolplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/controlplane/openshift/oauthserver"
	"hcp.internal/platform/internal/controlplane/openshift/oauthserver/issuers"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/release"
)

const (
	// claimsAfter is how long etcd may take before its volumes are looked at: they are not cached, and bound within seconds when all is well.
	claimsAfter = 20 * time.Second
	// maxClaims and maxEvents bound what is read about them.
	maxClaims      = 20
	maxEvents      = 50
	maxEventLength = 300
)

// observeCapabilities says whether the management cluster can do what the spec asks for.
func (r *Reconciler) observeCapabilities(ctx context.Context, obs *Observed) error {
	routes, err := r.Management.Routes(ctx)
	if err != nil {
		return fmt.Errorf("looking for the Route kind: %w", err)
	}
	obs.Routes = routes
	founded, err := r.get(ctx, obs.HCP.Namespace, names.Etcd, &appsv1.StatefulSet{})
	if err != nil {
		return err
	}
	obs.New = !founded
	wctx := r.Context
	wctx.HCP = obs.HCP
	obs.Routing = kit.RoutingOf(wctx)
	obs.Routing.Kind = routes
	obs.validate()
	return nil
}

// validate says what is wrong with how the endpoints are to be published, as far as the release is known.
func (obs *Observed) validate() {
	can := endpoints.Capabilities{Routes: obs.Routes}
	if obs.Invalid = endpoints.Validate(obs.HCP, can); obs.Invalid != nil {
		return
	}
	switch obs.Flavour {
	case kubernetes:
		obs.Invalid = endpoints.ValidateKubernetes(obs.HCP, can)
	case openShift:
		obs.Invalid = endpoints.ValidatePayload(obs.HCP, obs.Routing, kit.OAuthEnabled(obs.HCP))
	}
}

// payload is what the endpoints of a payload go by, nil for other releases.
func (obs *Observed) payload() *endpoints.Payload {
	if obs.Flavour != openShift {
		return nil
	}
	return &endpoints.Payload{OAuth: kit.OAuthEnabled(obs.HCP), Routing: obs.Routing}
}

// observeInfra reads where the API is published. It reads past the cache while an address is missing, because everything waits for it.
func (r *Reconciler) observeInfra(ctx context.Context, obs *Observed) {
	live, err := endpoints.Observe(ctx, r.Client, r.Live, obs.HCP, obs.payload())
	if err == nil && live.API != nil && !endpoints.StatusOf(obs.HCP, live).Ready() {
		live, err = endpoints.Observe(ctx, r.Live, r.Live, obs.HCP, obs.payload())
	}
	if obs.InfraErr = err; err == nil {
		obs.Infra = endpoints.StatusOf(obs.HCP, live)
	}
}

// rolledOut says whether every component runs with the authorities that are found.
//
// Their reports alone don't say so: a pass that fails between the certificates and the components, as without a registry, leaves reports of before, which are
// True. So they count only once a whole pass has ended with these authorities and such reports.
func (r *Reconciler) rolledOut(ctx context.Context, namespace string, found pki.Observed) (bool, error) {
	if r.rolledOutWith == "" || r.rolledOutWith != (pki.Plan{}).Trust(found) {
		return false, nil
	}
	list := &hyperv1.ControlPlaneComponentList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return false, fmt.Errorf("listing reports of components: %w", err)
	}
	return allRolledOut(list.Items), nil
}

func allRolledOut(reports []hyperv1.ControlPlaneComponent) bool {
	return len(reports) > 0 && !slices.ContainsFunc(reports, func(c hyperv1.ControlPlaneComponent) bool {
		return !conditions.IsTrue(c.Status.Conditions, hyperv1.ControlPlaneComponentRolloutComplete)
	})
}

// rememberRollout is called at the end of a pass. When it is news that every component runs with the authorities of the pass, and one of them has waited for
// that, the next pass comes soon: no event tells of it.
func (r *Reconciler) rememberRollout(obs *Observed) {
	if obs.trust == "" || !obs.ComponentsCurrent || !allRolledOut(obs.Components) {
		return
	}
	if r.rolledOutWith != obs.trust && obs.awaitsRollout {
		obs.Renew = outcome.Soon
	}
	r.rolledOutWith = obs.trust
}

// observeImages looks for what components need and the release lacks.
func (r *Reconciler) observeImages(ctx context.Context, obs *Observed) error {
	wctx := r.context(*obs)
	wctx.Context, wctx.Reader, wctx.HCP, wctx.Release, wctx.UserRelease, wctx.Infra = ctx, r.Client, obs.HCP, obs.Release, obs.UserRelease, obs.Infra
	lacking, err := r.MissingImages(wctx)
	if err != nil {
		return fmt.Errorf("looking for images that the release lacks: %w", err)
	}
	obs.MissingImages = missingImages(obs.HCP, lacking)
	return nil
}

// observeIdentityProviders asks the component that runs the OAuth server which identity providers it leaves out.
func (r *Reconciler) observeIdentityProviders(ctx context.Context, obs *Observed) {
	if obs.Flavour != openShift || !kit.OAuthEnabled(obs.HCP) {
		return
	}
	wctx := r.context(*obs)
	wctx.Context, wctx.Reader, wctx.HCP = ctx, r.Client, obs.HCP
	err := r.askIssuers(wctx, obs)
	wctx.OpenID = obs.OpenID
	obs.OAuth, obs.IDPProblem = true, errors.Join(err, oauthserver.ProvidersProblem(wctx))
}

// askIssuers looks up what the issuers of OpenID providers have answered so far.
func (r *Reconciler) askIssuers(wctx component.WorkloadContext, obs *Observed) error {
	if r.Issuers == nil {
		return nil
	}
	questions, err := oauthserver.Questions(wctx)
	if err != nil {
		return fmt.Errorf("finding out what to ask issuers of identity providers: %w", err)
	}
	path := issuers.Path{Reader: r.Client, HCP: obs.HCP, NoProxy: strings.Join(payload.NoProxy(obs.HCP), ","), Server: r.tunnel}
	obs.OpenID, obs.AskAgain = r.Issuers.Answers(r.Background, questions, func() (issuers.Asker, error) { return path.Asker(wctx.Context) })
	return nil
}

// observeRollout reads what components are told beside their own objects.
func (r *Reconciler) observeRollout(ctx context.Context, obs *Observed) error {
	obs.Management = r.Management.Facts(ctx)
	return r.observeTroubles(ctx, obs)
}

// observeHealth asks for the published endpoint's health once kube-apiserver is up; before that the answer is known.
func (r *Reconciler) observeHealth(obs *Observed) {
	if obs.kubeconfig == nil || obs.APIServer == nil || !deploymentAvailable(obs.APIServer) {
		return
	}
	t, err := targetOf(obs.kubeconfig)
	if err != nil {
		obs.Health = &health{err: err}
		return
	}
	t.dial = dialFor(obs)
	obs.Health = r.Checker.Result(r.Background, t)
}

// observeState reads what the passes cause: workloads, reports, kubeconfigs.
func (r *Reconciler) observeState(ctx context.Context, obs *Observed) error {
	ns := obs.HCP.Namespace
	obs.Etcd, obs.APIServer = &appsv1.StatefulSet{}, &appsv1.Deployment{}
	found, err := r.get(ctx, ns, names.Etcd, obs.Etcd)
	if err != nil {
		return err
	}
	if !found {
		obs.Etcd = nil
	}
	if found, err = r.get(ctx, ns, names.KubeAPIServer, obs.APIServer); err != nil {
		return err
	}
	if !found {
		obs.APIServer = nil
	}
	deployments := &appsv1.DeploymentList{}
	if err := r.Client.List(ctx, deployments, client.InNamespace(ns), client.MatchingLabels{names.ManagedByLabel: names.ControlPlaneOperator}); err != nil {
		return fmt.Errorf("listing deployments: %w", err)
	}
	obs.Deployments = deployments.Items
	if obs.Components, err = r.reports(ctx, obs.HCP, obs.Release); err != nil {
		return err
	}
	if err := r.observeKubeconfigs(ctx, obs); err != nil {
		return err
	}
	if err := r.observeEtcds(ctx, obs); err != nil {
		return err
	}
	r.observeHealth(obs)
	return nil
}

// observeEtcds reads the shards of etcd, and what keeps members of any from starting.
func (r *Reconciler) observeEtcds(ctx context.Context, obs *Observed) (err error) {
	ns := obs.HCP.Namespace
	if r.EtcdSpaces != nil {
		obs.EtcdSpaces = r.EtcdSpaces()
	}
	if r.etcdIsSlow(obs.Etcd) {
		if obs.EtcdClaims, err = etcdObstacles(ctx, r.Live, ns, names.Etcd); err != nil {
			return err
		}
	}
	for _, s := range shards.Managed(obs.HCP.Spec.Etcd) {
		name := shards.Component(s.Name)
		shard := etcdShard{name: name, workload: &appsv1.StatefulSet{}}
		found, err := r.get(ctx, ns, name, shard.workload)
		if err != nil {
			return err
		}
		if !found {
			shard.workload = nil
		}
		if r.etcdIsSlow(shard.workload) {
			if shard.obstacles, err = etcdObstacles(ctx, r.Live, ns, name); err != nil {
				return err
			}
		}
		obs.EtcdShards = append(obs.EtcdShards, shard)
	}
	return nil
}

// get says whether an object exists.
func (r *Reconciler) get(ctx context.Context, namespace, name string, into client.Object) (bool, error) {
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s/%s: %w", into, namespace, name, err)
	}
	return true, nil
}

// reports lists the components' reports. Those of our own components are read one by one, because the list may not show yet what this pass wrote.
func (r *Reconciler) reports(ctx context.Context, hcp *hyperv1.HostedControlPlane, of *release.Release) ([]hyperv1.ControlPlaneComponent, error) {
	namespace := hcp.Namespace
	list := &hyperv1.ControlPlaneComponentList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing reports of components: %w", err)
	}
	items := list.Items
	for _, c := range r.Components(hcp, of) {
		report := hyperv1.ControlPlaneComponent{}
		found, err := r.get(ctx, namespace, c.Name(), &report)
		if err != nil {
			return nil, err
		}
		items = slices.DeleteFunc(items, func(i hyperv1.ControlPlaneComponent) bool { return i.Name == c.Name() })
		if found {
			items = append(items, report)
		}
	}
	return items, nil
}

func (r *Reconciler) observeKubeconfigs(ctx context.Context, obs *Observed) error {
	spec, _ := pkiSpec(obs.HCP, obs.Infra, r.PKIBase, r.Clock.Now())
	name, key := spec.AdminKubeconfigRef()
	secret := &corev1.Secret{}
	found, err := r.get(ctx, spec.Namespace, name, secret)
	if err != nil {
		return err
	}
	if found && len(secret.Data[key]) > 0 {
		obs.AdminKubeconfig = &hyperv1.KubeconfigSecretRef{Name: name, Key: key}
		obs.kubeconfig = secret.Data[key]
	}
	if spec.CustomAPIHost == "" {
		return nil
	}
	custom := &corev1.Secret{}
	if found, err = r.get(ctx, spec.Namespace, pki.CustomAdminKubeconfig, custom); err != nil {
		return err
	}
	if found {
		obs.CustomKubeconfig = &hyperv1.KubeconfigSecretRef{Name: pki.CustomAdminKubeconfig, Key: pki.KubeconfigKey}
	}
	return nil
}

// etcdIsSlow reports whether it is worth asking why etcd has no quorum.
func (r *Reconciler) etcdIsSlow(etcd *appsv1.StatefulSet) bool {
	return etcd != nil && etcd.Status.ReadyReplicas == 0 && r.Clock.Since(etcd.CreationTimestamp.Time) > claimsAfter
}

// etcdObstacles says which volumes of an etcd wait for storage, and which pods for a node, and why. The reader is not cached.
func etcdObstacles(ctx context.Context, reader client.Reader, namespace, name string) ([]string, error) {
	claims, err := unboundClaims(ctx, reader, namespace, name)
	if err != nil {
		return nil, err
	}
	pods, err := unscheduledPods(ctx, reader, namespace, name)
	return append(claims, pods...), err
}

func unscheduledPods(ctx context.Context, reader client.Reader, namespace, name string) ([]string, error) {
	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app": name}, client.Limit(maxClaims)); err != nil {
		return nil, fmt.Errorf("listing pods of %s: %w", name, err)
	}
	var out []string
	for _, pod := range pods.Items {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				out = append(out, fmt.Sprintf("pod %s fits no node: %s", pod.Name, clip.To(c.Message, maxEventLength)))
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// unboundClaims says which volumes of an etcd wait for storage, and why.
func unboundClaims(ctx context.Context, reader client.Reader, namespace, name string) ([]string, error) {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := reader.List(ctx, claims, client.InNamespace(namespace), client.MatchingLabels{"app": name}, client.Limit(maxClaims)); err != nil {
		return nil, fmt.Errorf("listing volume claims of %s: %w", name, err)
	}
	var out []string
	for _, claim := range claims.Items {
		if claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		text := fmt.Sprintf("volume claim %s is not bound", claim.Name)
		events := &corev1.EventList{}
		err := reader.List(ctx, events, client.InNamespace(namespace), client.Limit(maxEvents), client.MatchingFieldsSelector{Selector: fields.SelectorFromSet(fields.Set{
			"involvedObject.kind": "PersistentVolumeClaim", "involvedObject.name": claim.Name, "type": corev1.EventTypeWarning})})
		if err != nil {
			return nil, fmt.Errorf("listing events about volume claim %s: %w", claim.Name, err)
		}
		if n := len(events.Items); n > 0 {
			message := events.Items[n-1].Message
			text += ": " + clip.To(message, maxEventLength)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out, nil
}
