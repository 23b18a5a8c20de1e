// Completes names in the page's SQL box: tables, views, and columns of what the query names.
// Tab takes the first, or the one that the arrows chose, as Enter and a click do; Escape closes; Ctrl+Space asks.
(() => {
  const BOX = 'textarea[aria-label="Query"]';
  const MOST = 8;
  if (window.wirelakeCompletes) return; // one set of listeners, however often the page is drawn
  window.wirelakeCompletes = true;

  const list = document.createElement("ul");
  list.id = "completions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Names that fit");
  list.style.cssText =
    "position:absolute;z-index:1000000;margin:0;padding:4px 0;list-style:none;border:1px solid;border-radius:6px;" +
    "font:14px/1.5 'Source Code Pro',monospace;box-shadow:0 4px 12px #0004;max-width:92vw;overflow:hidden;display:none";
  document.body.append(list);

  let found = [];
  let chosen = -1;
  let start = 0;

  const isOpen = () => list.style.display !== "none";

  function close(box) {
    list.style.display = "none";
    box?.removeAttribute("aria-activedescendant");
  }

  function candidates(text) {
    const known = JSON.parse(document.querySelector("[data-sql-names]").dataset.sqlNames);
    const asked = Object.keys(known).filter((name) => text.includes(name));
    const columns = new Map();
    for (const name of asked) for (const one of known[name]) columns.set(one, `column of ${name}`);
    return [
      ...[...columns].map(([word, kind]) => ({ word, kind })),
      ...Object.keys(known).map((word) => ({ word, kind: word.includes(".") ? "table" : "view" })),
    ];
  }

  function fitting(text, typed) {
    const wanted = typed.toLowerCase();
    const rank = ({ word }) => {
      const name = word.toLowerCase();
      if (name === wanted) return 9;
      if (name.startsWith(wanted)) return 0;
      if (name.split(/[._]/).some((part) => part.startsWith(wanted))) return 1;
      return name.includes(wanted) ? 2 : 9;
    };
    return candidates(text)
      .map((one) => ({ ...one, rank: rank(one) }))
      .filter((one) => one.rank < 9)
      .sort((a, b) => a.rank - b.rank)
      .slice(0, MOST);
  }

  function choose(box, number) {
    chosen = number;
    [...list.children].forEach((item, index) => {
      item.setAttribute("aria-selected", String(index === chosen));
      item.style.textDecoration = index === chosen ? "underline" : "none";
      item.style.fontWeight = index === chosen ? "700" : "400";
    });
    if (chosen < 0) box.removeAttribute("aria-activedescendant");
    else box.setAttribute("aria-activedescendant", list.children[chosen].id);
  }

  function open(box, isAsked) {
    const before = box.value.slice(0, box.selectionStart);
    const typed = before.match(/[\w.]*$/)[0];
    start = before.length - typed.length;
    found = typed || isAsked ? fitting(box.value, typed) : [];
    if (!found.length) return close(box);
    list.replaceChildren(
      ...found.map(({ word, kind }, index) => {
        const item = document.createElement("li");
        item.id = `completion-${index}`;
        item.setAttribute("role", "option");
        item.style.cssText = "padding:1px 12px;cursor:pointer;white-space:nowrap";
        const what = document.createElement("span");
        what.textContent = kind;
        what.style.cssText = "margin-left:1.5em;font-style:italic";
        item.append(word, " ", what);
        item.addEventListener("mousedown", (event) => {
          event.preventDefault(); // the box keeps the focus
          take(box, index);
        });
        return item;
      }),
    );
    const place = box.getBoundingClientRect();
    const style = getComputedStyle(document.querySelector("[data-testid=stApp]"));
    list.style.color = style.color;
    list.style.background = style.backgroundColor;
    list.style.left = `${place.left + scrollX}px`;
    list.style.top = `${place.bottom + scrollY + 4}px`;
    list.style.display = "block";
    box.setAttribute("aria-autocomplete", "list");
    box.setAttribute("aria-controls", list.id);
    choose(box, -1);
  }

  function take(box, number) {
    const { word } = found[number];
    box.setSelectionRange(start, box.selectionStart);
    if (!document.execCommand("insertText", false, word)) box.setRangeText(word, start, box.selectionStart, "end");
    box.dispatchEvent(new Event("input", { bubbles: true }));
    close(box);
  }

  document.addEventListener("input", (event) => {
    if (event.isTrusted && event.inputType && event.target.matches?.(BOX)) open(event.target, false);
  });
  document.addEventListener("focusout", (event) => event.target.matches?.(BOX) && close(event.target));
  document.addEventListener(
    "keydown",
    (event) => {
      const box = event.target;
      if (!box.matches?.(BOX)) return;
      if (event.key === " " && event.ctrlKey) {
        open(box, true);
      } else if (!isOpen() || event.ctrlKey || event.metaKey) {
        close(box);
        return;
      } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        const step = event.key === "ArrowDown" ? 1 : -1;
        choose(box, (chosen + step + found.length + (chosen < 0 && step < 0 ? 1 : 0)) % found.length);
      } else if (event.key === "Tab" && !event.shiftKey) {
        take(box, Math.max(chosen, 0));
      } else if (event.key === "Enter" && chosen >= 0) {
        take(box, chosen);
      } else if (event.key === "Escape") {
        close(box);
      } else {
        return;
      }
      event.preventDefault();
      event.stopPropagation();
    },
    true,
  );
})();
