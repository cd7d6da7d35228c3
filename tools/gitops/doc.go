// Package gitops runs the health checks of config/gitops with the languages that Argo CD and Flux have for them: Lua and CEL. It is a module of its own, as
// nothing else needs an interpreter of Lua.
package gitops
