package migration

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
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
	private := !o.Journal.Direction.Private()
	var steps []Step
	if o.HCP != nil && (o.HCP.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true") != private || o.rightsIn(!private) != "" {
		steps = []Step{{Op: OpNoteHCP, Private: private}, {Op: OpDeploy, Private: private}}
	}
	for _, program := range o.Programs {
		if program.Before != nil {
			steps = append(steps, Step{Op: OpRestore, Program: program, Replicas: *program.Before})
		}
	}
	if len(steps) > 0 {
		return Plan{Steps: steps, Ordered: true}
	}
	return o.unpause(o.From, RolledBack)
}

// untouched tells that a move has changed nothing that would have to be taken back, so that an operator may be at work.
func (o Observed) untouched() bool {
	p := o.rollBack()
	return p.Next == RolledBack && len(p.Steps) == 0
}

// rightsIn is a group of Cluster API, private or standard, in which programs have rights; empty: they have none.
func (o Observed) rightsIn(private bool) string {
	for _, g := range o.Rights {
		if translate.IsPrivate(g) == private {
			return g
		}
	}
	return ""
}
