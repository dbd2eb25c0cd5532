package testbed

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// CoreGroup and NoSubresource stand for an empty group and subresource in an
// AuditFilter, where the empty string matches everything.
const (
	CoreGroup     = "core"
	NoSubresource = "-"
)

// AuditEvent is a request that the API server answered.
type AuditEvent struct {
	Time time.Time
	// User is who acted; Impersonator is who asked to act so, if anybody.
	User         string
	Impersonator string
	UserAgent    string
	Verb         string
	Group        string
	Resource     string
	Subresource  string
	Namespace    string
	Name         string
	URI          string
	Code         int
	// Annotations are what admission and others add.
	Annotations map[string]string
}

// AuditMark is a position in the audit log.
type AuditMark int64

// AuditFilter selects events: an empty field matches everything.
type AuditFilter struct {
	User        string
	Verb        string
	Group       string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	// From and To bound the position in the log; To 0 is its end.
	From AuditMark
	To   AuditMark
	// Match, if not nil, must hold, too.
	Match func(AuditEvent) bool
}

// AuditCount is the number of requests of one kind.
type AuditCount struct {
	User     string
	Verb     string
	Resource string
	Count    int
}

// AuditLog reads what was asked of the API server. Requests of the control plane
// itself are not in it, and a watch appears when it ends.
type AuditLog struct{ path string }

// Audit is the audit log of the testbed.
func (t *Testbed) Audit() AuditLog { return AuditLog{path: t.auditLog()} }

func (t *Testbed) auditLog() string { return filepath.Join(t.logDir(), "audit.log") }

// Mark is the end of the log now.
func (a AuditLog) Mark() AuditMark { return AuditMark(fileSize(a.path)) }

// Count is the number of selected events.
func (a AuditLog) Count(filter AuditFilter) (int, error) {
	events, err := a.Events(filter)
	return len(events), err
}

// Table counts the selected events by user, verb and resource.
func (a AuditLog) Table(filter AuditFilter) ([]AuditCount, error) {
	events, err := a.Events(filter)
	if err != nil {
		return nil, err
	}
	counts := map[AuditCount]int{}
	for _, event := range events {
		counts[AuditCount{User: event.User, Verb: event.Verb, Resource: event.kind()}]++
	}
	var table []AuditCount
	for row, count := range counts {
		row.Count = count
		table = append(table, row)
	}
	slices.SortFunc(table, func(a, b AuditCount) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
	return table, nil
}

// Events are the selected events in the order of the log.
func (a AuditLog) Events(filter AuditFilter) ([]AuditEvent, error) {
	file, err := os.Open(a.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(int64(filter.From), io.SeekStart); err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	var source io.Reader = file
	if filter.To > 0 {
		source = io.LimitReader(file, int64(filter.To-filter.From))
	}
	return selectEvents(bufio.NewReader(source), filter)
}

// selectEvents ignores a last line that is still being written.
func selectEvents(lines *bufio.Reader, filter AuditFilter) ([]AuditEvent, error) {
	var events []AuditEvent
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		var record auditRecord
		if err := json.Unmarshal(line, &record); err != nil {
			return nil, fmt.Errorf("parse audit log: %w", err)
		}
		if event := record.event(); filter.matches(event) {
			events = append(events, event)
		}
	}
}

func (f AuditFilter) matches(event AuditEvent) bool {
	return matches(f.User, event.User) &&
		matches(f.Verb, event.Verb) &&
		matches(f.Group, cmp.Or(event.Group, CoreGroup)) &&
		matches(f.Resource, event.Resource) &&
		matches(f.Subresource, cmp.Or(event.Subresource, NoSubresource)) &&
		matches(f.Namespace, event.Namespace) &&
		matches(f.Name, event.Name) &&
		(f.Match == nil || f.Match(event))
}

func matches(wanted, value string) bool { return wanted == "" || wanted == value }

// kind is the resource with its group and subresource, or the path of a request
// that is not about a resource.
func (e AuditEvent) kind() string {
	if e.Resource == "" {
		return e.URI
	}
	kind := e.Resource
	if e.Group != "" {
		kind += "." + e.Group
	}
	if e.Subresource != "" {
		kind += "/" + e.Subresource
	}
	return kind
}

// auditRecord is the part of a line of the log that is of interest.
type auditRecord struct {
	RequestURI               string
	Verb                     string
	User                     auditUser
	ImpersonatedUser         *auditUser
	UserAgent                string
	RequestReceivedTimestamp time.Time
	ObjectRef                struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus struct{ Code int }
	Annotations    map[string]string
}

type auditUser struct{ Username string }

func (r auditRecord) event() AuditEvent {
	event := AuditEvent{
		Time:        r.RequestReceivedTimestamp,
		User:        r.User.Username,
		UserAgent:   r.UserAgent,
		Verb:        r.Verb,
		Group:       r.ObjectRef.APIGroup,
		Resource:    r.ObjectRef.Resource,
		Subresource: r.ObjectRef.Subresource,
		Namespace:   r.ObjectRef.Namespace,
		Name:        r.ObjectRef.Name,
		URI:         r.RequestURI,
		Code:        r.ResponseStatus.Code,
		Annotations: r.Annotations,
	}
	if r.ImpersonatedUser != nil {
		event.User, event.Impersonator = r.ImpersonatedUser.Username, r.User.Username
	}
	return event
}
