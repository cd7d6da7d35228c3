// Package schedule reads what the annotations of an HCPEtcdBackup say about when it is made again.
package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"hcp.internal/platform/internal/contract/backups"
)

const (
	// maxKeep bounds what KeepAnnotation takes.
	maxKeep = 10_000
	// shortest is how often a schedule may want backups: a Job has a quarter of an hour.
	shortest = 15 * time.Minute
)

// Schedule is what the annotations of an HCPEtcdBackup say.
type Schedule struct {
	// Backup is when backups are made; Verify when the newest is verified, nil: never.
	Backup, Verify cron.Schedule
	// Keep is how many stay in the storage; 0: all.
	Keep int
}

// Parse reads the annotations. Errors name the annotation and what it takes.
func Parse(annotations map[string]string) (Schedule, error) {
	var s Schedule
	var err error
	if s.Backup, err = parseCron(backups.ScheduleAnnotation, annotations[backups.ScheduleAnnotation]); err != nil {
		return s, err
	}
	// Any time will do: what is too often is too often from there, too.
	first := s.Backup.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if first.IsZero() {
		return s, fmt.Errorf("annotation %s: %q never occurs", backups.ScheduleAnnotation, annotations[backups.ScheduleAnnotation])
	}
	if gap := s.Backup.Next(first).Sub(first); gap < shortest {
		return s, fmt.Errorf("annotation %s: %q occurs every %s, and a backup may take %s: choose a longer interval", backups.ScheduleAnnotation, annotations[backups.ScheduleAnnotation], gap, shortest)
	}
	if text, ok := annotations[backups.VerifyScheduleAnnotation]; ok {
		if s.Verify, err = parseCron(backups.VerifyScheduleAnnotation, text); err != nil {
			return s, err
		}
	}
	if text, ok := annotations[backups.KeepAnnotation]; ok {
		if s.Keep, err = strconv.Atoi(text); err != nil || s.Keep < 1 || s.Keep > maxKeep {
			return s, fmt.Errorf("annotation %s: %q is not a number from 1 to %d", backups.KeepAnnotation, text, maxKeep)
		}
	}
	return s, nil
}

func parseCron(annotation, text string) (cron.Schedule, error) {
	if len(text) > 256 || strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") || strings.HasPrefix(text, "@every") {
		return nil, fmt.Errorf("annotation %s: give five fields (minute, hour, day of month, month, day of week) in UTC, or @hourly, @daily, @weekly, @monthly", annotation)
	}
	s, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w; give five fields (minute, hour, day of month, month, day of week) in UTC, or @hourly, @daily, @weekly, @monthly", annotation, err)
	}
	return s, nil
}
