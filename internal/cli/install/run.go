package install

import (
	"context"
	"errors"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/operator"
)

// Run installs into the cluster that o.Connect names and prints progress to out. It may be run again at any time: what is
// there already is left alone, what an older version installed is brought up to date.
func Run(ctx context.Context, o Options, out io.Writer) error {
	if err := o.Validate(); err != nil {
		return err
	}
	for _, line := range operator.Inert(o.FeatureGates) {
		fmt.Fprintln(out, "note:", line)
	}
	c, err := o.Connect.Client()
	if err != nil {
		return err
	}
	if o.NoNativeSidecars, err = lacksNativeSidecars(o.Connect); err != nil {
		return err
	}
	return run(ctx, o, c, out)
}

// lacksNativeSidecars asks the management cluster for its version: before 1.29, init containers have to end.
func lacksNativeSidecars(flags connect.Flags) (bool, error) {
	cfg, err := flags.RESTConfig()
	if err != nil {
		return false, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return false, fmt.Errorf("connecting to the management cluster: %w", err)
	}
	info, err := d.ServerVersion()
	if err != nil {
		return false, fmt.Errorf("asking the management cluster for its version: %w", err)
	}
	v, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return false, fmt.Errorf("parsing the version of the management cluster: %w", err)
	}
	return v.LessThan(version.MustParseGeneric("1.29")), nil
}

// run is Run with a client.
func run(ctx context.Context, o Options, c client.Client, out io.Writer) error {
	ctx, cancel := connect.WithTimeout(ctx, o.Timeout)
	defer cancel()
	p := progress.New(out, o.Clock)

	openShift, err := served(c, schema.GroupKind{Group: "security.openshift.io", Kind: "SecurityContextConstraints"})
	if err != nil {
		return err
	}
	o.OpenShift = o.OpenShift || openShift
	if o.Monitoring.Objects, err = served(c, schema.GroupKind{Group: monitoringGroup, Kind: "ServiceMonitor"}); err != nil {
		return err
	}
	if !o.Monitoring.Objects && o.Monitoring.asked() {
		p.Printf("left out monitoring: the management cluster has no Prometheus operator; hypershift install prometheus writes what a Prometheus without it needs")
	}

	if o, err = settleCAPI(ctx, o, c, p); err != nil {
		return err
	}
	crds, err := CRDs(o)
	if err != nil {
		return err
	}
	if crds, err = leaveProviders(ctx, c, o, p, crds); err != nil {
		return err
	}
	if err := errors.Join(refuseSkew(ctx, c), refusePruning(ctx, c, crds), refuseStranding(ctx, c, o)); err != nil {
		return err
	}
	if err := applyAll(ctx, c, p, crds); err != nil {
		return err
	}
	if o.WaitCRDs {
		for _, crd := range crds {
			if err := waitEstablished(ctx, c, p, crd.GetName()); err != nil {
				return err
			}
		}
	}
	objs := Resources(o)
	foreign, err := clearPriorityClasses(ctx, c, p, objs)
	if err != nil {
		return err
	}
	if err := applyAll(ctx, c, p, without(objs, foreign)); err != nil {
		return err
	}
	if !o.capi.standard() {
		if err := handOver(ctx, c, p); err != nil {
			return err
		}
	}
	if o.WaitAvailable {
		for _, d := range awaited(o) {
			if err := waitAvailable(ctx, c, p, d.key, d.labels); err != nil {
				return err
			}
		}
	}
	p.Printf("installed")
	return nil
}

// awaitedDeployment is one that has to be available before an installation is, with the labels of its Pods.
type awaitedDeployment struct {
	key    client.ObjectKey
	labels client.MatchingLabels
}

// awaited are the Deployments without which hosted clusters can't be made or reached.
func awaited(o Options) (list []awaitedDeployment) {
	if o.Scope == ScopeCRDs {
		return nil
	}
	add := func(namespace, name string, labels map[string]string) {
		list = append(list, awaitedDeployment{client.ObjectKey{Namespace: namespace, Name: name}, labels})
	}
	add(o.Namespace, operatorName, operatorLabels())
	if o.PackageOperator {
		add(PackageOperatorNamespace, packageManagerName, packageOperatorLabels())
	}
	if o.SharedIngress {
		add(SharedIngressNamespace, sharedIngressName, sharedIngressLabels())
	}
	if o.ExternalDNS.Provider != "" {
		add(o.Namespace, externalDNSName, externalDNSLabels())
	}
	return list
}

// settleCAPI decides between private and standard types by what is in the management cluster.
func settleCAPI(ctx context.Context, o Options, c client.Client, p *progress.Printer) (Options, error) {
	evidence, err := lookAtCAPI(ctx, c, o)
	if err != nil {
		return o, err
	}
	choice, err := chooseCAPI(evidence)
	if err != nil {
		return o, err
	}
	if !choice.standard() {
		if choice.converted, err = convertedHere(ctx, c, o.Namespace); err != nil {
			return o, err
		}
	}
	o.capi = &choice
	kind := "standard"
	if choice.Private {
		kind = "private"
	}
	p.Printf("Cluster API's types: %s (%s)", kind, choice.why)
	if choice.Legacy {
		p.Printf("%s keep standard types and are looked after by Deployment %s/%s", some(evidence.standard), o.Namespace, legacyName)
	}
	return o, nil
}

// served says whether the cluster has a kind.
func served(c client.Client, kind schema.GroupKind) (bool, error) {
	_, err := c.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking the management cluster for its APIs: %w", err)
	}
	return true, nil
}

// applyAll applies in order and stops at the first error: what follows often needs what comes before. It prints what
// changed and counts the rest.
func applyAll(ctx context.Context, c client.Client, p *progress.Printer, objs []client.Object) error {
	unchanged := 0
	for _, obj := range objs {
		outcome, err := connect.Apply(ctx, c, obj)
		if err != nil {
			return err
		}
		if outcome == connect.Unchanged {
			unchanged++
			continue
		}
		p.Printf("%s %s", outcome, connect.DescribeIn(c.Scheme(), obj))
	}
	if unchanged > 0 {
		p.Printf("%d of %d objects were there already", unchanged, len(objs))
	}
	return nil
}

func waitEstablished(ctx context.Context, c client.Client, p *progress.Printer, name string) error {
	return p.Until(ctx, "CustomResourceDefinition "+name, func(ctx context.Context) (progress.State, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return progress.State{}, err
		}
		return established(crd)
	})
}

// established says whether the API server serves a CRD. A name that collides never heals by itself.
func established(crd *apiextensionsv1.CustomResourceDefinition) (progress.State, error) {
	for _, cond := range crd.Status.Conditions {
		switch {
		case cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionTrue:
			return progress.Done(), nil
		case cond.Type == apiextensionsv1.NamesAccepted && cond.Status == apiextensionsv1.ConditionFalse:
			return progress.State{}, progress.Terminal(fmt.Errorf("the API server refuses its names: %s", cond.Message))
		}
	}
	return progress.Waiting("the API server doesn't serve it yet"), nil
}

func waitAvailable(ctx context.Context, c client.Client, p *progress.Printer, key client.ObjectKey, labels client.MatchingLabels) error {
	return p.Until(ctx, "Deployment "+key.String(), func(ctx context.Context) (progress.State, error) {
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, key, d); err != nil {
			return progress.State{}, err
		}
		pods := &corev1.PodList{}
		// More than a handful of Pods can't belong to a Deployment of one replica that is rolling.
		if err := c.List(ctx, pods, client.InNamespace(key.Namespace), labels, client.Limit(10)); err != nil && !apierrors.IsForbidden(err) {
			return progress.State{}, err
		}
		return available(d, pods.Items), nil
	})
}

// available says whether a Deployment has rolled out, and if not, what its Pods wait for.
func available(d *appsv1.Deployment, pods []corev1.Pod) progress.State {
	want := ptr.Deref(d.Spec.Replicas, 1)
	s := d.Status
	if s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want && s.AvailableReplicas == want && s.Replicas == want {
		return progress.Done()
	}
	state := progress.Waiting("%d of %d replicas available", min(s.AvailableReplicas, s.UpdatedReplicas), want)
	for i := range pods {
		if why := podWaiting(&pods[i]); why != "" {
			state.Waiting += "; Pod " + pods[i].Name + ": " + why
		}
	}
	return state
}

// podWaiting is the reason why a Pod isn't ready, in the words of the scheduler or the kubelet; empty when it is, or when
// nobody says.
func podWaiting(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if w := status.State.Waiting; w != nil && w.Reason != "ContainerCreating" {
			return w.Reason + " " + w.Message
		}
	}
	for _, cond := range pod.Status.Conditions {
		if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse {
			return cond.Reason + " " + cond.Message
		}
	}
	return ""
}
