package pictures

import (
	"bytes"
	_ "embed"
	"fmt"
	"image/color"
	"image/png"
)

// measure is what the browser computes of a page: see measure.js.
//
//go:embed measure.js
var measure string

// layout is where things are on a page.
type layout struct {
	// Width of the page, and of the window that it is looked at through.
	Width, Window float64
	// Smallest size of a text in the drawing, in pixels of the screen.
	Smallest float64
	Texts    []text
	Shapes   []box
	Canvas   box
}

// box is a rectangle, in the units of the drawing.
type box struct {
	X, Y, Width, Height float64
}

// text of a drawing. Contrast is that between it and what is behind it, between 1 and 21.
type text struct {
	Text     string
	Box      box
	Contrast float64
}

func (b box) inside(of box) bool {
	const rim = 1
	return b.X >= of.X-rim && b.Y >= of.Y-rim && b.X+b.Width <= of.X+of.Width+rim && b.Y+b.Height <= of.Y+of.Height+rim
}

// overlaps tells whether two rectangles have more in common than the empty rim that every text has.
func (b box) overlaps(c box) bool {
	const rim = 3
	return b.X+b.Width > c.X+rim && c.X+c.Width > b.X+rim && b.Y+b.Height > c.Y+rim && c.Y+c.Height > b.Y+rim
}

// readable is the contrast that the Web Content Accessibility Guidelines 2 ask of text, at level AA, and small what is too
// small to be read.
const (
	readable = 4.5
	small    = 10
)

// faults lists what is wrong with a page as it was seen.
func (s sight) faults(as view) []string {
	var faults []string
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, url := range s.requests {
		add("asks for %s", url)
	}
	for _, complaint := range s.complaints {
		add("complains: %s", complaint)
	}
	l := s.layout
	if l.Width > l.Window {
		add("is %.0f pixels wide in a window of %.0f", l.Width, l.Window)
	}
	if l.Canvas.Width < 100 || l.Canvas.Height < 50 || len(l.Texts) == 0 {
		add("is empty: a drawing of %.0f × %.0f with %d texts", l.Canvas.Width, l.Canvas.Height, len(l.Texts))
	}
	if l.Smallest < small {
		add("has text of %.1f pixels", l.Smallest)
	}
	for i, t := range l.Texts {
		if !t.Box.inside(l.Canvas) {
			add("cuts %q off", t.Text)
		}
		if t.Contrast < readable {
			add("shows %q with a contrast of %.1f", t.Text, t.Contrast)
		}
		for _, other := range l.Texts[i+1:] {
			if t.Box.overlaps(other.Box) {
				add("has %q over %q", t.Text, other.Text)
			}
		}
		for _, shape := range l.Shapes {
			if t.Box.overlaps(shape) && !t.Box.inside(shape) {
				add("has %q over the edge of a bar", t.Text)
			}
		}
	}
	return append(faults, s.colours(as)...)
}

// colours finds fault with the colours on the screenshot: the corner is the background.
func (s sight) colours(as view) []string {
	picture, err := png.Decode(bytes.NewReader(s.screenshot))
	if err != nil {
		return []string{"gives no picture: " + err.Error()}
	}
	bounds := picture.Bounds()
	seen := map[color.Color]bool{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y += 3 { // Enough to see what colours there are.
		for x := bounds.Min.X; x < bounds.Max.X; x += 3 {
			seen[picture.At(x, y)] = true
		}
	}
	var faults []string
	if len(seen) < 8 {
		faults = append(faults, fmt.Sprintf("has %d colours", len(seen)))
	}
	grey := color.GrayModel.Convert(picture.At(bounds.Max.X-1, bounds.Max.Y-1)).(color.Gray).Y
	if dark := grey < 64; dark != (as.scheme == "dark") || !dark && grey < 192 {
		faults = append(faults, fmt.Sprintf("has a background of brightness %d in %s", grey, as.scheme))
	}
	return faults
}
