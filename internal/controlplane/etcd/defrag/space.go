package defrag

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Spaces says how much room every etcd of the control plane has, as far as it was seen, sorted by name.
func (d *Defragmenter) Spaces() []Space {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Space
	for _, name := range slices.Sorted(maps.Keys(d.spaces)) {
		out = append(out, d.spaces[name])
	}
	return out
}

// note remembers what members say of their space. An etcd of which no member answers keeps what was known: it has not got room by that.
func (d *Defragmenter) note(ctx context.Context, name string, members []member) {
	now := spaceOf(name, members)
	if now.Quota == 0 {
		return
	}
	d.mu.Lock()
	before := d.spaces[name]
	if d.spaces == nil {
		d.spaces = map[string]Space{}
	}
	d.spaces[name] = now
	d.mu.Unlock()
	if before.Full != now.Full && d.Changed != nil {
		d.Changed(ctx)
	}
}

// forget drops what is known of etcds that are gone.
func (d *Defragmenter) forget(present []etcd) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.spaces, func(name string, _ Space) bool {
		return !slices.ContainsFunc(present, func(e etcd) bool { return e.name == name })
	})
}

// rested says whether an etcd may be defragmented, and tire that it was.
func (d *Defragmenter) rested(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, ever := d.last[name]
	return !ever || d.Clock.Since(last) >= d.rest
}

func (d *Defragmenter) tire(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		d.last = map[string]time.Time{}
	}
	d.last[name] = d.Clock.Now()
}

var (
	labels    = []string{"namespace", "etcd"}
	sizeDesc  = prometheus.NewDesc("hypershift_etcd_database_size_bytes", "Size of the largest database file of an etcd's members.", labels, nil)
	inUseDesc = prometheus.NewDesc("hypershift_etcd_database_in_use_bytes", "The part of the database that holds data.", labels, nil)
	quotaDesc = prometheus.NewDesc("hypershift_etcd_database_quota_bytes", "What the database may grow to.", labels, nil)
	fullDesc  = prometheus.NewDesc("hypershift_etcd_database_full", "1 while an etcd refuses writes, because its database has grown to its quota.", labels, nil)
)

// Describe implements prometheus.Collector.
func (d *Defragmenter) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{sizeDesc, inUseDesc, quotaDesc, fullDesc} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector. There are series only where a member was asked: in the process that leads.
func (d *Defragmenter) Collect(ch chan<- prometheus.Metric) {
	for _, s := range d.Spaces() {
		full := 0.0
		if s.Full {
			full = 1
		}
		for desc, value := range map[*prometheus.Desc]float64{sizeDesc: float64(s.Size), inUseDesc: float64(s.InUse), quotaDesc: float64(s.Quota), fullDesc: full} {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, d.Namespace, s.Etcd)
		}
	}
}
