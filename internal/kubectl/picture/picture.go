// Package picture draws in SVG, and wraps drawings into pages of one file. Both are readable in light and dark, by what the
// viewer prefers, and refer to nothing outside of themselves.
package picture

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// style is that of drawings and of pages.
const style = `
:root { --back: #ffffff; --text: #1f2328; --muted: #59636e; --line: #d1d9e0; --plain: #eef1f4; --open: #2da44e; --deny: #cf222e;
  --allow: #54aeff; --change: #8250df; --wait: #d4a72c; --roll: #0969da; --good: #1a7f37; --bad: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --back: #0d1117; --text: #e6edf3; --muted: #9198a1; --line: #3d444d;
  --plain: #1c2128; --open: #3fb950; --deny: #f85149; --allow: #388bfd; --change: #bc8cff; --wait: #bb8009; --roll: #58a6ff;
  --good: #3fb950; --bad: #f85149; } }
svg { background: var(--back); font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 12px; }
svg text { fill: var(--text); } svg text.muted { fill: var(--muted); } svg text.title { font-size: 15px; font-weight: 600; }
svg text.end { text-anchor: end; } svg text.mid { text-anchor: middle; } svg text.now { fill: var(--bad); }
svg line { stroke: var(--line); stroke-width: 1; } svg line.now { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 3 3; }
.plain { fill: var(--plain); } .open { fill: var(--open); } .deny { fill: var(--deny); } .allow { fill: var(--allow); }
.change { fill: var(--change); } .wait { fill: var(--wait); } .roll { fill: var(--roll); } .good { fill: var(--good); }
.bad { fill: var(--bad); } .stamp { fill: var(--roll); }
`

// pageStyle is what pages have beside that.
const pageStyle = `
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.4rem; } .scroll { overflow-x: auto; } .scroll svg { display: block; }
table { border-collapse: collapse; margin-top: 1.5rem; font-size: 13px; } th, td { border-bottom: 1px solid var(--line);
  padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top; } th { color: var(--muted); font-weight: 600; }
td:not(:last-child) { white-space: nowrap; }
`

// Drawing is a drawing in progress. All texts are escaped.
type Drawing struct {
	body          strings.Builder
	width, height int
	title         string
}

// New begins a drawing. A drawing by itself bears its title, at the top; a page bears it above the drawing.
func New(width, height int, title string) *Drawing {
	return &Drawing{width: width, height: height, title: title}
}

func escape(text string) string { return html.EscapeString(text) }

// Text writes a text whose baseline begins at a point. The class says how it looks: title, muted, end, mid, now.
func (d *Drawing) Text(x, y float64, class, text string) {
	fmt.Fprintf(&d.body, "<text x=\"%.1f\" y=\"%.1f\"%s>%s</text>\n", x, y, classed(class), escape(text))
}

// Box is a rectangle.
type Box struct {
	X, Y, Width, Height float64
}

// Bar draws a rectangle with a tooltip.
func (d *Drawing) Bar(box Box, class, tip string) {
	fmt.Fprintf(&d.body, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"2\"%s>%s</rect>\n",
		box.X, box.Y, max(box.Width, 1), box.Height, classed(class), tooltip(tip))
}

// classed is the attribute that says how something looks.
func classed(class string) string { return ` class="` + class + `"` }

// Line draws a line.
func (d *Drawing) Line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&d.body, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"%s/>\n", x1, y1, x2, y2, classed(class))
}

// Diamond draws a mark of the given radius around a point, with a tooltip.
func (d *Drawing) Diamond(x, y, radius float64, class, tip string) {
	fmt.Fprintf(&d.body, "<path d=\"M%.1f %.1f L%.1f %.1f L%.1f %.1f L%.1f %.1fZ\"%s>%s</path>\n",
		x, y-radius, x+radius, y, x, y+radius, x-radius, y, classed(class), tooltip(tip))
}

// Flag draws a mark that stands on a point, with a tooltip.
func (d *Drawing) Flag(x, y, size float64, class, tip string) {
	fmt.Fprintf(&d.body, "<path d=\"M%.1f %.1f L%.1f %.1f L%.1f %.1fZ\"%s>%s</path>\n",
		x, y, x-size/2, y-size, x+size/2, y-size, classed(class), tooltip(tip))
}

// Circle draws a dot with a tooltip.
func (d *Drawing) Circle(x, y, radius float64, class, tip string) {
	fmt.Fprintf(&d.body, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"%s>%s</circle>\n", x, y, radius, classed(class), tooltip(tip))
}

func tooltip(tip string) string {
	if tip == "" {
		return ""
	}
	return "<title>" + escape(tip) + "</title>"
}

// Shorten cuts a text in its middle, so that it has at most so many characters: what names of one kind differ in is mostly
// at their ends.
func Shorten(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	head := (most - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(most-1-head):])
}

// inline is the drawing without its style.
func (d *Drawing) inline(inside string) string {
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n"+
		"<title>%s</title>\n%s%s</svg>\n", d.width, d.height, d.width, d.height, escape(d.title), inside, d.body.String())
}

// titleWidth is what a character of a title takes.
const titleWidth = 9.5

// WriteSVG writes the drawing as a file of its own.
func (d *Drawing) WriteSVG(out io.Writer) error {
	title := Shorten(d.title, int(float64(d.width)/titleWidth))
	head := "<style>" + style + "</style>\n<text x=\"16.0\" y=\"26.0\" class=\"title\">" + escape(title) + "</text>\n"
	_, err := io.WriteString(out, d.inline(head))
	return err
}

// Page is a page with one drawing and a table.
type Page struct {
	Title, Intro string
	Drawing      *Drawing
	Head         []string
	Rows         [][]string
}

// WriteHTML writes the page as one file.
func (p Page) WriteHTML(out io.Writer) error {
	var page strings.Builder
	fmt.Fprintf(&page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"+
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"+
		"<title>%s</title>\n<style>%s%s</style>\n</head>\n<body>\n<h1>%s</h1>\n<p>%s</p>\n<div class=\"scroll\">\n%s</div>\n",
		escape(p.Title), style, pageStyle, escape(p.Title), escape(p.Intro), p.Drawing.inline(""))
	if len(p.Rows) > 0 {
		page.WriteString("<div class=\"scroll\">\n<table>\n<thead><tr>")
		for _, head := range p.Head {
			fmt.Fprintf(&page, "<th>%s</th>", escape(head))
		}
		page.WriteString("</tr></thead>\n<tbody>\n")
		for _, row := range p.Rows {
			page.WriteString("<tr>")
			for _, cell := range row {
				fmt.Fprintf(&page, "<td>%s</td>", escape(cell))
			}
			page.WriteString("</tr>\n")
		}
		page.WriteString("</tbody>\n</table>\n</div>\n")
	}
	page.WriteString("</body>\n</html>\n")
	_, err := io.WriteString(out, page.String())
	return err
}
