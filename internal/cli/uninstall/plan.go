package uninstall

import (
	"fmt"
	"slices"
	"strings"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// plan is what an uninstallation does, in the order of its fields, and what it says of the rest.
type plan struct {
	// refusals are what stands in the way, each with its remedy. Nothing is done while there is one.
	refusals []string
	// clusters are HostedClusters and NodePools to destroy, packages those objects of the package operator that nobody else deletes.
	clusters, packages []object
	// moreClusters and morePackages say that there are more of a kind of them than was read.
	moreClusters, morePackages bool
	// programs stop first: what they look after must not be made again while it goes.
	programs, objects, crds, namespaces []object
	// converted are definitions of others that need our operator's conversion, and are to do without.
	converted []object
	// goes says of kinds how many objects go with their definitions, kept what stays and why, clouds what stays in accounts of clouds.
	goes, kept, clouds []string
}

// steps are the deletions, in order.
func (p plan) steps() [][]object {
	return [][]object{p.programs, p.objects, p.crds, p.namespaces}
}

// empty tells that there is nothing to delete.
func (p plan) empty() bool {
	return len(p.converted)+len(p.clusters)+len(p.packages)+len(p.programs)+len(p.objects)+len(p.crds)+len(p.namespaces) == 0
}

// isCluster are the kinds that users make for hosted clusters. An operator has to be there until they are gone.
func isCluster(k kind) bool {
	return k.crd.Name == "hostedclusters."+hyperv1.GroupVersion.Group || k.crd.Name == "nodepools."+hyperv1.GroupVersion.Group
}

// cameSince is the remedy for what is there although all of its kind were deleted.
const cameSince = "they came while the others were deleted, or were too many for one run: stop whoever makes them, for example GitOps, and run it again"

// otherOwner is why something of which an installation may have the like stays.
const otherOwner = "it has another owner"

func isPackage(k kind) bool { return k.group == packagesv1.GroupVersion.Group }

// planFor decides what goes. It never takes a program away from objects that wait for it: a refusal is in the plan for each kind of them, unless
// the options say that they are to be deleted first.
func planFor(obs observed, o Options) plan {
	p := plan{clouds: obs.clouds}
	for _, k := range obs.kinds {
		switch {
		case !k.ours:
			why := k.why
			if k.converts {
				why += "; it will serve its stored version alone, as our operator won't convert others any more"
				p.converted = append(p.converted, k.crd)
			}
			p.kept = append(p.kept, fmt.Sprintf("CustomResourceDefinition %s: %s", k.crd.Name, why))
			continue
		case isCluster(k):
			p.clusters = append(p.clusters, k.instances...)
			p.moreClusters = p.moreClusters || k.more
			switch {
			case !o.DestroyClusters:
				p.refuse(k, "destroy them first (hypershift destroy cluster …), or add --destroy-hosted-clusters")
			case o.after:
				p.refuse(k, cameSince)
			}
		case isPackage(k):
			p.planPackages(k, o)
		default:
			p.planInstances(k, o, obs.clusterCount() > 0)
		}
		if o.KeepCRDs {
			p.kept = append(p.kept, fmt.Sprintf("CustomResourceDefinition %s: --keep-crds", k.crd.Name))
			continue
		}
		p.crds = append(p.crds, k.crd)
	}
	for _, obj := range obs.foreign {
		p.kept = append(p.kept, fmt.Sprintf("%s: %s", obj, otherOwner))
	}
	for _, obj := range slices.Backward(obs.installed) {
		switch {
		case obj.Kind == "Deployment":
			p.programs = append(p.programs, obj)
		case obj.Kind != "Namespace":
			p.objects = append(p.objects, obj)
		case strings.HasPrefix(obj.Name, "kube-") || obj.Name == "default" || strings.HasPrefix(obj.Name, "openshift-"):
			p.kept = append(p.kept, fmt.Sprintf("Namespace %s: it belongs to the management cluster", obj.Name))
		case len(obs.strangers[obj.Name]) > 0:
			p.kept = append(p.kept, fmt.Sprintf("Namespace %s: there is more in it: %s", obj.Name, some(obs.strangers[obj.Name])))
		default:
			p.namespaces = append(p.namespaces, obj)
		}
	}
	return p
}

func (obs observed) clusterCount() (n int) {
	for _, k := range obs.kinds {
		if isCluster(k) && k.ours {
			n += len(k.instances)
		}
	}
	return n
}

// refuse says that objects of a kind stand in the way.
func (p *plan) refuse(k kind, remedy string) {
	if len(k.instances) > 0 {
		p.refusals = append(p.refusals, fmt.Sprintf("%s: %s", count(k), remedy))
	}
}

// planPackages deletes what nobody owns: the operator of packages deletes the rest.
func (p *plan) planPackages(k kind, o Options) {
	for _, obj := range k.instances {
		if !obj.owned {
			p.packages = append(p.packages, obj)
		}
	}
	p.morePackages = p.morePackages || k.more
	switch {
	case !o.DeletePackages:
		p.refuse(k, "delete them first, or add --delete-packages, which removes what they installed, too")
	case o.after:
		p.refuse(k, cameSince)
	}
}

// planInstances is for kinds that go with their definitions. One with a finalizer would never be gone without the program that takes it off;
// while there are hosted clusters to destroy it is theirs, and looked at again when they are gone.
func (p *plan) planInstances(k kind, o Options, clusters bool) {
	if len(k.instances) == 0 {
		return
	}
	if o.KeepCRDs {
		return
	}
	held := slices.DeleteFunc(slices.Clone(k.instances), func(obj object) bool { return len(obj.finalizers) == 0 })
	if len(held) > 0 && !clusters {
		h := k
		h.instances = held
		p.refuse(h, fmt.Sprintf("they have finalizers (%s) that nobody would remove: delete them first", strings.Join(held[0].finalizers, ", ")))
		return
	}
	if !clusters {
		p.goes = append(p.goes, count(k)+" with their definition")
	}
}

// count is "3 HostedClusters (clusters/a, clusters/b, clusters/c)".
func count(k kind) string {
	names := make([]string, len(k.instances))
	for i, obj := range k.instances {
		names[i] = strings.TrimPrefix(obj.Namespace+"/"+obj.Name, "/")
	}
	number := fmt.Sprint(len(names))
	if k.more {
		number = "more than " + number
	}
	plural := "s"
	if len(names) == 1 {
		plural = ""
	}
	return fmt.Sprintf("%s %s%s (%s)", number, k.instances[0].Kind, plural, some(names))
}

// some names the first few.
func some(names []string) string {
	const most = 3
	names = slices.Sorted(slices.Values(names))
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
