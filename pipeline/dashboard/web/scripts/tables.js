// Tables whose rows are links: a click goes there within the page, the middle button and Ctrl open a tab, text can be
// selected. A heading sorts; the marks at a value show its rows alone, or all others.
(() => {
  if (window.wirelakeTables) return; // one set of listeners, however often the page is drawn
  window.wirelakeTables = true;

  const row = (event) => event.target.closest?.("table.rows tbody tr");
  const href = (event) => row(event)?.querySelector("a[href]")?.getAttribute("href");

  // The page reads its address when the browser goes back or on, so that is what it is told.
  function go(address) {
    history.pushState({}, "", address);
    window.dispatchEvent(new PopStateEvent("popstate", { state: {} }));
  }

  function sort(heading) {
    const table = heading.closest("table");
    const at = [...heading.parentNode.children].indexOf(heading);
    const down = heading.getAttribute("aria-sort") === "ascending";
    const value = (line) => line.children[at].dataset.v ?? "";
    const order = (a, b) => {
      const [one, other] = [value(a), value(b)];
      if (one === "" || other === "") return (one === "") - (other === ""); // what is not known comes last
      const numbers = one - other;
      return (Number.isNaN(numbers) ? one.localeCompare(other, undefined, { numeric: true }) : numbers) * (down ? -1 : 1);
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
    for (const each of heading.parentNode.children) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  }

  function narrow(table) {
    const rules = [...table.parentNode.querySelectorAll("[data-rule]")].map((each) => JSON.parse(each.dataset.rule));
    let shown = 0;
    for (const line of table.tBodies[0].rows) {
      const fits = rules.every(({ at, text, only }) => (line.children[at].dataset.t === text) === only);
      line.hidden = !fits;
      shown += fits;
    }
    const count = table.parentNode.querySelector("[data-count]");
    count.textContent = rules.length ? `${shown} of ${table.tBodies[0].rows.length} rows` : "";
  }

  function add(button) {
    const cell = button.closest("td");
    const table = cell.closest("table");
    const at = [...cell.parentNode.children].indexOf(cell);
    const only = button.dataset.narrow === "only";
    const title = table.tHead.rows[0].children[at].innerText.trim();
    const chip = document.createElement("button");
    chip.type = "button";
    chip.dataset.rule = JSON.stringify({ at, text: cell.dataset.t, only });
    chip.textContent = `${title} ${only ? "is" : "is not"} ${cell.dataset.t || "empty"} ✕`;
    chip.setAttribute("aria-label", `Remove: ${title} ${only ? "is" : "is not"} ${cell.dataset.t || "empty"}`);
    const count = table.parentNode.querySelector("[data-count]");
    count.before(chip);
    narrow(table);
    chip.focus();
  }

  document.addEventListener("click", (event) => {
    const heading = event.target.closest("table.rows th button");
    if (heading) return sort(heading.parentNode);
    const mark = event.target.closest("table.rows [data-narrow]");
    if (mark) return add(mark);
    const chip = event.target.closest("[data-rule]");
    if (chip) {
      const table = chip.parentNode.querySelector("table.rows");
      chip.remove();
      return narrow(table);
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
