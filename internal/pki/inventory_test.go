package pki

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func listed(obs Observed) []corev1.Secret {
	var secrets []corev1.Secret
	for _, s := range obs.Secrets {
		secrets = append(secrets, *s)
	}
	return secrets
}

func TestInventory(t *testing.T) {
	spec := demo()
	obs := settled(t, spec, noon)
	find := func(list []Certificate, secret, key string) *Certificate {
		for i := range list {
			if list[i].Secret == secret && list[i].Key == key {
				return &list[i]
			}
		}
		return nil
	}
	t.Run("When a control plane is new it should list each authority and leaf once, the first to end first", func(t *testing.T) {
		g := NewWithT(t)
		list := Inventory(listed(obs), 0)
		leaves, err := spec.leaves()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list).To(HaveLen(len(leaves) + len(spec.authorities())))
		g.Expect(list[0].Secret).To(Equal(NodeBootstrapClient))
		root := find(list, RootCA, CACertKey)
		g.Expect(root.Kind).To(Equal(Authority))
		g.Expect(root.Next).To(Equal(NextPrepared))
		g.Expect(*root.NextAt).To(BeTemporally("==", root.NotAfter.Add(-prepareLeft)))
		server := find(list, KASServer, TLSCertKey)
		g.Expect(server.Kind).To(Equal(Leaf))
		g.Expect(server.Issuer).To(Equal("root-ca"))
		g.Expect(server.Keeper).To(Equal(KeptByControlPlane))
		g.Expect(*server.NextAt).To(BeTemporally("==", server.NotAfter.Add(-renewBefore)))
		g.Expect(find(list, EtcdServer, "server.crt")).NotTo(BeNil())
	})
	t.Run("When an authority is being replaced it should list its generations", func(t *testing.T) {
		g := NewWithT(t)
		spec, now := spec, noon.Add(24*time.Hour)
		spec.RotateBefore, spec.TrustRolledOut = now, true
		during := apply(obs, PlanFor(spec, obs, source(now)))
		list := Inventory(listed(during), 0)
		g.Expect(find(list, RootCA, nextCertKey).Kind).To(Equal(Successor))
		g.Expect(find(list, RootCA, CACertKey).Next).To(Equal(NextSwitched))
		now = now.Add(2 * settle)
		spec.NodesTrust = follow(during)
		after := apply(during, PlanFor(spec, during, source(now)))
		list = Inventory(listed(after), 0)
		previous := find(list, RootCA, previousCertKey)
		g.Expect(previous.Kind).To(Equal(Previous))
		g.Expect(previous.Next).To(Equal(NextForgotten))
		g.Expect(*previous.NextAt).To(BeTemporally("~", now.Add(forgetAfter), time.Second))
	})
	t.Run("When an authority was replaced several times it should list each that is trusted still, with its own end and place", func(t *testing.T) {
		g := NewWithT(t)
		a := newAging(t)
		a.replace()
		first := a.now
		a.now = a.now.Add(90 * 24 * time.Hour)
		a.replace()
		list := Inventory(listed(a.obs), 0)
		older, newer := find(list, ClusterSigner, previousCertKey), find(list, ClusterSigner, previousCertKey+"#2")
		g.Expect(older.Kind).To(Equal(Previous))
		g.Expect(*older.NextAt).To(BeTemporally("~", first.Add(clusterSigning+settle), time.Second))
		g.Expect(newer.Kind).To(Equal(Previous))
		g.Expect(*newer.NextAt).To(BeTemporally("~", a.now.Add(clusterSigning+settle), time.Second))
		g.Expect(find(list, ClusterSigner, CACertKey).Kind).To(Equal(Authority))
	})
	t.Run("When a Secret is a user's or holds garbage it should say whose it is and leave garbage out", func(t *testing.T) {
		g := NewWithT(t)
		theirs := corev1.Secret{Data: map[string][]byte{TLSCertKey: obs.Secrets[KASServer].Data[TLSCertKey], "x.crt": []byte("garbage"), TLSKeyKey: []byte("secret")}}
		theirs.Name = "named"
		list := Inventory([]corev1.Secret{theirs}, 0)
		g.Expect(list).To(HaveLen(1))
		g.Expect(list[0].Keeper).To(Equal(KeptByUser))
		g.Expect(list[0].NextAt).To(BeNil())
	})
}

func TestRotateBefore(t *testing.T) {
	g := NewWithT(t)
	spec, now := demo(), noon.Add(24*time.Hour)
	obs := settled(t, spec, noon)
	before := obs
	spec.RotateBefore = now
	pass := func() Plan {
		spec.NodesTrust = follow(obs)
		plan := PlanFor(spec, obs, source(now))
		g.Expect(plan.Problems).To(BeEmpty())
		after := apply(obs, plan)
		g.Expect(verifies(spec, obs, after, now)).To(BeEmpty(), "who has the old bundles should accept the new certificates")
		obs = after
		return plan
	}
	all := len(spec.authorities())
	g.Expect(pass().Authorities).To(HaveLen(all), "When new authorities are asked for each should get a successor")
	g.Expect(pass().Empty()).To(BeTrue(), "When components have not got the bundles it should wait")
	spec.TrustRolledOut, now = true, now.Add(settle+time.Minute)
	g.Expect(pass().Authorities).To(HaveLen(all), "When all have the bundles every successor should sign")
	for _, a := range spec.authorities() {
		g.Expect(obs.Secrets[a.secret].Data[CAKeyKey]).NotTo(Equal(before.Secrets[a.secret].Data[CAKeyKey]), a.secret)
	}
	g.Expect(pass().Empty()).To(BeTrue(), "When it is done it should rest, with the annotation left where it is")
	now = now.Add(24 * time.Hour)
	g.Expect(pass().Empty()).To(BeTrue())

	spec.RevokeBefore = noon.Add(time.Hour)
	spec.TrustRolledOut = false
	g.Expect(pass().Empty()).To(BeTrue(), "When components have not got the new certificates the old authorities should stay trusted")
	spec.TrustRolledOut = true
	g.Expect(pass().Authorities).To(HaveLen(all-1), "When the old authorities are revoked they should go, but for that of nodes")
	g.Expect(obs.Secrets[ClusterSigner].Data).To(HaveKey(previousCertKey))
	g.Expect(obs.Secrets[RootCA].Data).NotTo(HaveKey(previousCertKey))
	g.Expect(pass().Empty()).To(BeTrue())

	plan := PlanFor(spec, obs, source(now))
	now = obs.mustSince(g).Add(clusterSigning + 2*time.Hour)
	g.Expect(plan.RecheckAfter).To(BeNumerically(">", 0))
	plan = PlanFor(spec, obs, source(now))
	obs = apply(obs, plan)
	g.Expect(obs.Secrets[ClusterSigner].Data).NotTo(HaveKey(previousCertKey), "When nothing can be valid any more that it signed it should be forgotten")
}

func (o Observed) mustSince(g *WithT) time.Time {
	at, err := time.Parse(time.RFC3339, o.Secrets[ClusterSigner].Annotations[switchedAnnotation])
	g.Expect(err).NotTo(HaveOccurred())
	return at
}

func TestEndsSoon(t *testing.T) {
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		kind       Kind
		life, left time.Duration
		want       bool
	}{
		"When a certificate of a year has a month to live it should not count":                {Leaf, 365 * day, 30 * day, false},
		"When a certificate of a year has a week to live it should count":                     {Leaf, 365 * day, 7 * day, true},
		"When a certificate has ended it should count":                                        {Leaf, 365 * day, -day, true},
		"When a certificate of a week has two days to live it should not count":               {Leaf, 7 * day, 2 * day, false},
		"When a certificate of a week has less than a tenth of its life left it should count": {Leaf, 7 * day, 12 * time.Hour, true},
		"When an authority ends in a week it should count":                                    {Authority, 3650 * day, 7 * day, true},
		"When an authority that signs nothing any more ends in a week it should not count":    {Previous, 3650 * day, 7 * day, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := Certificate{Kind: tc.kind, NotBefore: noon.Add(tc.left - tc.life), NotAfter: noon.Add(tc.left)}
			NewWithT(t).Expect(c.EndsSoon(noon, 14*day)).To(Equal(tc.want))
		})
	}
}
