package gotemplate

import (
	"fmt"

	semverlib "github.com/Masterminds/semver/v3"
)

// version is what semver gives: a version that templates can ask, but not change. Texts from it are as short as what it was made of.
type version struct{ v *semverlib.Version }

func newVersion(text string) (*version, error) {
	v, err := semverlib.NewVersion(text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return &version{v}, nil
}

func (v version) String() string               { return v.v.String() }
func (v version) MarshalJSON() ([]byte, error) { return v.v.MarshalJSON() }

// Original is the text that the version was made of.
func (v version) Original() string   { return v.v.Original() }
func (v version) Major() uint64      { return v.v.Major() }
func (v version) Minor() uint64      { return v.v.Minor() }
func (v version) Patch() uint64      { return v.v.Patch() }
func (v version) Prerelease() string { return v.v.Prerelease() }
func (v version) Metadata() string   { return v.v.Metadata() }

// IncMajor, IncMinor and IncPatch are the next versions.
func (v version) IncMajor() *version { n := v.v.IncMajor(); return &version{&n} }
func (v version) IncMinor() *version { n := v.v.IncMinor(); return &version{&n} }
func (v version) IncPatch() *version { n := v.v.IncPatch(); return &version{&n} }

// Compare is -1 for a version that is lower than the other, 1 for a higher one.
func (v version) Compare(o *version) int           { return v.v.Compare(o.v) }
func (v version) Equal(o *version) bool            { return v.v.Equal(o.v) }
func (v version) LessThan(o *version) bool         { return v.v.LessThan(o.v) }
func (v version) LessThanEqual(o *version) bool    { return v.v.LessThanEqual(o.v) }
func (v version) GreaterThan(o *version) bool      { return v.v.GreaterThan(o.v) }
func (v version) GreaterThanEqual(o *version) bool { return v.v.GreaterThanEqual(o.v) }
