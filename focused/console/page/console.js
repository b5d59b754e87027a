"use strict";
// The token stands behind "#" in the address: it is taken from there at once, kept for this
// window alone, and sent as a header. Everything that comes from a crawl is set as text.
(() => {
  const element = (id) => document.getElementById(id);
  const STORE = "focused-console-token";
  const PAGE_SIZE = 200;
  const VIEWS = ["overview", "pages", "search", "hosts", "frontier", "links", "steer", "model"];
  let token = "";
  let crawls = [];
  let chosen = 0;
  let view = "overview";
  let stream = null;
  let last = null;
  let offset = 0;
  const newest = new Map();
  let speeds = charts.history();
  let harvestChart = null;
  let speedChart = null;
  let curve = null;

  const number = (value, digits = 0) => value === null || value === undefined ? "–"
    : Number(value).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const percent = (part, whole) => whole && part !== undefined && part !== null ? `${number(100 * part / whole, 1)}%` : "–";

  function node(tag, text = "", attributes = {}) {
    const made = document.createElement(tag);
    if (text !== "") made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  function fill(table, rows) {
    const body = element(table).tBodies[0];
    body.replaceChildren(...rows.map((cells) => {
      const row = node("tr");
      for (const cell of cells) {
        if (cell instanceof Node) {
          const data = node("td");
          data.append(cell);
          row.append(data);
        } else row.append(node("td", String(cell)));
      }
      return row;
    }));
    sortRows(element(table));
  }

  // Sorting: the shown rows, by a column. A table that is filled again keeps its order.

  function makeSortable(table) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      if (!heading.textContent) return;
      const button = node("button", heading.textContent, { type: "button" });
      heading.replaceChildren(button);
      button.addEventListener("click", () => {
        const direction = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", direction);
        sortRows(table);
      });
    });
  }

  function sortRows(table) {
    const headings = table.tHead ? [...table.tHead.rows[0].cells] : [];
    const column = headings.findIndex((heading) => heading.hasAttribute("aria-sort"));
    if (column < 0) return;
    const sign = headings[column].getAttribute("aria-sort") === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows].map((row) => [sortKey(row.cells[column]), row]);
    rows.sort(([a], [b]) => (a === "") - (b === "") || sign * compareKeys(a, b));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }

  // The number or the text of a cell; empty for one without a value, which stays last.
  function sortKey(cell) {
    const marked = cell.querySelector("[data-sort]");
    const text = (marked ? marked.dataset.sort : cell.textContent).trim();
    const value = Number(text.replace(/,/g, "").replace(/ \(.*\)$/, ""));
    return text === "–" || text === "" ? "" : Number.isNaN(value) ? text : value;
  }

  function compareKeys(a, b) {
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  }

  function notice(text) {
    element("notice").textContent = text;
    element("notice").hidden = !text;
  }

  async function ask(path, body) {
    const options = { headers: { "X-Focused-Token": token }, cache: "no-store" };
    if (body !== undefined) {
      options.method = "POST";
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(body);
    }
    const answer = await fetch(path, options);
    const data = await answer.json().catch(() => ({ error: `The server failed (status ${answer.status}).` }));
    if (!answer.ok) throw new Error(answer.status === 403 ? `${data.error} Open the address that the terminal shows.` : data.error);
    return data;
  }

  async function attempt(work) {
    try {
      const result = await work();
      notice("");
      return result;
    } catch (error) {
      notice(error instanceof TypeError ? "The console's server does not answer: it has ended." : error.message);
      return undefined;
    }
  }

  // Null where a later question was asked meanwhile: answers may overtake each other.
  async function askLast(what, path) {
    const question = Symbol(path);
    newest.set(what, question);
    const found = await attempt(() => ask(path));
    return newest.get(what) === question ? found : null;
  }

  // Crawls

  async function listCrawls() {
    const found = await attempt(() => ask("/api/crawls"));
    if (!found) return;
    crawls = found.crawls;
    element("crawl").replaceChildren(...crawls.map((crawl, index) => {
      const state = crawl.is_running ? "running" : "ended";
      return node("option", `${crawl.topic} (${crawl.policy || "?"}), ${state}: ${crawl.folder}`, { value: index });
    }));
    element("crawl").value = chosen;
  }

  async function choose(index) {
    chosen = index;
    offset = 0;
    last = curve = null;
    speeds = charts.history();
    element("crawl").value = index;
    element("label-page").hidden = true;
    document.title = `${crawls[index].topic}: crawl`;
    listen();
    showView(view);
  }

  async function listen() {
    if (stream) stream.abort();
    const controller = stream = new AbortController();
    try {
      const answer = await fetch(`/api/crawls/${chosen}/events`,
        { headers: { "X-Focused-Token": token }, signal: controller.signal, cache: "no-store" });
      if (!answer.ok) throw new Error((await answer.json()).error);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        const events = text.split("\n\n");
        text = events.pop();
        for (const event of events) show(JSON.parse(event.replace(/^data: /, "")));
      }
      throw new TypeError("ended");
    } catch (error) {
      if (controller.signal.aborted) return;
      notice(error instanceof TypeError ? "The console's server does not answer: it has ended." : error.message);
    }
  }

  // Live state

  function show(event) {
    last = event;
    if (event.error) notice(event.error);
    const live = event.live;
    const stats = live && live.stats ? live.stats : flat(event.totals || {});
    if (stats.fetched === undefined) countRows(event, stats);
    element("state").textContent = stateText(event, stats);
    element("controls").hidden = !event.is_running;
    element("pause").textContent = live && live.is_paused ? "Resume" : "Pause";
    element("forms").hidden = !event.is_running;
    element("steer-off").hidden = event.is_running;
    element("speed").hidden = !event.is_running;
    showFigures(live, stats);
    showGroup("failures", stats, "failures/", (value) => number(value));
    showGroup("stages", stats, "profile/stages/", (value) => `${number(value, 1)} s`);
    if (event.curve) showHarvest(event.curve);
    if (live && live.pages_per_s !== undefined) showSpeed(live);
    showActions(event.actions);
    if (live && live.budget) prefillForms(live);
  }

  // A crawl that was killed has no totals, but rows.
  function countRows(event, stats) {
    curve = event.curve || curve;
    if (!curve || !curve.pages.length) return;
    stats.on_topic = curve.on_topic.at(-1);
    stats.classified = curve.pages.at(-1);
    stats.recent_harvest_rate = curve.rolling.at(-1);
  }

  function flat(totals, path = "") {
    const found = {};
    for (const [name, value] of Object.entries(totals)) {
      if (value && typeof value === "object" && !Array.isArray(value)) Object.assign(found, flat(value, `${path}${name}/`));
      else found[path + name] = value;
    }
    return found;
  }

  function stateText(event, stats) {
    const live = event.live;
    if (!event.is_running) return stats.end_reason ? `Ended: ${stats.end_reason}` : "Not running";
    if (!live) return "Running";
    if (live.error) return `Failed: ${live.error}`;
    if (live.end_reason) return `Ending: ${live.end_reason}`;
    if (live.is_paused) return "Paused";
    if (stats.classified >= 100 && stats.recent_harvest_rate === 0 && !live.command) return "Running, none of the last 100 pages on topic";
    return live.command ? `Running, executes ${live.command}` : live.waiting || "Running";
  }

  function showFigures(live, stats) {
    const budget = live && live.budget;
    const figures = [
      ["On topic", number(stats.on_topic)],
      ["Fetched", budget && budget.pages ? `${number(stats.fetched)} of ${number(budget.pages)}` : number(stats.fetched)],
      ["Harvest rate", percent(stats.on_topic, stats.classified)],
      ["Last 100 pages", percent(stats.recent_harvest_rate, 1)],
      ["Queued links", number(stats.frontier)],
      ["Hosts", number(stats.hosts)],
      ["Duplicates", number(stats.duplicates)],
      ["Megabytes", number(stats.bytes === undefined ? null : stats.bytes / 1e6, 1)],
    ];
    if (live && live.pages_per_s !== undefined) {
      figures.push(["Pages a second", number(live.pages_per_s, 1)], ["In flight", number(live.in_flight)]);
      figures.push(["Bandwidth", bandwidth(live.bytes_per_s * 8 / 1e6)]);
      const left = timeLeft(live, stats);
      if (left !== null) figures.push(["Time left", left]);
    }
    element("figures").replaceChildren(...figures.map(([name, value]) => {
      const group = node("div");
      group.append(node("dt", name), node("dd", value));
      return group;
    }));
  }

  function bandwidth(mbit) {
    return `${number(mbit, 1)} Mbit/s`;
  }

  function timeLeft(live, stats) {
    const estimates = [];
    const budget = live.budget || {};
    if (budget.pages && stats.fetched) estimates.push((budget.pages - stats.fetched) * live.active_s / stats.fetched);
    if (budget.hours) estimates.push(budget.hours * 3600 - live.active_s);
    if (!estimates.length) return null;
    const seconds = Math.max(0, Math.round(Math.min(...estimates)));
    return seconds < 90 ? `${seconds} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${number(seconds / 3600, 1)} h`;
  }

  function showGroup(table, stats, prefix, format) {
    const rows = Object.entries(stats).filter(([name]) => name.startsWith(prefix));
    rows.sort((a, b) => b[1] - a[1]);
    fill(table, rows.map(([name, value]) => [name.slice(prefix.length), format(value)]));
  }

  function showHarvest(curve) {
    const target = element("harvest-chart");
    harvestChart = harvestChart || charts.harvest(target);
    harvestChart.setData([curve.pages, curve.on_topic, curve.rolling]);
    if (curve.pages.length) {
      target.setAttribute("aria-label", `${number(curve.on_topic.at(-1))} of ${number(curve.pages.at(-1))} pages on topic; ` +
        `${percent(curve.rolling.at(-1), 1)} of the last hundred`);
    }
  }

  function showSpeed(live) {
    const target = element("speed-chart");
    speeds.add(live.at, live.pages_per_s, live.bytes_per_s / 1000);
    if (element("overview").hidden) return;
    speedChart = speedChart || charts.speed(target);
    speedChart.setData(speeds.columns);
    target.setAttribute("aria-label", `${number(live.pages_per_s, 1)} pages and ${number(live.bytes_per_s / 1000)} kilobytes a second`);
  }

  // Views

  function showView(name) {
    view = name;
    for (const each of VIEWS) {
      const selected = each === name;
      element(each).hidden = !selected;
      element(`tab-${each}`).setAttribute("aria-selected", String(selected));
      element(`tab-${each}`).tabIndex = selected ? 0 : -1;
      if (selected) element(`tab-${each}`).scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    if (name === "pages") showPages();
    if (name === "search") showSearch();
    if (name === "model") {
      showModels();
      showRetraining();
    }
    if (name.startsWith("feature-")) showFeature(name);
    if (name === "hosts") showHosts();
    if (name === "frontier") showFrontier();
    if (name === "links") showLinkGraph();
  }

  async function showPages() {
    const query = new URLSearchParams(new FormData(element("page-filter")));
    query.set("offset", offset);
    element("page-table").setAttribute("aria-busy", "true");
    const found = await askLast("pages", `/api/crawls/${chosen}/pages?${query}`);
    if (found === null) return;
    element("page-table").setAttribute("aria-busy", "false");
    if (!found) return;
    const end = offset + found.pages.length;
    element("page-count").textContent = found.total ? `${number(offset + 1)} to ${number(end)} of ${number(found.total)}` : "No pages";
    element("earlier").disabled = offset === 0;
    element("later").disabled = end >= found.total;
    fill("page-table", found.pages.map((page) => [
      pageButton(page.url, page.title), number(page.relevance, 2), number(page.score, 2), outcomeText(page),
    ]));
  }

  function outcomeText(page) {
    if (page.training) return "training sample";
    if (page.duplicate_of) return "duplicate";
    if (page.outcome === "fetched") return page.on_topic ? "on topic" : "off topic";
    return page.outcome;
  }

  function pageButton(url, title) {
    const button = node("button", "", { type: "button", class: "page" });
    button.append(node("span", title || url), node("small", url));
    button.addEventListener("click", () => showDetails(url));
    return button;
  }

  async function showDetails(url) {
    const found = await askLast("details", `/api/crawls/${chosen}/page?url=${encodeURIComponent(url)}`);
    if (!found) return;
    element("details-title").textContent = found.page.title || found.page.url;
    const link = element("details-url");
    link.textContent = found.page.url;
    if (/^https?:/.test(found.page.url)) link.href = found.page.url;
    else link.removeAttribute("href");
    element("details-path").replaceChildren(...found.path.map((step) => {
      const item = node("li");
      if (step.anchor) item.append(node("q", step.anchor), " → ");
      item.append(step.url);
      item.append(node("small", ` score ${number(step.score, 2)}, ${step.relevance === null ? step.outcome : `relevance ${number(step.relevance, 2)}`}`));
      return item;
    }));
    fill("details-features", found.features.map(([name, value]) => [name, number(value, 2)]));
    fill("details-links", found.links.map(linkRow));
    fill("details-in-links", found.in_links.links.map(linkRow));
    if (!element("details").open) element("details").showModal();
    element("details").scrollTop = 0;
    element("graph-text").textContent = `${number(found.in_links.total)} pages link here. ` +
      `It has ${number(found.links.length)} links, ${number(found.links.filter((each) => each.on_topic).length)} of them to pages on topic.`;
    graph.draw(element("graph"), found.page, found.in_links.links, found.links, showDetails);
  }

  function linkRow(each) {
    const known = each.outcome ? pageButton(each.url, each.title) : each.url;
    return [each.anchor || "–", known, number(each.score, 2), each.on_topic ? "on topic" : each.outcome || "queued"];
  }

  async function showHosts() {
    const found = await attempt(() => ask(`/api/crawls/${chosen}/hosts`));
    if (!found) return;
    fill("host-table", found.hosts.map((host) => [
      hostButton(host.host), number(host.pages), `${number(host.on_topic)} (${percent(host.on_topic, host.pages)})`,
      number(host.failed), number(host.bytes / 1000), number(host.queued), host.waits || "–",
    ]));
  }

  function hostButton(name) {
    const button = node("button", name, { type: "button", class: "page" });
    button.addEventListener("click", () => {
      element("page-filter").elements.host.value = name;
      offset = 0;
      showView("pages");
    });
    return button;
  }

  async function showFrontier() {
    const found = await attempt(() => ask(`/api/crawls/${chosen}/frontier`));
    if (!found) return;
    const totals = found.totals;
    element("frontier-totals").textContent = !totals ? "This crawl's state was removed." :
      `${number(totals.links)} links on ${number(totals.with_links)} of ${number(totals.hosts)} hosts: ${number(totals.due)} due, ` +
      `${number(totals.backing_off)} back off, ${number(totals.full)} have used their budget, ${number(totals.in_flight)} in flight. ` +
      "A snapshot that is at most some seconds old.";
    fill("link-table", (found.links || []).map((link) => {
      const cell = node("div");
      cell.append(node("span", link.anchor || link.url), node("small", link.url));
      if (link.parent) cell.append(node("small", `on ${link.parent}`));
      return [cell, number(link.score, 2), number(link.priority, 2), number(link.depth)];
    }));
    fill("best-hosts", (found.hosts || []).map((host) => [
      hostButton(host.name), number(host.queued), number(host.score, 2), number(host.fetched), host.waits,
    ]));
  }

  async function showLinkGraph() {
    const found = await attempt(() => ask(`/api/crawls/${chosen}/graph`));
    if (!found) return;
    const { build, graph: report } = found;
    const runs = Boolean(build && build.is_running);
    element("build-graph").disabled = runs;
    element("build-graph").textContent = report ? "Update the link graph" : "Build the link graph";
    const size = report ? `${number(report.pages)} pages and ${number(report.links)} links on ${number(report.hosts)} hosts, ` +
      `fetched until ${new Date(report.until * 1000).toLocaleString()}.` : "No link graph yet.";
    element("graph-state").textContent = runs ? `${size} Building.` : size;
    element("graph-failure").textContent = build && build.status ? build.output : "";
    const rows = (pages) => pages.map((page) => [pageButton(page.url, ""), number(page.score, 2), number(page.relevance, 2)]);
    fill("authorities", report ? rows(report.authorities) : []);
    fill("hubs", report ? rows(report.hubs) : []);
    if (runs && view === "links") setTimeout(() => view === "links" && showLinkGraph(), 1000);
  }

  async function buildLinkGraph() {
    if (await attempt(() => ask(`/api/crawls/${chosen}/graph`, {}))) showLinkGraph();
  }

  // Search

  async function showSearch() {
    const query = new URLSearchParams(new FormData(element("search-form")));
    const found = await askLast("search", `/api/crawls/${chosen}/search?${query}`);
    if (!found) return;
    const indexed = found.indexed === null ? "No index yet: index the pages first." : `${number(found.indexed)} pages indexed.`;
    const runs = Boolean(found.update && found.update.is_running);
    const work = runs ? " Indexing new pages." : "";
    const total = query.get("text") ? ` ${number(found.total)} found.` : "";
    element("search-state").textContent = found.update && found.update.status ? found.update.output : indexed + work + total;
    element("update-index").disabled = runs;
    element("hits").replaceChildren(...found.hits.map(hitItem));
    if (runs && view === "search") setTimeout(() => view === "search" && showSearch(), 1000);
  }

  function hitItem(hit) {
    const item = node("li");
    const snippet = node("p");
    let from = 0;
    for (const [start, end] of hit.highlights) {
      snippet.append(hit.snippet.slice(from, start), node("mark", hit.snippet.slice(start, end)));
      from = end;
    }
    snippet.append(hit.snippet.slice(from));
    item.append(pageButton(hit.url, hit.title), snippet,
      node("small", `${hit.on_topic ? "on topic" : "off topic"}, relevance ${number(hit.relevance, 2)}`));
    return item;
  }

  async function updateIndex() {
    if (await attempt(() => ask(`/api/crawls/${chosen}/index`, {}))) setTimeout(showSearch, 300);
  }

  // Model

  async function showModels() {
    const found = await attempt(() => ask(`/api/crawls/${chosen}/models`));
    if (!found) return;
    element("models").replaceChildren(...found.models.map((model) => {
      const since = new Date(model.since * 1000).toLocaleString();
      return node("h3", `Model ${model.name}, from page ${number(model.page)} on (${since})`);
    }));
    if (!found.models.length) element("models").textContent = "No page was classified by a trained model yet.";
  }

  async function startLabelPage() {
    element("label").disabled = true;
    const started = await attempt(() => ask(`/api/crawls/${chosen}/label`, {}));
    element("label").disabled = false;
    if (!started) return;
    element("label-page").href = started.address;
    element("label-page").hidden = false;
    element("label-page").focus();
  }

  async function showRetraining() {
    const found = await attempt(() => ask(`/api/crawls/${chosen}/retrain`));
    if (!found) return;
    const run = found.retraining;
    element("retrain").disabled = Boolean(run && run.is_running);
    const outcome = !run ? "" : run.is_running ? "Training" : run.status === 0 ? "Done" : run.status === 1 ? "The old model stays" : "Failed";
    element("retraining").textContent = run ? `${outcome}\n\n${run.output}` : "";
    if (run && run.is_running && view === "model") setTimeout(() => view === "model" && showRetraining(), 1000);
  }

  async function retrain() {
    if (await attempt(() => ask(`/api/crawls/${chosen}/retrain`, {}))) showRetraining();
  }

  // Steering

  async function send(command) {
    const sent = await attempt(() => ask(`/api/crawls/${chosen}/commands`, command));
    if (sent) element("state").textContent = "Sent";
    return Boolean(sent);
  }

  function commandOf(form) {
    const command = { action: form.dataset.action };
    for (const [name, text] of new FormData(form)) {
      if (name === "urls") command.urls = text.split(/\s+/).filter(Boolean);
      else if (text !== "") command[name] = form.elements[name].type === "number" ? Number(text) : text;
    }
    return command;
  }

  // A field that nobody has edited shows its default value, and so does each after a reset.
  function prefillForms(live) {
    const budget = document.querySelector("[data-action=change-budget]").elements;
    for (const name of ["pages", "hours"]) budget[name].defaultValue = live.budget[name] || "";
    document.querySelector("[data-action=change-delay]").elements.delay_s.defaultValue = live.delay_s;
  }

  // The command replaces the whole budget: fields that were left empty keep their limits.
  function changedBudget(command) {
    const budget = { ...(last && last.live && last.live.budget), ...command };
    for (const name of ["pages", "hours"]) if (!budget[name]) delete budget[name];
    return budget;
  }

  async function submit(event) {
    event.preventDefault();
    const form = event.target;
    const given = commandOf(form);
    const command = given.action === "change-budget" ? changedBudget(given) : given;
    const question = "Dropped links are not fetched, and cannot be brought back here. Drop them?";
    if (command.action === "drop-links" && !confirm(question)) return;
    if (await send(command)) form.reset();
  }

  function showActions(actions) {
    if (element("steer").hidden) return;
    const undone = new Set(actions.filter((action) => !action.error).map((action) => action.undoes));
    const shown = JSON.stringify([actions.map((action) => action.id), last.is_running]);
    if (element("action-table").dataset.shown === shown) return;
    element("action-table").dataset.shown = shown;
    fill("action-table", actions.toReversed().map((action) => {
      const { action: kind, ...values } = action.command;
      const given = Object.entries(values).filter(([, value]) => value !== null && String(value) !== "")
        .map(([name, value]) => `${name} ${value}`).join(", ");
      const at = node("span", new Date(action.at * 1000).toLocaleTimeString(), { "data-sort": action.at });
      const cells = [at, `${kind} ${given}`, action.error || action.message];
      if (!action.undo || undone.has(action.id) || !last.is_running) return [...cells, undone.has(action.id) ? "undone" : ""];
      const button = node("button", "Undo", { type: "button" });
      button.addEventListener("click", () => send({ ...action.undo, undoes: action.id }));
      return [...cells, button];
    }));
  }

  // Start

  function takeToken() {
    if (location.hash.length > 1) {
      sessionStorage.setItem(STORE, location.hash.slice(1));
      history.replaceState(null, "", "/");
    }
    token = sessionStorage.getItem(STORE) || "";
  }

  // Tabs of features: one table each.

  async function addFeatureTabs() {
    const found = await attempt(() => ask("/api/feature-tabs"));
    for (const { name, title } of found ? found.tabs : []) {
      const id = `feature-${name}`;
      const tab = node("button", title, { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": id, "aria-selected": "false", tabindex: "-1" });
      const section = node("section", "", { id, role: "tabpanel", "aria-labelledby": `tab-${id}` });
      const scroll = node("div", "", { class: "scroll", tabindex: "0", role: "region", "aria-label": title });
      scroll.append(node("table", "", { id: `table-${id}` }));
      section.append(scroll);
      section.hidden = true;
      element("tabs").append(tab);
      element("main").append(section);
      VIEWS.push(id);
    }
  }

  async function showFeature(id) {
    const found = await attempt(() => ask(`/api/crawls/${chosen}/feature-tabs/${id.slice("feature-".length)}`));
    if (!found) return;
    const table = element(`table-${id}`);
    if (!table.tHead) {
      const row = table.createTHead().insertRow();
      row.append(...found.headings.map((heading) => node("th", heading, { scope: "col" })));
      table.createTBody();
      makeSortable(table);
    }
    fill(table.id, found.rows.map((row) => row.map((cell) => typeof cell === "number" ? number(cell) : cell ?? "–")));
  }

  function moveBetweenTabs(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = VIEWS[(VIEWS.indexOf(view) + step + VIEWS.length) % VIEWS.length];
    showView(next);
    element(`tab-${next}`).focus();
  }

  async function start() {
    takeToken();
    await addFeatureTabs();
    for (const name of VIEWS) element(`tab-${name}`).addEventListener("click", () => showView(name));
    element("tabs").addEventListener("keydown", moveBetweenTabs);
    element("crawl").addEventListener("change", () => choose(Number(element("crawl").value)));
    element("crawl").addEventListener("focus", listCrawls);
    element("pause").addEventListener("click", () =>
      send({ action: last && last.live && last.live.is_paused ? "resume" : "pause" }));
    element("stop").addEventListener("click", () =>
      confirm("Stop the crawl? The same command line continues it.") && send({ action: "stop" }));
    element("page-filter").addEventListener("submit", (event) => {
      event.preventDefault();
      offset = 0;
      showPages();
    });
    element("search-form").addEventListener("submit", (event) => {
      event.preventDefault();
      showSearch();
    });
    element("label").addEventListener("click", startLabelPage);
    element("retrain").addEventListener("click", retrain);
    element("build-graph").addEventListener("click", buildLinkGraph);
    element("update-index").addEventListener("click", updateIndex);
    element("earlier").addEventListener("click", () => { offset = Math.max(0, offset - PAGE_SIZE); showPages(); });
    element("later").addEventListener("click", () => { offset += PAGE_SIZE; showPages(); });
    for (const table of document.querySelectorAll("table")) if (table.tHead) makeSortable(table);
    for (const form of document.querySelectorAll("#forms form")) form.addEventListener("submit", submit);
    await listCrawls();
    if (crawls.length) choose(Math.max(0, crawls.findIndex((crawl) => crawl.is_running)));
    setInterval(() => { if (last && last.is_running && ["hosts", "frontier"].includes(view)) showView(view); }, 10000);
  }

  start();
})();
