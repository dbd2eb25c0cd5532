package testbed

// Labels or annotations that make a Pod played by KWOK behave in a special way.
// They have no effect on Pods that run as processes.
const (
	specialPrefix = "testbed.kick.dev/"

	// LabelNeverReady set to "true": the Pod runs but is not Ready. A Pod that
	// was Ready stops being it; without the label it becomes Ready again.
	LabelNeverReady = specialPrefix + "never-ready"
	// LabelStartDelay holds a duration, such as "5s", that the Pod's containers
	// need to start.
	LabelStartDelay = specialPrefix + "start-delay"
	// LabelStopDelay holds a duration that a deleted Pod needs to go.
	LabelStopDelay = specialPrefix + "stop-delay"
	// LabelFails set to "true": the containers are in CrashLoopBackOff, after
	// three restarts.
	LabelFails = specialPrefix + "fails"
	// LabelHold set to "true": the Pod is Pending and its containers are being
	// created, until the label is removed. That is how a Pod looks that waits
	// for a missing Secret.
	LabelHold = specialPrefix + "hold"
)
