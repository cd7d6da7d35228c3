package create

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/support"
)

// Cluster creates the hosted cluster that o describes and, with o.Wait, waits until it can be used. Progress goes to out.
//
// It may be called again with the same options at any time, also after it was interrupted: keys, the infrastructure id and, if o
// names none, the release, the network and how services are published are kept, everything else is made as o says. The API server
// refuses changes of what can't change.
func Cluster(ctx context.Context, o Options, out io.Writer) error {
	if err := o.Validate(); err != nil {
		return err
	}
	c, err := o.Connect.Client()
	if err != nil {
		return err
	}
	return cluster(ctx, o, c, out)
}

// cluster is Cluster with valid options and a client.
func cluster(ctx context.Context, o Options, c client.Client, out io.Writer) error {
	if err := o.prepare(ctx, c); err != nil {
		return err
	}
	g, err := generate(o, rand.Reader)
	if err != nil {
		return err
	}

	p := progress.New(out, o.Clock)
	kept := keptSecrets(o)
	objs := Objects(o, g)
	for _, note := range append(notHeeded(o, objs), o.kept(g)...) {
		p.Printf("%s", note)
	}
	for _, obj := range objs {
		if err := o.write(ctx, c, p, obj, kept); err != nil {
			return err
		}
	}
	if !o.Wait {
		return nil
	}
	return Wait(ctx, o, c, p)
}

// prepare asks the management cluster for what the flags leave open, and refuses what can't be made there. It writes nothing.
func (o *Options) prepare(ctx context.Context, c client.Client) error {
	if o.VersionCheck {
		if err := checkVersion(ctx, c); err != nil {
			return err
		}
	}
	existing := &hyperv1.HostedCluster{}
	err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, existing)
	switch {
	case meta.IsNoMatchError(err):
		return errors.New("the management cluster doesn't know HostedClusters: run `hypershift install` first")
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("reading HostedCluster %s/%s: %w", o.Namespace, o.Name, err)
	case err == nil && !existing.DeletionTimestamp.IsZero():
		return fmt.Errorf("HostedCluster %s/%s is being deleted: wait with `hypershift destroy cluster %s --namespace %s --name %s`",
			o.Namespace, o.Name, cmp.Or(PlatformArg(existing.Spec.Platform.Type), PlatformArg(o.Platform)), o.Namespace, o.Name)
	case err == nil && existing.Spec.Platform.Type != o.Platform:
		return fmt.Errorf("HostedCluster %s/%s uses platform %s, which can't change: choose another --name, or run `hypershift create cluster %s`",
			o.Namespace, o.Name, existing.Spec.Platform.Type, PlatformArg(existing.Spec.Platform.Type))
	case err == nil:
		o.keep(existing)
	}
	if err := complete(ctx, o, c); err != nil {
		return err
	}
	if err := o.resolveRelease(ctx, func() (client.Client, error) { return c, nil }); err != nil {
		return err
	}
	return o.settleNetwork()
}

// write applies an object, or makes it once when what exists must stay: keys, and pools whose size nobody spoke of.
func (o Options) write(ctx context.Context, c client.Client, p *progress.Printer, obj client.Object, kept map[string]bool) error {
	switch obj := obj.(type) {
	case *corev1.Secret:
		if kept[obj.Name] {
			return createOnce(ctx, c, p, obj)
		}
		if err := keepType(ctx, c, obj); err != nil {
			return err
		}
	case *hyperv1.NodePool:
		if o.NodePool.Replicas == 0 && !o.ScalePools {
			return createOnce(ctx, c, p, obj)
		}
		if err := o.keepPoolRelease(ctx, c, p, obj); err != nil {
			return err
		}
	}
	return apply(ctx, c, p, obj)
}

// keepType gives a Secret the type of the one that exists: it can't change, and somebody else may have made it.
func keepType(ctx context.Context, c client.Client, secret *corev1.Secret) error {
	existing := &corev1.Secret{}
	err := c.Get(ctx, client.ObjectKeyFromObject(secret), existing)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	// Opaque is what a Secret without a type becomes; naming it then would be a change.
	if existing.Type != corev1.SecretTypeOpaque {
		secret.Type = existing.Type
	}
	return nil
}

// ownDefaults are what the command writes by itself for platforms on which it has no effect: nobody asked for it.
func ownDefaults(o Options, f support.Finding) bool {
	return strings.HasPrefix(f.Entry.Path, "spec.dns") && o.BaseDomain == exampleDomain && o.BaseDomainPrefix == "" || f.Entry.Path == "spec.services[OIDC]"
}

// notHeeded says what of the HostedCluster has no effect. Whole platforms that are not hosted say so themselves.
func notHeeded(o Options, objs []client.Object) []string {
	var notes []string
	for _, obj := range objs {
		hc, ok := obj.(*hyperv1.HostedCluster)
		if !ok || hc.Spec.Platform.Type != hyperv1.NonePlatform && hc.Spec.Platform.Type != hyperv1.LocalPlatform {
			continue
		}
		spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&hc.Spec)
		if err != nil {
			return nil
		}
		for _, f := range append(support.Of("HostedCluster").Findings(spec, string(hc.Spec.Platform.Type)), support.AnnotationFindings(hc.Annotations, false)...) {
			if !ownDefaults(o, f) {
				notes = append(notes, fmt.Sprintf("%s: %s", f.Entry.Verdict, f))
			}
		}
	}
	return notes
}

// apply prints what it changed.
func apply(ctx context.Context, c client.Client, p *progress.Printer, obj client.Object) error {
	outcome, err := connect.Apply(ctx, c, obj)
	if err == nil && outcome != connect.Unchanged {
		p.Printf("%s %s", outcome, connect.DescribeIn(c.Scheme(), obj))
	}
	return err
}

// createOnce posts, so that of two runs at the same time one wins and the other uses the winner's.
func createOnce(ctx context.Context, c client.Client, p *progress.Printer, obj client.Object) error {
	err := c.Create(ctx, obj, client.FieldOwner(connect.FieldOwner))
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return fmt.Errorf("creating %s: %w", connect.DescribeIn(c.Scheme(), obj), err)
	}
	outcome := connect.Created
	if connect.DryRunOf(c) != connect.NoDryRun {
		outcome = connect.WouldCreate
	}
	p.Printf("%s %s", outcome, connect.DescribeIn(c.Scheme(), obj))
	return nil
}

// complete asks the management cluster for what the flags leave open.
func complete(ctx context.Context, o *Options, c client.Client) error {
	_, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: "route.openshift.io", Kind: "Route"})
	if err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("asking the management cluster for its APIs: %w", err)
	}
	if o.cloud == nil {
		o.Routes = err == nil
	}
	if !o.needsAddress() || o.keepsServices() {
		return nil
	}
	nodes := &corev1.NodeList{}
	// One ready node is enough; a page of them has one.
	if err := c.List(ctx, nodes, client.Limit(100)); err != nil {
		return fmt.Errorf("looking for a node to publish the API at: %w; give %s", err, o.addressFlags())
	}
	if o.APIServerAddress = nodeAddress(nodes.Items); o.APIServerAddress == "" {
		return fmt.Errorf("no node of the management cluster is ready and has an address: give %s", o.addressFlags())
	}
	return nil
}

// needsAddress says that services are published by node port at an address that nobody named.
func (o Options) needsAddress() bool {
	return o.APIServerAddress == "" && (o.NodePorts || o.Platform == hyperv1.NonePlatform && !o.LoadBalancer)
}

// addressFlags are the flags that say how the API is published.
func (o Options) addressFlags() string {
	if o.Platform == hyperv1.NonePlatform {
		return "--external-api-server-address or --expose-through-load-balancer"
	}
	return "--api-server-address"
}

// nodeAddress is by which address a node is reached: names and external addresses before internal ones.
func nodeAddress(nodes []corev1.Node) string {
	for _, kind := range []corev1.NodeAddressType{corev1.NodeExternalDNS, corev1.NodeExternalIP, corev1.NodeInternalIP} {
		for i := range nodes {
			if !ready(&nodes[i]) {
				continue
			}
			for _, address := range nodes[i].Status.Addresses {
				if address.Type == kind && address.Address != "" {
					return address.Address
				}
			}
		}
	}
	return ""
}

func ready(node *corev1.Node) bool {
	for _, cond := range node.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}

// RenderOptions says how Render prints.
type RenderOptions struct {
	Format    output.Format // YAML documents unless output.JSON
	Sensitive bool          // print Secrets, too
}

// Render prints what Cluster would create, and to notes what it left out. A management cluster is asked only for what the
// flags leave open.
func Render(ctx context.Context, o Options, r RenderOptions, out, notes io.Writer) error {
	if err := o.Validate(); err != nil {
		return err
	}
	switch {
	case o.needsAddress() || o.Platform == hyperv1.NonePlatform && o.LoadBalancer && o.Connect != (connect.Flags{}):
		c, err := o.Connect.Client()
		if err != nil {
			return fmt.Errorf("give %s to render without a management cluster: %w", o.addressFlags(), err)
		}
		if err := complete(ctx, &o, c); err != nil {
			return err
		}
	case o.Platform == hyperv1.NonePlatform:
		o.Routes = true // what is rendered for no cluster in particular is for one of OpenShift
	}
	if err := o.resolveRelease(ctx, o.Connect.Client); err != nil {
		return err
	}
	if err := o.settleNetwork(); err != nil {
		return err
	}
	g, err := generate(o, rand.Reader)
	if err != nil {
		return err
	}
	objs := Objects(o, g)
	for _, note := range notHeeded(o, objs) {
		fmt.Fprintln(notes, note)
	}
	return render(objs, r, out, notes)
}

func render(objs []client.Object, r RenderOptions, out, notes io.Writer) error {
	scheme := connect.Scheme()
	var rendered []map[string]any
	for _, obj := range objs {
		if _, secret := obj.(*corev1.Secret); secret && !r.Sensitive {
			fmt.Fprintf(notes, "left out Secret %s/%s: use --render-sensitive to print it\n", obj.GetNamespace(), obj.GetName())
			continue
		}
		u, err := connect.Unstructured(scheme, obj)
		if err != nil {
			return err
		}
		rendered = append(rendered, u.Object)
	}
	return r.Format.Objects(out, rendered)
}
