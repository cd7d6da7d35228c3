package pause

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

const office = "sleep 0 20 * * 1-5; wake 0 7 * * 1-5; zone Europe/Berlin"

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestScheduled(t *testing.T) {
	for name, c := range map[string]struct {
		schedule, ordered, now string
		active                 bool
		until, next            string // empty: zero
	}{
		"When it is day it should be awake until the evening":                {schedule: office, now: "2026-11-04T12:00:00Z", next: "2026-11-04T19:00:00Z"},
		"When it is night it should sleep until the morning":                 {schedule: office, now: "2026-11-04T22:00:00Z", active: true, until: "2026-11-05T06:00:00Z", next: "2026-11-05T06:00:00Z"},
		"When it is the weekend it should sleep until Monday":                {schedule: office, now: "2026-11-07T12:00:00Z", active: true, until: "2026-11-09T06:00:00Z", next: "2026-11-09T06:00:00Z"},
		"When the minute has come it should sleep":                           {schedule: office, now: "2026-11-04T19:00:00Z", active: true, until: "2026-11-05T06:00:00Z", next: "2026-11-05T06:00:00Z"},
		"When it is summer it should go by the clocks of the place":          {schedule: office, now: "2026-07-01T18:30:00Z", active: true, until: "2026-07-02T05:00:00Z", next: "2026-07-02T05:00:00Z"},
		"When no zone is said it should be UTC":                              {schedule: "sleep 0 20 * * *; wake 0 7 * * *", now: "2026-07-01T19:59:59Z", next: "2026-07-01T20:00:00Z"},
		"When the clocks leave out the time to wake it should wake at once":  {schedule: "sleep 0 20 * * *; wake 30 2 * * *; zone Europe/Berlin", now: "2026-03-29T01:00:00Z", next: "2026-03-29T18:00:00Z"},
		"When the clocks show the time to wake twice it should wake once":    {schedule: "sleep 0 20 * * *; wake 30 2 * * *; zone Europe/Berlin", now: "2026-10-25T01:10:00Z", next: "2026-10-25T19:00:00Z"},
		"When it was woken by hand at night it should stay awake":            {schedule: office, ordered: "2026-11-04T21:00:00Z", now: "2026-11-04T22:00:00Z", next: "2026-11-05T19:00:00Z"},
		"When it was woken by hand before the evening it should sleep again": {schedule: office, ordered: "2026-11-04T18:00:00Z", now: "2026-11-04T22:00:00Z", active: true, until: "2026-11-05T06:00:00Z", next: "2026-11-05T06:00:00Z"},
		"When it was put to sleep by hand the schedule should not wake it":   {schedule: office, ordered: "true", now: "2026-11-05T12:00:00Z", active: true},
		"When it is to stay awake the schedule should not put it to sleep":   {schedule: office, ordered: "false", now: "2026-11-04T22:00:00Z"},
		"When it sleeps by hand until a time it should sleep until then":     {schedule: office, ordered: "2026-11-05T12:00:00Z", now: "2026-11-05T08:00:00Z", active: true, until: "2026-11-05T12:00:00Z"},
		"When that time has come it should be awake until the evening":       {schedule: office, ordered: "2026-11-05T12:00:00Z", now: "2026-11-05T12:00:00Z", next: "2026-11-05T19:00:00Z"},
		"When it sleeps a day of the month it should know of the last one":   {schedule: "sleep 0 0 1 * *; wake 0 0 2 * *", now: "2026-11-30T12:00:00Z", next: "2026-12-01T00:00:00Z"},
		"When it last slept years ago it should know of that":                {schedule: "sleep 0 0 29 2 *; wake 0 0 1 3 *", now: "2027-11-30T12:00:00Z", next: "2028-02-29T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			annotations := map[string]string{ScheduleAnnotation: c.schedule}
			if c.ordered != "" {
				annotations[hyperv1.HibernateAnnotation] = c.ordered
			}
			got := Hibernation(annotations, at(c.now))
			text := func(t time.Time) string {
				if t.IsZero() {
					return ""
				}
				return t.UTC().Format(time.RFC3339)
			}
			g.Expect(got.Problem).To(BeEmpty())
			g.Expect(got.Active).To(Equal(c.active))
			g.Expect(text(got.Until)).To(Equal(c.until))
			g.Expect(text(got.Next)).To(Equal(c.next))
		})
	}
}

func TestParseSchedule(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"When it is complete it should be taken":                     {text: office},
		"When there is no time to wake it should ask for it":         {text: "sleep 0 20 * * *", says: "when it wakes"},
		"When the zone is none it should say how one looks":          {text: "sleep 0 20 * * *; wake 0 7 * * *; zone Middle/Earth", says: `"Middle/Earth" is no time zone: write one such as Europe/Berlin`},
		"When the zone is that of the machine it should be refused":  {text: "sleep 0 20 * * *; wake 0 7 * * *; zone Local", says: "is no time zone"},
		"When a field is wrong it should say which":                  {text: "sleep 0 25 * * *; wake 0 7 * * *", says: `"0 25 * * *"`},
		"When the zone hides in the times it should be refused":      {text: "sleep TZ=UTC 0 20 * * *; wake 0 7 * * *", says: "give five fields"},
		"When it never comes it should say so":                       {text: "sleep 0 0 31 2 *; wake 0 7 * * *", says: "never comes"},
		"When something is said twice it should say so":              {text: "sleep 0 20 * * *; sleep 0 21 * * *; wake 0 7 * * *", says: "said twice"},
		"When it makes no sense it should show how to write it":      {text: "at night", says: "write it like"},
		"When it wakes too soon it should say how long it takes":     {text: "sleep 0 20 * * *; wake 10 20 * * *", says: "it would change after 10m0s"},
		"When it always wakes as it falls asleep it should say so":   {text: "sleep 0 20 * * *; wake 0 20 * * *", says: "would never sleep"},
		"When it is longer than anybody writes it should be refused": {text: fmt.Sprintf("%0300d", 0), says: "at most 256"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSchedule(c.text)
			g := NewWithT(t)
			if c.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			}
		})
	}
	t.Run("When a schedule can't be read it should be as if there were none", func(t *testing.T) {
		g := NewWithT(t)
		got := Hibernation(map[string]string{ScheduleAnnotation: "at night", hyperv1.HibernateAnnotation: "true"}, at("2026-11-04T12:00:00Z"))
		g.Expect(got.Active).To(BeTrue())
		g.Expect(got.Problem).To(ContainSubstring("write it like"))
	})
}

// TestScheduleProperties plays days around changes of clocks.
func TestScheduleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia"}).Draw(t, "zone")
		clock := func(name string) time.Duration {
			return time.Duration(rapid.IntRange(0, 24*60-1).Draw(t, name)) * time.Minute
		}
		field := func(d time.Duration) string { return fmt.Sprintf("%d %d", int(d.Minutes())%60, int(d.Hours())) }
		sleeps, wakes := clock("sleep"), clock("wake")
		text := fmt.Sprintf("sleep %s * * *; wake %s * * *; zone %s", field(sleeps), field(wakes), zone)
		s, err := ParseSchedule(text)
		if err != nil {
			t.Skip(err.Error())
		}
		now := rapid.SampledFrom([]time.Time{at("2026-03-06T00:00:00Z"), at("2026-03-27T00:00:00Z"), at("2026-10-23T00:00:00Z"), at("2026-10-30T00:00:00Z"), at("2026-04-03T00:00:00Z")}).Draw(t, "start")
		start, changes, jumped := now, 0, 0
		before := s.scheduled(time.Time{}, now)
		for range 4 * 24 * 60 / 16 {
			then := now.Add(16 * time.Minute)
			after := s.scheduled(time.Time{}, then)
			if s.wall(then).Before(s.wall(now)) {
				t.Fatalf("%s: the clock on the wall went back at %s", text, then)
			}
			if !before.Next.After(now) {
				t.Fatalf("%s: at %s it says that it changed at %s", text, now, before.Next)
			}
			if before.Next.After(then) && after.Active != before.Active {
				t.Fatalf("%s: at %s it said that it stays so until %s, and it changed by %s", text, now, before.Next, then)
			}
			// Both may be in the hour that clocks leave out when they are put forward.
			both := !before.Next.After(then) && after.Active == before.Active
			if both && s.wall(then).Sub(s.wall(now)) > 16*time.Minute {
				jumped += 2
			} else if both {
				t.Fatalf("%s: at %s it said that it changes at %s, and it did not by %s", text, now, before.Next, then)
			}
			if after.Active != before.Active {
				changes++
			}
			// What a command orders holds until the schedule's next word.
			woken := s.scheduled(then, then)
			if woken.Active || !woken.Next.After(then) {
				t.Fatalf("%s: woken at %s it sleeps, or at once again: %+v", text, then, woken)
			}
			now, before = then, after
		}
		// Each once for every day on the wall: no change of clocks leaves one out or has one come twice.
		want := 0
		for day := s.wall(start).Truncate(24 * time.Hour); !day.After(s.wall(now)); day = day.Add(24 * time.Hour) {
			for _, at := range []time.Time{day.Add(sleeps), day.Add(wakes)} {
				if at.After(s.wall(start)) && !at.After(s.wall(now)) {
					want++
				}
			}
		}
		if changes+jumped != want {
			t.Fatalf("%s: %d changes, and %d in an hour that was left out, from %s to %s; %d were to come", text, changes, jumped, start, now, want)
		}
	})
}
