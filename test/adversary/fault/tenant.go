package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/test/adversary/plan"
	"hcp.internal/platform/test/adversary/world"
)

// Hostile is where hostile things come from.
type Hostile struct {
	// Folder has a folder for each hostile package.
	Folder string
	// Violated is called when something hostile had its way.
	Violated func(invariant, what string)
}

// prefix of names of hostile objects, so that they can be told from those of a tenant who means well.
const prefix = "hostile-"

func (f *Faults) tenant(ctx context.Context, s plan.Step) (met string, err error) {
	switch s.Kind {
	case plan.Requests:
		return f.requests(ctx, s)
	case plan.Signing:
		return f.signing(ctx, s)
	}
	var objects []client.Object
	if s.Kind == plan.Templates {
		objects = f.templates(s)
	} else {
		objects, err = f.packages(ctx, s)
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.takeBack(objects)) }()
	var names []string
	for _, o := range objects {
		names = append(names, o.GetName())
		if e := client.IgnoreAlreadyExists(f.World.Client.Create(ctx, o)); e != nil && ctx.Err() == nil {
			return "", fmt.Errorf("creating %s: %w", o.GetName(), e)
		}
	}
	world.Wait(ctx, s.For)
	return strings.Join(names, ", "), nil
}

// templates are ObjectTemplates from the corpus, others for each step.
func (f *Faults) templates(s plan.Step) []client.Object {
	all := packagestest.HostileTemplates()
	objects := []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: world.Tenant, Name: "source"}, Data: map[string]string{"value": strings.Repeat("a", 100)}}}
	for i := range s.Count {
		h := all[(s.Number*31+i)%len(all)]
		objects = append(objects, &v1alpha1.ObjectTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: world.Tenant, Name: prefix + h.Name}, Spec: h.Spec("")})
	}
	return objects
}

// packages are Packages with images from the corpus, which are pushed first.
func (f *Faults) packages(ctx context.Context, s plan.Step) ([]client.Object, error) {
	dirs, err := filepath.Glob(filepath.Join(f.Hostile.Folder, "*"))
	if err != nil || len(dirs) == 0 {
		return nil, fmt.Errorf("finding hostile packages in %s: %w", f.Hostile.Folder, errors.Join(err, fs.ErrNotExist))
	}
	var objects []client.Object
	for i := range s.Count {
		dir := dirs[(s.Number*31+i)%len(dirs)]
		files, err := load.Folder(dir)
		if err != nil {
			return nil, err
		}
		image := world.Registry() + "/adversary/" + filepath.Base(dir) + ":v1"
		if err := Push(ctx, image, files); err != nil {
			return nil, err
		}
		objects = append(objects, &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: world.Tenant, Name: prefix + filepath.Base(dir)}, Spec: v1alpha1.PackageSpec{Image: image}})
	}
	return objects, nil
}

// Push makes an image of a package's files, without looking at them.
func Push(ctx context.Context, image string, files load.Files) error {
	img, err := images.Build(files, nil)
	if err != nil {
		return err
	}
	ref, err := name.NewTag(image)
	if err != nil {
		return err
	}
	if err := remote.Write(ref, img, remote.WithContext(ctx)); err != nil {
		return fmt.Errorf("pushing %s: %w", image, err)
	}
	return nil
}

// takeBack deletes what was made, also when everything else is over, and looks whether it had its way.
func (f *Faults) takeBack(objects []client.Object) error {
	return world.Until(context.Background(), undoTime, func(ctx context.Context) error {
		made := &corev1.ConfigMap{}
		if err := f.World.Client.Get(ctx, client.ObjectKey{Namespace: world.Tenant, Name: "made"}, made); err == nil {
			f.Hostile.Violated("refused", "a hostile ObjectTemplate was rendered: ConfigMap made is there, of "+fmt.Sprint(made.OwnerReferences))
		} else if client.IgnoreNotFound(err) != nil {
			return err
		}
		for _, o := range objects {
			if err := client.IgnoreNotFound(f.World.Client.Delete(ctx, o)); err != nil {
				return fmt.Errorf("deleting %s: %w", o.GetName(), err)
			}
		}
		return nil
	})
}
