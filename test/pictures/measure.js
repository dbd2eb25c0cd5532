// What a page looks like, for layout_test.go.
(() => {
  const svg = document.querySelector('svg');
  if (svg === null) {
    return {Width: 0, Window: 0, Smallest: 0, Texts: [], Shapes: [], Canvas: {X: 0, Y: 0, Width: 0, Height: 0}};
  }
  const of = (element) => {
    const b = element.getBBox();
    return {X: b.x, Y: b.y, Width: b.width, Height: b.height};
  };
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const bars = [...svg.querySelectorAll('rect')];
  const behind = (text) => {
    const t = of(text);
    const under = bars.filter((bar) => {
      const b = of(bar);
      return t.X < b.X + b.Width && b.X < t.X + t.Width && t.Y + t.Height / 2 > b.Y && t.Y + t.Height / 2 < b.Y + b.Height;
    });
    return [getComputedStyle(svg).backgroundColor].concat(under.map((bar) => getComputedStyle(bar).fill)).slice(under.length > 0 ? 1 : 0);
  };
  const view = svg.viewBox.baseVal;
  const scale = svg.getBoundingClientRect().width / view.width;
  const texts = [...svg.querySelectorAll('text')];
  return {
    Width: document.documentElement.scrollWidth || svg.getBoundingClientRect().width,
    Window: document.documentElement instanceof SVGElement ? 1e9 : innerWidth,
    Smallest: Math.min(...texts.map((text) => parseFloat(getComputedStyle(text).fontSize) * scale)),
    Texts: texts.map((text) => ({
      Text: text.textContent, Box: of(text),
      Contrast: Math.min(...behind(text).map((colour) => contrast(getComputedStyle(text).fill, colour))),
    })),
    Shapes: bars.map(of),
    Canvas: {X: view.x, Y: view.y, Width: view.width, Height: view.height},
  };
})();
