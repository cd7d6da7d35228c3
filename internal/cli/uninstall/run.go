package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/cli/progress"
)

// Options says what to remove.
type Options struct {
	Connect   connect.Flags
	Namespace string // of the operator
	Yes       bool   // delete; otherwise only say what would go
	// DestroyClusters and DeletePackages delete what stands in the way, instead of refusing.
	DestroyClusters, DeletePackages bool
	KeepCRDs                        bool          // leave the definitions, and the objects of their kinds
	Timeout                         time.Duration // in all; 0: no limit

	Clock clock.WithTicker // nil: the real one

	// after says that what stands in the way was deleted already: what is there now came since, and is refused.
	after bool
}

// NewOptions returns the defaults.
func NewOptions() Options {
	return Options{Namespace: install.DefaultNamespace, Timeout: 30 * time.Minute}
}

// ErrInTheWay is returned by Run when something stands in the way of an uninstallation; nothing was deleted then.
var ErrInTheWay = errors.New("nothing was deleted")

// Run uninstalls from the cluster that o.Connect names and prints what it does to out. It may be run again at any time.
func Run(ctx context.Context, o Options, out io.Writer) error {
	c, err := o.Connect.Client()
	if err != nil {
		return err
	}
	return run(ctx, o, c, out)
}

func run(ctx context.Context, o Options, c client.Client, out io.Writer) error {
	ctx, cancel := connect.WithTimeout(ctx, o.Timeout)
	defer cancel()
	p := progress.New(out, o.Clock)
	obs, err := observe(ctx, c, o.Namespace)
	if err != nil {
		return err
	}
	if o.DestroyClusters {
		if obs.clouds, err = clouds(ctx, c); err != nil {
			return err
		}
	}
	todo := planFor(obs, o)
	say(out, todo)
	switch {
	case len(todo.refusals) > 0:
		return fmt.Errorf("%w: %s", ErrInTheWay, todo.refusals[0])
	case todo.empty():
		p.Printf("nothing is installed")
		return nil
	case !o.Yes:
		fmt.Fprintln(out, "Nothing was deleted. Run it again with --yes to delete this.")
		return nil
	}
	if err := first(ctx, c, p, o, todo); err != nil {
		return err
	}
	// What stood before us is gone; what it left behind, and what came meanwhile, decides about the rest.
	if obs, err = observe(ctx, c, o.Namespace); err != nil {
		return err
	}
	o.after = true
	if todo = planFor(obs, o); len(todo.refusals) > 0 {
		return fmt.Errorf("stopped before the operators went: %s", todo.refusals[0])
	}
	for _, crd := range todo.converted {
		if err := install.EndConversion(ctx, c, crd.Name, o.Namespace); err != nil {
			return err
		}
		p.Printf("%s does without our conversion", crd)
	}
	for _, step := range todo.steps() {
		if err := deleteAll(ctx, c, p, step); err != nil {
			return err
		}
	}
	p.Printf("uninstalled")
	return nil
}

// say prints the plan.
func say(out io.Writer, p plan) {
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintln(out, title)
		for _, line := range lines {
			fmt.Fprintln(out, "  "+line)
		}
	}
	var goes []string
	for _, objs := range append([][]object{p.clusters, p.packages}, p.steps()...) {
		for _, obj := range objs {
			goes = append(goes, obj.String())
		}
	}
	if p.moreClusters || p.morePackages {
		goes = append(goes, fmt.Sprintf("more of the kinds of which %d are listed", maxInstances))
	}
	section("These would go, in this order:", append(goes, p.goes...))
	section("These stay:", p.kept)
	section("The networks, zones and roles of these stay in AWS, as nothing here has credentials of their accounts. Note how to remove them, for their names go "+
		"with the hosted clusters; or use hypershift destroy cluster aws instead:", p.clouds)
	section("These stand in the way:", p.refusals)
}

// first destroys hosted clusters, then packages, while the programs are there that do the work.
func first(ctx context.Context, c client.Client, p *progress.Printer, o Options, todo plan) error {
	if o.DestroyClusters {
		// Clusters take packages of theirs along. NodePools go with their cluster, but those without one have to be told.
		if err := deletePages(ctx, c, p, o, todo, func(todo plan) ([]object, bool) { return todo.clusters, todo.moreClusters }); err != nil {
			return err
		}
	}
	if !o.DeletePackages {
		return nil
	}
	if err := deletePages(ctx, c, p, o, todo, func(todo plan) ([]object, bool) { return todo.packages, todo.morePackages }); err != nil {
		return err
	}
	return p.Until(ctx, "the packages' objects to go", func(ctx context.Context) (progress.State, error) {
		obs, err := observe(ctx, c, o.Namespace)
		if err != nil {
			return progress.State{}, err
		}
		if len(planFor(obs, o).packages) > 0 {
			return progress.Done(), nil // somebody makes them: waiting doesn't help, and who looks next refuses them
		}
		for _, k := range obs.kinds {
			if isPackage(k) && len(k.instances) > 0 {
				return progress.Waiting("%s", count(k)), nil
			}
		}
		return progress.Done(), nil
	})
}

// maxPages bounds how often first looks for more of a kind than one look shows.
const maxPages = 100

// deletePages deletes what pick takes from the plan, and looks again as long as there was more than one look showed. What is there again once it
// was deleted stays: who makes it would make it once more.
func deletePages(ctx context.Context, c client.Client, p *progress.Printer, o Options, todo plan, pick func(plan) (objs []object, more bool)) error {
	deleted := map[string]bool{}
	for range maxPages {
		objs, more := pick(todo)
		objs = slices.DeleteFunc(slices.Clone(objs), func(obj object) bool { return deleted[obj.String()] })
		if err := deleteAll(ctx, c, p, objs); err != nil {
			return err
		}
		if !more || len(objs) == 0 {
			return nil
		}
		for _, obj := range objs {
			deleted[obj.String()] = true
		}
		obs, err := observe(ctx, c, o.Namespace)
		if err != nil {
			return err
		}
		todo = planFor(obs, o)
	}
	return nil
}

// deleteAll deletes objects, all at once, and waits until they are gone.
func deleteAll(ctx context.Context, c client.Client, p *progress.Printer, objs []object) error {
	var errs []error
	for _, obj := range objs {
		target := obj.metadata()
		uid := types.UID(obj.uid)
		// As it was seen: what somebody makes anew of the same name meanwhile is not ours to delete.
		err := c.Delete(ctx, target, client.Preconditions{UID: ptr.To(uid)}, client.PropagationPolicy(metav1.DeletePropagationForeground))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting %s: %w", obj, err))
			continue
		}
		p.Printf("deleting %s", obj)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, obj := range objs {
		err := p.Until(ctx, obj.String()+" to go", func(ctx context.Context) (progress.State, error) {
			live, err := get(ctx, c, obj.GroupVersionKind, obj.ObjectKey)
			if err != nil || live == nil || string(live.UID) != obj.uid {
				return progress.State{Done: err == nil}, err
			}
			if len(live.Finalizers) == 0 {
				return progress.Waiting("it is being deleted"), nil
			}
			return progress.Waiting("finalizers %v", live.Finalizers), nil
		})
		if err != nil {
			return fmt.Errorf("%w; run it again to continue", err)
		}
	}
	return nil
}

func (o object) metadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(o.GroupVersionKind)
	m.SetNamespace(o.Namespace)
	m.SetName(o.Name)
	return m
}
