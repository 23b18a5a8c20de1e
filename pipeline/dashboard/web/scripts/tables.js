// Tables whose rows are links: a click goes there within the page, the middle button and Ctrl open a tab, text can be
// selected. A heading sorts; the marks at a value show its rows alone, or all others; boxes choose the columns. All of
// that is in the address: where=client_id=billing-1;status!=paired, sort=-lag, columns=lag,trend; of a table that has a
// name of its own, name.where and so on. The terms are written as pipeline/dashboard/queries/terms.py reads them.
(() => {
  if (window.wirelakeTables) return; // one set of listeners, however often the page is drawn
  window.wirelakeTables = true;

  const OURS = /(^|\.)(where|sort|columns)$/;
  const row = (event) => event.target.closest?.("table.rows tbody tr");
  const href = (event) => row(event)?.querySelector("a[href]")?.getAttribute("href");
  const partOf = (element) => element.closest("[data-rows]");
  const name = (part, what) => (part.dataset.rows ? `${part.dataset.rows}.${what}` : what);
  const headings = (part) => [...part.querySelectorAll("table.rows th")];
  const place = (part, field) => headings(part).findIndex((each) => each.dataset.field === field);
  const given = (part, what) => new URLSearchParams(location.search).get(name(part, what)) ?? "";

  // The page reads its address when the browser goes back or on, so that is what it is told.
  function go(address) {
    history.pushState({}, "", address);
    window.dispatchEvent(new PopStateEvent("popstate", { state: {} }));
  }

  function addressWith(changes) {
    const parameters = new URLSearchParams(location.search);
    for (const [key, value] of Object.entries(changes)) value ? parameters.set(key, value) : parameters.delete(key);
    const text = parameters.toString();
    return `${location.pathname}${text ? `?${text}` : ""}`;
  }

  function put(part, what, value) {
    history.replaceState(history.state, "", addressWith({ [name(part, what)]: value }));
    applyAll();
  }

  // Terms

  function terms(part) {
    return given(part, "where").split(";").map((each) => /^(\w+)(!?=)(.*)$/s.exec(each)).filter(Boolean)
      .map(([, field, sign, value]) => ({
        field, only: sign === "=", text: value.replaceAll("%3B", ";").replaceAll("%25", "%"),
      }));
  }

  const written = (all) => all.map(({ field, only, text }) =>
    `${field}${only ? "=" : "!="}${text.replaceAll("%", "%25").replaceAll(";", "%3B")}`).join(";");

  // Rows that the server chose are asked for again, from the first page on; the others are in the browser.
  function setTerms(part, all) {
    const changes = { [name(part, "where")]: written(all) };
    if ("served" in part.dataset) return go(addressWith({ ...changes, before: "", exchange: "" }));
    history.pushState(history.state, "", addressWith(changes));
    applyAll();
  }

  const says = (part, { field, only, text }) =>
    `${headings(part)[place(part, field)]?.dataset.title ?? field} ${only ? "=" : "≠"} ${text || "empty"}`;

  function button(part, text, label, without) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-label", label);
    made.dataset.drop = String(without);
    return made;
  }

  function narrow(part) {
    const all = terms(part);
    const lines = [...part.querySelector("table.rows").tBodies[0].rows];
    const fits = (line, { field, only, text }) => ((line.children[place(part, field)]?.dataset.t ?? "") === text) === only;
    const isServed = "served" in part.dataset;
    let shown = 0;
    for (const line of lines) {
      line.hidden = !isServed && !all.every((term) => fits(line, term));
      shown += !line.hidden;
    }
    const chips = all.map((term, at) => button(part, `${says(part, term)} ✕`, `Remove: ${says(part, term)}`, at));
    part.querySelector("[data-chips]").replaceChildren(...chips);
    const count = part.querySelector("[data-count]");
    count.textContent = !all.length || isServed ? "" : `${shown} of ${lines.length} rows`;
    if (shown || !all.length || isServed) return;
    count.textContent = "No row is left. ";
    all.forEach((term, at) => {
      const rest = all.filter((each) => each !== term);
      const left = lines.filter((line) => rest.every((each) => fits(line, each))).length;
      const text = `Without ${says(part, term)}: ${left} row${left === 1 ? "" : "s"}`;
      if (left) count.append(button(part, text, text, at));
    });
  }

  function add(mark) {
    const cell = mark.closest("td");
    const part = partOf(cell);
    const field = headings(part)[[...cell.parentNode.children].indexOf(cell)].dataset.field;
    const term = { field, only: mark.dataset.narrow === "only", text: cell.dataset.t };
    setTerms(part, [...terms(part).filter((each) => written([each]) !== written([term])), term]);
    part.querySelector("[data-chips]").lastChild?.focus();
  }

  // Order

  function sort(part) {
    const body = part.querySelector("table.rows").tBodies[0];
    part.wirelakeOrder ??= [...body.rows];
    const [, sign, field] = /^(-?)(.*)$/.exec(given(part, "sort"));
    const at = field ? place(part, field) : -1;
    for (const each of headings(part)) each.removeAttribute("aria-sort");
    if (at < 0) return body.append(...part.wirelakeOrder);
    const value = (line) => line.children[at].dataset.v ?? "";
    const order = (a, b) => {
      const [one, other] = [value(a), value(b)];
      if (one === "" || other === "") return (one === "") - (other === ""); // what is not known comes last
      const numbers = one - other;
      return (Number.isNaN(numbers) ? one.localeCompare(other, undefined, { numeric: true }) : numbers) * (sign ? -1 : 1);
    };
    body.append(...[...part.wirelakeOrder].sort(order));
    headings(part)[at].setAttribute("aria-sort", sign ? "descending" : "ascending");
  }

  function sortBy(heading) {
    const isDown = heading.getAttribute("aria-sort") === "ascending";
    put(partOf(heading), "sort", `${isDown ? "-" : ""}${heading.dataset.field}`);
  }

  // Columns

  const boxes = (part) => [...part.querySelectorAll("[data-column]")];

  function chosen(part) {
    const asked = given(part, "columns");
    return asked ? asked.split(",") : boxes(part).filter((box) => box.dataset.first === "1").map((box) => box.dataset.column);
  }

  function columns(part) {
    const wanted = new Set(chosen(part));
    const isShown = new Map(boxes(part).map((box) => [box.dataset.column, wanted.has(box.dataset.column)]));
    for (const box of boxes(part)) box.checked = isShown.get(box.dataset.column);
    headings(part).forEach((heading, at) => {
      const hidden = isShown.get(heading.dataset.field) === false;
      if (heading.hidden === hidden) return;
      for (const line of part.querySelectorAll("table.rows tr")) line.children[at].hidden = hidden;
    });
  }

  function choose(part) {
    const now = boxes(part).filter((box) => box.checked).map((box) => box.dataset.column);
    const first = boxes(part).filter((box) => box.dataset.first === "1").map((box) => box.dataset.column);
    put(part, "columns", now.join() === first.join() ? "" : now.join() || "none");
  }

  // A shadow shows on which side there is more to scroll to.

  function edges(box) {
    const right = box.scrollWidth - box.clientWidth - box.scrollLeft > 1 ? "right" : "";
    const below = box.scrollHeight - box.clientHeight - box.scrollTop > 1 ? "below" : "";
    box.dataset.more = `${right} ${below}`.trim();
  }

  const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => edges(target)));
  document.addEventListener("scroll", (event) => {
    if (event.target.classList?.contains("rows-box")) edges(event.target);
  }, { capture: true, passive: true });

  // The address is followed wherever it comes from: a click here, a link, the browser's way back, rows that are drawn again.

  let followed = null;

  function apply(part) {
    columns(part);
    sort(part);
    narrow(part);
    const box = part.querySelector(".rows-box");
    edges(box);
    sizes.observe(box);
    part.wirelakeDone = true;
  }

  function applyAll() {
    followed = location.search;
    const now = new URLSearchParams(location.search);
    for (const part of document.querySelectorAll("[data-rows]")) {
      apply(part);
      for (const link of part.querySelectorAll("table.rows a[href]")) {
        if (link.pathname !== location.pathname) continue;
        const to = new URLSearchParams(link.search);
        for (const key of [...to.keys()]) if (OURS.test(key)) to.delete(key);
        for (const [key, value] of now) if (OURS.test(key)) to.set(key, value);
        link.setAttribute("href", `${link.pathname}?${to}`);
      }
    }
  }

  function follow() {
    const parts = document.querySelectorAll("[data-rows]");
    if (location.search !== followed || [...parts].some((part) => !part.wirelakeDone)) applyAll();
  }
  new MutationObserver(follow).observe(document.body, { childList: true, subtree: true });
  window.addEventListener("popstate", follow);
  follow();

  document.addEventListener("change", (event) => {
    if (event.target.closest?.("[data-column]")) choose(partOf(event.target));
  });

  document.addEventListener("click", (event) => {
    const heading = event.target.closest("table.rows th button");
    if (heading) return sortBy(heading.parentNode);
    const mark = event.target.closest("table.rows [data-narrow]");
    if (mark) return add(mark);
    const drop = event.target.closest("[data-rows] [data-drop]");
    if (drop) {
      const part = partOf(drop);
      setTerms(part, terms(part).filter((_, at) => at !== Number(drop.dataset.drop)));
      return part.querySelector(".rows-box").focus();
    }
    const to = href(event);
    const isOnLink = event.target.closest("a") !== null;
    if (!to || event.defaultPrevented || (!isOnLink && String(getSelection()))) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey) {
      if (!isOnLink) window.open(to, "_blank", "noopener");
      return;
    }
    event.preventDefault();
    go(to);
  });

  // Keys reach the marks of the row that has the focus: those of all rows would be a thousand stops.
  for (const [kind, stop] of [["focusin", 0], ["focusout", -1]]) {
    document.addEventListener(kind, (event) => {
      for (const mark of row(event)?.querySelectorAll("[data-narrow]") ?? []) mark.tabIndex = stop;
    });
  }

  document.addEventListener("auxclick", (event) => {
    const to = href(event);
    if (to && event.button === 1 && !event.target.closest("a")) window.open(to, "_blank", "noopener");
  });
})();
