package migration

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/contract/names"
)

// rollBack makes everything what it was. Nothing runs until the copies are gone, and nothing works until all of it runs again.
func (o Observed) rollBack() Plan {
	back := map[types.UID]types.UID{}
	for is, copied := range o.uids() {
		back[copied] = is
	}
	if p := o.repoint(back); len(p.Steps) > 0 {
		p.Next = ""
		return p
	}
	copies := slices.DeleteFunc(slices.Clone(o.To), func(c Object) bool { return !c.isCopy() })
	if len(copies) > 0 {
		// The copies have finalizers that programs would heed.
		if p := o.scaleDown(); len(p.Steps) > 0 || p.Wait != "" {
			p.Next = ""
			return p
		}
		return o.drop(copies)
	}
	if steps := o.restore(); len(steps) > 0 {
		return Plan{Steps: steps, Ordered: true}
	}
	return o.unpause(o.From, RolledBack)
}

// restore brings the programs back. The manager and the provider are deployed again only if they were deployed for the copies, which their Roles show: what
// failed then may fail again. The others, which nobody has changed, don't wait for that.
func (o Observed) restore() (steps []Step) {
	private := !o.Journal.Direction.Private()
	if o.HCP != nil && (o.HCP.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true") != private {
		steps = append(steps, Step{Op: OpNoteHCP, Private: private})
	}
	var last []Step
	if rightsIn(!private, o.Rights) != "" {
		last = append(last, Step{Op: OpDeploy, Private: private})
	}
	for _, program := range o.Programs {
		if program.Before == nil {
			continue
		}
		s := Step{Op: OpRestore, Program: program, Replicas: *program.Before}
		if program.Name == names.ClusterAPI || program.Name == names.CAPIProvider {
			last = append(last, s)
		} else {
			steps = append(steps, s)
		}
	}
	return append(steps, last...)
}

// untouched tells that a move has changed nothing that would have to be taken back, so that an operator may be at work.
func (o Observed) untouched() bool {
	p := o.rollBack()
	return p.Next == RolledBack && len(p.Steps) == 0
}

// rightsIn is a group of Cluster API, private or standard, among those in which a program has rights; empty: there is none.
func rightsIn(private bool, rights []string) string {
	for _, g := range rights {
		if translate.IsPrivate(g) == private {
			return g
		}
	}
	return ""
}
