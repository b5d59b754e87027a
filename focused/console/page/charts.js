"use strict";
// Draws with uPlot; colours follow the page's, sizes its container.
const charts = (() => {
  const KEPT = 600;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = (more) => ({ stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, ...more });

  function create(target, scales, series, axes) {
    const width = Math.max(200, target.clientWidth);
    const chart = new uPlot(
      { width, height: 220, scales, series, axes, legend: { show: false }, cursor: { show: false } },
      series.map(() => []), target);
    new ResizeObserver(() => chart.setSize({ width: Math.max(200, target.clientWidth), height: 220 })).observe(target);
    return chart;
  }

  function harvest(target) {
    return create(target, { x: { time: false }, share: { range: [0, 1] } },
      [{}, { stroke: colour("--yes"), width: 2, scale: "y", points: { show: false } }, { stroke: colour("--dot"), width: 1.5, scale: "share", points: { show: false } }],
      [axis({}), axis({ scale: "y", size: 60 }), axis({ scale: "share", side: 1, grid: { show: false }, values: (_, ticks) => ticks.map((tick) => `${Math.round(tick * 100)}%`) })]);
  }

  function speed(target) {
    return create(target, { x: { time: true } },
      [{}, { stroke: colour("--yes"), width: 2, scale: "y", points: { show: false } }, { stroke: colour("--dot"), width: 1.5, scale: "kb", points: { show: false } }],
      [axis({}), axis({ scale: "y", size: 60 }), axis({ scale: "kb", side: 1, size: 60, grid: { show: false } })]);
  }

  // The last measurements of one crawl, a column each of times, pages and kilobytes a second.
  function history() {
    const columns = [[], [], []];
    return {
      columns,
      add(at, pages, kilobytes) {
        if (columns[0].length && columns[0].at(-1) >= at) return;
        [at, pages, kilobytes].forEach((value, index) => {
          columns[index].push(value);
          if (columns[index].length > KEPT) columns[index].shift();
        });
      },
    };
  }

  return { harvest, speed, history };
})();
