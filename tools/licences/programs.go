package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Program is what is built from packages of one module.
type Program struct {
	Dir       string // of the module, in the repository
	ModFile   string // empty: go.mod
	Packages  []string
	Platforms []string // GOOS/GOARCH; what is linked for them together counts
}

var (
	servers = []string{"linux/amd64", "linux/arm64"}
	desks   = []string{"linux/amd64", "darwin/arm64", "windows/amd64"} // architectures differ in nothing that counts
)

// Programs are all that we hand out, by the name of the image or archive.
var Programs = map[string]Program{
	"cli":             {Dir: ".", Packages: []string{"./cmd/hypershift", "./cmd/kubectl-plugin"}, Platforms: desks},
	"operators":       {Dir: ".", Packages: []string{"./cmd/hypershift", "./cmd/hcp-operators", "./cmd/hcp-cloud", "./cmd/hcp-sidecar"}, Platforms: servers},
	"sidecar":         {Dir: ".", Packages: []string{"./cmd/hcp-sidecar"}, Platforms: servers},
	"pause":           {Dir: ".", Packages: []string{"./cmd/pause"}, Platforms: servers},
	"kubernetes":      {Dir: "kubernetes", Packages: []string{".", "./node"}, Platforms: servers},
	"kubernetes-1.35": {Dir: "kubernetes", ModFile: "v1.35.mod", Packages: []string{".", "./node"}, Platforms: servers},
	"cluster-api":     {Dir: "capi", Packages: []string{"sigs.k8s.io/cluster-api"}, Platforms: servers},
	"coredns":         {Dir: "coredns", Packages: []string{"."}, Platforms: servers},
	"flannel":         {Dir: "flannel", Packages: []string{"."}, Platforms: servers},
	"karpenter":       {Dir: "karpenter", Packages: []string{"./cmd/hcp-karpenter"}, Platforms: servers},
	"local-storage":   {Dir: "storage", Packages: []string{"."}, Platforms: servers},
}

// programs looks names up; none means every program.
func programs(names []string) ([]Program, error) {
	known := slices.Sorted(maps.Keys(Programs))
	if len(names) == 0 {
		names = known
	}
	var found []Program
	for _, name := range names {
		p, ok := Programs[name]
		if !ok {
			return nil, fmt.Errorf("unknown program %q: use some of %s", name, strings.Join(known, ", "))
		}
		found = append(found, p)
	}
	return found, nil
}
