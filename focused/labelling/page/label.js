"use strict";
// The token stands behind "#" in the address: it is taken from there at once, kept for this
// window alone, and sent as a header. Everything shown is set as text, never as HTML.
(() => {
  const element = (id) => document.getElementById(id);
  const STORE = "focused-token";
  const VERDICTS = ["yes", "no", "spam", "skip"];
  let token = "";
  let state = null;
  let busy = false;
  let byTab = false;

  function takeToken() {
    if (location.hash.length > 1) {
      sessionStorage.setItem(STORE, location.hash.slice(1));
      history.replaceState(null, "", "/");
    }
    token = sessionStorage.getItem(STORE) || "";
  }

  async function ask(path, body, done = show) {
    if (busy) return;
    setBusy(true);
    try {
      const options = { headers: { "X-Focused-Token": token }, cache: "no-store" };
      if (body !== undefined) {
        options.method = "POST";
        options.headers["Content-Type"] = "application/json";
        options.body = JSON.stringify(body);
      }
      const answer = await fetch(path, options);
      const data = await answer.json().catch(
        () => ({ error: `The server failed (status ${answer.status}): see the terminal it runs in.` }));
      if (answer.status === 403) {
        tell("This window has no valid address", `${data.error} Open the address that the terminal shows.`);
      } else if (!answer.ok) {
        element("last").textContent = data.error;
      } else {
        done(data);
      }
    } catch {
      tell("No answer", "The session has ended. Your answers are saved: start it again to continue.");
    } finally {
      setBusy(false);
    }
  }

  function setBusy(value) {
    busy = value;
    element("main").setAttribute("aria-busy", String(value));
  }

  function tell(title, text) {
    state = null;
    element("asked").hidden = true;
    element("message").hidden = false;
    element("message-title").textContent = title;
    element("message-text").textContent = text;
    setButtons();
  }

  function show(data) {
    const before = state && state.page ? state.page.url : null;
    state = data;
    document.title = `Label: ${data.topic}`;
    element("topic").textContent = data.topic;
    element("description").textContent = data.description;
    showProgress(data.progress);
    showLast(data.last);
    showCategories(data.categories);
    if (!data.page) {
      tell("All done", "All useful pages of this crawl are labelled.");
      state = data;
      setButtons();
      return;
    }
    element("asked").hidden = false;
    element("message").hidden = true;
    if (data.page.url !== before) showPage(data.page, before === null);
    setButtons();
  }

  function showPage(page, isFirst) {
    element("title").textContent = page.title || page.url;
    element("url").textContent = page.url;
    if (/^https?:/.test(page.url)) element("url").href = page.url;
    else element("url").removeAttribute("href");
    element("reason").textContent = page.relevance === null
      ? `${page.reason} · the classifier's relevance is hidden until you answer`
      : `${page.reason} · relevance ${page.relevance.toFixed(2)}, score before the fetch ${page.score.toFixed(2)}`;
    const text = element("text");
    const parts = [page.problem, ...page.text.split(/\n{2,}/)].filter(Boolean);
    if (!parts.length) parts.push("This page has no text.");
    text.replaceChildren(...parts.map((part) => {
      const paragraph = document.createElement("p");
      paragraph.textContent = part;
      return paragraph;
    }));
    if (page.problem) text.firstChild.className = "problem";
    text.scrollTop = 0;
    // A narrow window scrolls as a whole: the first page shows the question, the next their title.
    element("scroll").scrollTop = isFirst ? 0 : element("main").offsetTop;
    view("text");
    const old = element("original");
    const fresh = old.cloneNode(false);  // a new frame: the window's history stays one entry long
    fresh.src = page.original;
    old.replaceWith(fresh);
  }

  // In a narrow window one of the two is seen at a time.
  function view(name) {
    element("views").dataset.shown = name;
    for (const one of ["text", "original"]) {
      element(`show-${one}`).setAttribute("aria-pressed", String(one === name));
    }
  }

  function showProgress(progress) {
    element("count").textContent = progress.yes + progress.no + progress.spam + progress.skipped;
    element("counts").textContent = progress.counts;
    for (const name of ["precision", "harvest"]) {
      const share = progress[name];
      const percent = (value) => `${Math.round(100 * value)}%`;
      element(name).textContent = share
        ? `${percent(share.value)}, 95% sure: ${percent(share.low)} to ${percent(share.high)}`
        : progress[`${name}_missing`];
      const bar = element(`${name}-bar`);
      bar.hidden = !share;
      if (share) {
        bar.firstChild.style.left = percent(share.low);
        bar.firstChild.style.width = percent(share.high - share.low);
        bar.lastChild.style.left = percent(share.value);
      }
    }
  }

  function showLast(last) {
    if (!last) {
      element("last").textContent = "";
      return;
    }
    const chosen = last.category ? `${last.verdict}, ${last.category}` : last.verdict;
    const model = last.relevance === null ? "" : ` The classifier gave it ${last.relevance.toFixed(2)}.`;
    element("last").textContent = `You said ${chosen}: ${last.title || last.url}.${model}`;
  }

  function showCategories(categories) {
    const group = element("categories");
    if (group.childElementCount === categories.length) return;
    group.replaceChildren(...categories.map((category, place) => {
      const button = document.createElement("button");
      const key = document.createElement("kbd");
      key.textContent = place + 1;
      button.type = "button";
      button.className = category.good ? "good" : "other";
      button.setAttribute("aria-keyshortcuts", String(place + 1));
      button.title = `${category.good ? "Yes" : "No"}: ${category.name}`;
      button.append(key, ` ${category.name.split("/").pop().replaceAll("_", " ")}`);
      button.addEventListener("click", () => put(place));
      return button;
    }));
  }

  function setButtons() {
    const open = Boolean(state && state.page);
    for (const id of VERDICTS) element(id).disabled = !open;
    for (const button of element("categories").children) button.disabled = !open;
    element("undo").disabled = !(state && state.last);
  }

  function say(verdict, category = "") {
    if (state && state.page) ask("/api/label", { url: state.page.url, verdict, category });
  }

  function put(place) {
    const category = state && state.categories[place];
    if (category) say(category.good ? "yes" : "no", category.name);
  }

  function undo() {
    if (state && state.last) ask("/api/undo", {});
  }

  function showFound(data) {
    const list = element("found");
    list.replaceChildren(...data.found.map((page) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = page.title;
      button.title = page.url;
      button.addEventListener("click", () => {
        list.hidden = true;
        element("main").focus({ preventScroll: true });  // the answer's keys work again
        ask("/api/show", { url: page.url });
      });
      const item = document.createElement("li");
      item.append(button);
      return item;
    }));
    list.hidden = !data.found.length;
    element("last").textContent = data.found.length
      ? `${data.found.length} pages without a label have these words.`
      : "No page without a label has these words.";
  }

  const KEYS = {
    y: () => say("yes"),
    n: () => say("no"),
    x: () => say("spam"),
    s: () => say("skip"),
    u: undo,
  };

  document.addEventListener("keydown", (event) => {
    byTab = event.key === "Tab";
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target === element("query")) {
      if (event.key === "Escape") element("main").focus({ preventScroll: true });
      return;
    }
    if (event.key === "/") {
      event.preventDefault();
      element("query").focus();
      return;
    }
    const key = event.key.toLowerCase();
    const act = KEYS[key] || (/^[1-9]$/.test(key) ? () => put(Number(key) - 1) : null);
    if (!act) return;
    event.preventDefault();
    act();
  });

  document.addEventListener("pointerdown", () => { byTab = false; });

  for (const verdict of VERDICTS) {
    element(verdict).addEventListener("click", () => say(verdict));
  }
  element("undo").addEventListener("click", undo);
  for (const name of ["text", "original"]) {
    element(`show-${name}`).addEventListener("click", () => view(name));
  }
  element("search").addEventListener("submit", (event) => {
    event.preventDefault();
    ask("/api/search", { query: element("query").value }, showFound);
  });

  // A click into the original would take the keys with it; who gets there by Tab stays.
  window.addEventListener("blur", () => {
    if (byTab || document.activeElement !== element("original")) return;
    setTimeout(() => {
      element("original").blur();
      element("main").focus({ preventScroll: true });
    });
  });
  window.addEventListener("hashchange", () => { takeToken(); ask("/api/state"); });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && state) ask("/api/state");  // another window may have gone on
  });

  takeToken();
  setButtons();
  ask("/api/state");
})();
