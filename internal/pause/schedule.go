package pause

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
	_ "time/tzdata" // images have no time zones of their own

	"github.com/robfig/cron/v3"
)

// ScheduleAnnotation of a HostedCluster says when it sleeps and wakes by itself, such as "sleep 0 20 * * 1-5; wake 0 7 * * 1-5; zone Europe/Berlin". Times are those
// of cron (minute, hour, day of month, month, day of week), by the clocks of the zone; without one they are UTC.
const ScheduleAnnotation = "hypershift.openshift.io/hibernate-schedule"

const (
	// maxSchedule bounds what is parsed.
	maxSchedule = 256
	// shortest is how long a cluster has to sleep, and to be awake, at least: falling asleep and waking take minutes each.
	shortest = 30 * time.Minute
	// checked is how many changes are looked at to find out.
	checked = 60
	// farthest is how far back a change is looked for: one on the 29th of February is eight years old at most.
	farthest = 9 * 366 * 24 * time.Hour
	// maxShift is more than clocks of two places differ by.
	maxShift = 15 * time.Hour
	// recheck bounds how long nobody looks: a clock that is put right moves what comes next.
	recheck = 15 * time.Minute
)

// Schedule is when a hosted cluster sleeps.
type Schedule struct {
	sleep, wake cron.Schedule
	zone        *time.Location
}

// ParseSchedule reads the value of ScheduleAnnotation. Errors say what it takes.
func ParseSchedule(text string) (Schedule, error) {
	s := Schedule{zone: time.UTC}
	if len(text) > maxSchedule {
		return s, fmt.Errorf("a schedule has at most %d characters", maxSchedule)
	}
	seen := map[string]bool{}
	for _, part := range strings.Split(text, ";") {
		what, value, _ := strings.Cut(strings.TrimSpace(part), " ")
		value = strings.TrimSpace(value)
		if seen[what] {
			return s, fmt.Errorf("%q is said twice: say it once", what)
		}
		seen[what] = true
		var err error
		switch what {
		case "sleep":
			s.sleep, err = parseTimes(value)
		case "wake":
			s.wake, err = parseTimes(value)
		case "zone":
			if s.zone, err = time.LoadLocation(value); err != nil || value == "" || value == "Local" {
				err = fmt.Errorf("%q is no time zone: write one such as Europe/Berlin", value)
			}
		default:
			err = errors.New("write it like: sleep 0 20 * * 1-5; wake 0 7 * * 1-5; zone Europe/Berlin")
		}
		if err != nil {
			return s, err
		}
	}
	if s.sleep == nil || s.wake == nil {
		return s, errors.New("it has to say when the cluster sleeps and when it wakes: sleep 0 20 * * 1-5; wake 0 7 * * 1-5")
	}
	return s, s.longEnough()
}

func parseTimes(text string) (cron.Schedule, error) {
	const takes = "give five fields: minute, hour, day of month, month, day of week"
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") || strings.HasPrefix(text, "@") {
		return nil, fmt.Errorf("%q: %s", text, takes)
	}
	times, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w; %s", text, err, takes)
	}
	if times.Next(someday).IsZero() {
		return nil, fmt.Errorf("%q never comes: %s", text, takes)
	}
	return times, nil
}

// someday is a Thursday: any time will do, as what is too often is too often from there, too.
var someday = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// longEnough refuses schedules that leave no time to sleep, or to be awake.
func (s Schedule) longEnough() error {
	at, asleep := someday, false
	changed := time.Time{}
	for range checked {
		sleep, wake := s.sleep.Next(at), s.wake.Next(at)
		if sleep.IsZero() || wake.IsZero() {
			break // not for years
		}
		at = sleep
		if !wake.After(sleep) { // at the same time, it wakes
			at = wake
		}
		if now := at.Equal(sleep) && !at.Equal(wake); now != asleep {
			if gap := at.Sub(changed); !changed.IsZero() && gap < shortest {
				return fmt.Errorf("it would change after %s, and falling asleep or waking may take that long: leave at least %s between them", gap, shortest)
			}
			asleep, changed = now, at
		}
	}
	if changed.IsZero() {
		return errors.New("the cluster would never sleep: each time it is to sleep it is to wake, too")
	}
	return nil
}

// Sleep is what a HostedCluster's annotations ask for at some time. Active says that it is to sleep.
type Sleep struct {
	Pause
	// Next is when the schedule changes that; zero without a schedule, and while somebody has ordered otherwise.
	Next time.Time
	// Problem is what is wrong with the schedule, which then is none.
	Problem string
}

// Left is how long after now somebody has to look again, and 0 when nothing changes by itself.
func (s Sleep) Left(now time.Time) time.Duration {
	left := s.Pause.Left(now)
	if !s.Next.IsZero() {
		if next := min(max(s.Next.Sub(now), time.Second), recheck); left <= 0 || next < left {
			left = next
		}
	}
	return left
}

// scheduled decides for a cluster with a schedule. What was ordered last holds: a command, or the schedule. woken is when a command woke it, or when the time ended
// until which it was to sleep; zero: none did.
func (s Schedule) scheduled(woken, now time.Time) Sleep {
	wall := s.wall(now)
	slept := last(s.sleep, wall)
	asleep := !slept.IsZero() && slept.After(last(s.wake, wall)) && s.when(slept).After(woken)
	if asleep {
		wakes := s.when(s.wake.Next(wall))
		return Sleep{Pause: Pause{Active: true, Until: wakes}, Next: wakes}
	}
	return Sleep{Next: s.when(s.sleep.Next(wall))}
}

// wall is what the clocks of the zone show, as if that were UTC. When they are put forward, all that they leave out has passed at once; when they are put
// back, wall stands still until they show what is new: so nothing is left out, nothing comes twice, and wall never goes back.
func (s Schedule) wall(now time.Time) time.Time {
	shown := func(t time.Time) time.Time {
		_, offset := t.In(s.zone).Zone()
		return t.UTC().Add(time.Duration(offset) * time.Second)
	}
	wall := shown(now)
	if change, _ := now.In(s.zone).ZoneBounds(); !change.IsZero() {
		if before := shown(change.Add(-time.Second)); before.After(wall) {
			return before
		}
	}
	return wall
}

// when is the first second at which wall is there, zero for zero.
func (s Schedule) when(wall time.Time) time.Time {
	if wall.IsZero() {
		return wall
	}
	from := wall.Add(-maxShift)
	n := sort.Search(int(2*maxShift/time.Second), func(i int) bool { return !s.wall(from.Add(time.Duration(i) * time.Second)).Before(wall) })
	return from.Add(time.Duration(n) * time.Second)
}

// last is the last of times that is not after now, zero when there is none for years.
func last(times cron.Schedule, now time.Time) time.Time {
	now = now.Truncate(time.Minute) // they are whole minutes
	came := func(minutes int) bool {
		next := times.Next(now.Add(-time.Duration(minutes) * time.Minute))
		return !next.IsZero() && !next.After(now)
	}
	for back := 60; back <= int(farthest/time.Minute); back *= 2 {
		if came(back) {
			return times.Next(now.Add(-time.Duration(sort.Search(back, came)) * time.Minute))
		}
	}
	return time.Time{}
}
