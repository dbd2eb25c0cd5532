package schedule

import "time"

// closeLook is how many starts of a window in a row are compared with their ends.
const closeLook = 500

// Endless returns the indexes of the windows that are always active from an instant on, because they begin again before
// they end. It looks at every day of the next 366 and closely at the first few hundred starts, so it may be wrong about a
// window that ends for less than a day at a time, and seldom.
func (s Schedule) Endless(from time.Time) []int {
	var endless []int
	for i, w := range s.windows {
		if w.endless(from) {
			endless = append(endless, i)
		}
	}
	return endless
}

func (w Window) endless(from time.Time) bool {
	for at := from; at.Before(from.Add(horizon)); at = at.AddDate(0, 0, 1) {
		if !w.activeAt(at) {
			return false
		}
	}
	start := w.nextStart(from)
	for range closeLook {
		next := w.nextStart(start)
		if next.IsZero() || next.After(start.Add(w.duration)) {
			return false
		}
		start = next
	}
	return true
}
