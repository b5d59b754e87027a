"use strict";
// The link graph around a page as SVG: pages that link to it on the left, its links on the right.
// The tables beside it have the same links for screen readers and keyboards.
const graph = (() => {
  const SPACE = "http://www.w3.org/2000/svg";
  const MOST = 8;
  const ROW = 30;
  const MARGIN = 22;
  const CHAR = 6.2;

  function shape(tag, attributes, text) {
    const made = document.createElementNS(SPACE, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const labelOf = (page) => page.title || page.url;

  function shorten(text, width) {
    const most = Math.max(4, Math.floor(width / CHAR));
    const chars = [...text];
    return chars.length <= most ? text : `${chars.slice(0, most - 1).join("")}…`;
  }

  const kindOf = (page) => page.on_topic ? "on" : page.outcome === "fetched" ? "off" : "other";
  const words = { on: "on topic", off: "off topic", other: "no page yet" };

  // Each kind has its own shape, so that it shows without colours.
  function mark(kind, x, y) {
    if (kind === "on") return shape("circle", { cx: x, cy: y, r: 6, class: "on" });
    if (kind === "off") return shape("rect", { x: x - 5, y: y - 5, width: 10, height: 10, class: "off" });
    return shape("circle", { cx: x, cy: y, r: 4.5, class: "other" });
  }

  function knot(page, x, y, anchor, room, choose) {
    const group = shape("g", { class: choose && page.outcome ? "clickable" : "" });
    const label = labelOf(page);
    group.append(shape("title", {}, `${label}\n${page.url}\n${words[kindOf(page)]}`));
    group.append(mark(kindOf(page), x, y));
    const at = anchor === "middle" ? { x, y: y - 12 } : { x: anchor === "start" ? x + 11 : x - 11, y: y + 4 };
    group.append(shape("text", { ...at, "text-anchor": anchor }, shorten(label, room)));
    if (choose && page.outcome) group.addEventListener("click", () => choose(page.url));
    return group;
  }

  // Draws into an element; `choose` receives the URL of a page that is clicked.
  function draw(target, page, parents, children, choose) {
    const left = parents.slice(0, MOST);
    const right = children.slice(0, MOST);
    const width = Math.max(280, Math.min(880, target.clientWidth || 600));
    const rows = Math.max(left.length, right.length, 2);
    const height = rows * ROW + 2 * MARGIN;
    const middle = { x: width / 2, y: height / 2 };
    const room = width / 2 - 50;
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" });
    const lines = shape("g", { class: "lines" });
    const knots = shape("g", {});
    const place = (pages, x, anchor) => pages.forEach((each, index) => {
      const y = height / 2 + (index - (pages.length - 1) / 2) * ROW;
      const label = 16 + CHAR * [...shorten(labelOf(each), room)].length;
      const from = anchor === "start" ? x + label : x - label;
      const bend = (from + middle.x) / 2;
      lines.append(shape("path", { d: `M${from} ${y} C${bend} ${y} ${bend} ${middle.y} ${middle.x} ${middle.y}` }));
      knots.append(knot(each, x, y, anchor, room, choose));
    });
    place(left, 12, "start");
    place(right, width - 12, "end");
    knots.append(knot(page, middle.x, middle.y, "middle", room, null));
    svg.append(lines, knots);
    target.replaceChildren(svg);
  }

  return { draw };
})();
