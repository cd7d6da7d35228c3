// Package queue chooses the queue that controllers take their work from.
package queue

import (
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/config"
)

// Plain has the controllers of a manager use client-go's rate-limited queue. Put it into the manager's Options.Controller.
//
// controller-runtime's own default, its priority queue, may never end (its issue 3538, versions up to 0.24): an item that is handed over while the
// queue shuts down has nobody to take it, and the lock is kept. An operator that is told to stop then holds its lease for another 30 s, in which
// nobody else may work. Versions with the repair need Kubernetes 1.37's libraries; with them this package goes.
func Plain() config.Controller {
	return config.Controller{UsePriorityQueue: ptr.To(false)}
}

// PlainUnnamed is Plain for processes that run several managers with controllers of the same names.
func PlainUnnamed() config.Controller {
	o := Plain()
	o.SkipNameValidation = ptr.To(true)
	return o
}
