package gate

import (
	"fmt"
	"strings"
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/schedule"
)

// outsideSchedule holds a workload until the windows of all its policies are open.
func outsideSchedule(input Input) *Block {
	if input.Override {
		return nil
	}
	var schedules []schedule.Schedule
	var closed []string
	for _, policy := range input.Scope.Policies {
		if policy.Schedule.Invalid() {
			return &Block{
				Phase:   v1alpha1.PhaseWaitingForGate,
				Reason:  v1alpha1.ReasonScheduleInvalid,
				Message: fmt.Sprintf("the schedule of policy %s cannot be read, which the policy's status explains", policy.Name),
			}
		}
		schedules = append(schedules, policy.Schedule)
		if !policy.Schedule.Open(input.Now) {
			closed = append(closed, policy.Name)
		}
	}
	if len(closed) == 0 {
		return nil
	}
	block := &Block{Phase: v1alpha1.PhaseWaitingForGate, Reason: v1alpha1.ReasonOutsideSchedule}
	names := strings.Join(closed, ", ")
	opening := schedule.NextCommonOpening(schedules, input.Now)
	switch {
	case opening.Never:
		block.Reason = v1alpha1.ReasonNeverOpens
		block.Message = fmt.Sprintf("the schedule of policy %s does not open within the next 366 days", names)
	case opening.Found:
		block.OpensAt = opening.At.Format(time.RFC3339)
		block.RecheckAt = opening.At
		block.Message = fmt.Sprintf("outside the schedule of policy %s, which opens at %s", names, block.OpensAt)
	default:
		block.RecheckAt = opening.At
		block.Message = fmt.Sprintf("outside the schedule of policy %s, whose windows close as often as they open", names)
	}
	return block
}
